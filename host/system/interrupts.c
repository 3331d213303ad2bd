// Blocking signals and reading them.
#include "host/system/interrupts.h"

#include <sys/signalfd.h>
#include <unistd.h>

static bool is_ignored(int number)
{
    struct sigaction found;
    return sigaction(number, NULL, &found) == 0 && found.sa_handler == SIG_IGN;
}

struct interrupts interrupts_catch(void)
{
    struct interrupts i;
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    if (!is_ignored(SIGHUP)) // as nohup leaves it; a blocked signal would come all the same
        sigaddset(&wanted, SIGHUP);
    sigprocmask(SIG_BLOCK, &wanted, &i.before);
    i.fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (i.fd < 0) // then they end us, and the keeper ends its trial
        sigprocmask(SIG_SETMASK, &i.before, NULL);
    return i;
}

bool interrupts_pending(const struct interrupts *i)
{
    struct signalfd_siginfo info;
    return read(i->fd, &info, sizeof info) == (ssize_t)sizeof info;
}

void interrupts_release(struct interrupts *i)
{
    while (i->fd >= 0 && interrupts_pending(i)) // what came late has nothing left to end
        continue;
    if (i->fd >= 0)
        close(i->fd);
    sigprocmask(SIG_SETMASK, &i->before, NULL);
}
