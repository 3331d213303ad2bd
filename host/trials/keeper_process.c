// The keeper's loop: the command started, its orphans adopted, orders obeyed, everything ended.
// host/trials/descendants.c finds who is to be ended.
#include "host/trials/keeper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/trials/descendants.h"

enum { CANNOT_START = 127 };

uint64_t keeper_grace(const struct keeper_job *job)
{
    return job->grace_ms > job->farewell_ms ? job->grace_ms : job->farewell_ms;
}

struct kept {
    int orders, news, children; // children: a signalfd
    pid_t command;
    bool command_ended, ending, asked;
    int status;
    uint64_t grace_ms, farewell_ms;
    uint64_t kill_at_ms, kill_soonest_ms;
};

static ssize_t read_patiently(int fd, void *to, size_t bytes)
{
    ssize_t n;
    do
        n = read(fd, to, bytes);
    while (n < 0 && errno == EINTR);
    return n;
}

static void write_patiently(int fd, const void *from, size_t bytes)
{
    while (write(fd, from, bytes) < 0 && errno == EINTR)
        continue;
}

// Whether all of it is set; else errno says why not.
static bool set_environment(const char *const *environment)
{
    bool ok = true;
    for (; ok && environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        char name[128];
        size_t n = equals ? (size_t)(equals - *environment) : strlen(*environment);
        if (n >= sizeof name)
            continue;
        memcpy(name, *environment, n);
        name[n] = 0;
        ok = (equals ? setenv(name, equals + 1, 1) : unsetenv(name)) == 0;
    }
    return ok;
}

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
}

// Replaces this process by the command; what keeps it from that is written to `failure`.
NO_RETURN static void become_command(const struct keeper_job *job, int output, int failure)
{
    setsid();
    reset_signals();
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    bool ready = dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0 &&
                 set_environment(job->environment);
    // execvp takes arguments as char *const[] and leaves them alone.
    union {
        const char *const *given;
        char *const *taken;
    } arguments = {job->arguments};
    if (ready)
        execvp(job->arguments[0], arguments.taken);
    int reason = errno;
    write_patiently(failure, &reason, sizeof reason);
    _exit(CANNOT_START);
}

static void tell(int to, struct news n)
{
    write_patiently(to, &n, sizeof n);
}

// The command's process, or -1 after telling why there is none.
static pid_t start_command(const struct keeper_job *job, int output, int news)
{
    int failure[2];
    int reason = 0;
    if (pipe2(failure, O_CLOEXEC) != 0) {
        tell(news, (struct news){.kind = NEWS_NOT_STARTED, .value = errno});
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0)
        become_command(job, output, failure[1]);
    reason = pid < 0 ? errno : 0;
    close(failure[1]);
    if (pid > 0 && read_patiently(failure[0], &reason, sizeof reason) <= 0)
        reason = 0;
    close(failure[0]);
    struct news n = {.kind = reason ? NEWS_NOT_STARTED : NEWS_STARTED, .value = reason, .pid = pid};
    tell(news, n);
    return reason ? -1 : pid;
}

static void begin_ending(struct kept *k)
{
    if (k->ending)
        return;
    k->ending = true;
    k->kill_soonest_ms = monotonic_ms() + k->farewell_ms;
    k->kill_at_ms = monotonic_ms() + k->grace_ms;
    (void)descendants_signal(SIGTERM, 0);
}

// Whether anything is left to wait for.
static bool reap(struct kept *k)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue; // the signal that told of it was read: nothing would tell again
        if (pid < 0)
            return errno != ECHILD;
        if (pid == 0)
            return true;
        if (pid == k->command) {
            k->command_ended = true;
            k->status = status;
            if (k->orders >= 0)
                shutdown(k->orders, SHUT_WR); // which Fathom sees before all is over
            begin_ending(k);
        }
    }
}

static void obey(struct kept *k)
{
    char order;
    ssize_t n = read(k->orders, &order, 1);
    if (n < 0)
        return;
    (void)reap(k); // the command may have ended before this order came
    k->asked |= !k->command_ended;
    begin_ending(k);
    if (n == 0) { // Fathom is dead, and its end of the pipe stays readable
        close(k->orders);
        k->orders = -1;
    } else if (order == ORDER_KILL) {
        k->kill_at_ms = k->kill_soonest_ms;
    }
}

static void read_signals(struct kept *k)
{
    struct signalfd_siginfo info;
    while (read(k->children, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            begin_ending(k);
}

static int milliseconds_to_wait(const struct kept *k)
{
    if (!k->ending)
        return -1;
    uint64_t now = monotonic_ms();
    return now >= k->kill_at_ms ? KILL_AGAIN_MS : (int)(k->kill_at_ms - now);
}

// Until the command and all that came of it are gone.
static void keep(struct kept *k)
{
    while (reap(k)) {
        struct pollfd fds[] = {{k->children, POLLIN, 0}, {k->orders, POLLIN, 0}};
        if (k->ending && monotonic_ms() >= k->kill_at_ms)
            (void)descendants_signal(SIGKILL, 0);
        if (poll(fds, COUNT_OF(fds), milliseconds_to_wait(k)) < 0)
            continue;
        if (fds[0].revents)
            read_signals(k);
        if (fds[1].revents)
            obey(k);
    }
}

static int watch_signals(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGHUP);
    sigprocmask(SIG_SETMASK, &wanted, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Descriptors that are not the keeper's own (the store, its lock, a terminal) must not outlive
// Fathom in it. The first three stay taken, so that no pipe gets their numbers.
static void close_others(const int *kept, ptrdiff_t count)
{
    int largest = (int)sysconf(_SC_OPEN_MAX);
    for (int fd = 0; fd < (largest > 0 && largest < 4096 ? largest : 4096); fd++) {
        bool keep_it = false;
        for (ptrdiff_t i = 0; i < count; i++)
            keep_it |= kept[i] == fd;
        if (!keep_it)
            close(fd);
    }
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        (void)!open("/dev/null", O_RDWR);
}

void be_keeper(const struct keeper_job *job, int orders, int news, int output)
{
    int own[] = {orders, news, output};
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "fathom-keeper");
    close_others(own, COUNT_OF(own));
    struct kept k = {.orders = orders,
                     .news = news,
                     .grace_ms = keeper_grace(job),
                     .farewell_ms = job->farewell_ms};
    k.children = watch_signals();
    int reason = k.children < 0 ? errno : 0;
    // Nothing starts before Fathom has written down who keeps it.
    char first = 0;
    if (read_patiently(orders, &first, 1) != 1 || first != ORDER_GO)
        _exit(0);
    if (reason) { // whoever cannot be watched is not started
        tell(news, (struct news){.kind = NEWS_NOT_STARTED, .value = reason});
        _exit(CANNOT_START);
    }
    k.command = start_command(job, output, news);
    close(output);
    if (k.command < 0)
        _exit(CANNOT_START);
    keep(&k);
    tell(news, (struct news){.kind = NEWS_ENDED, .value = k.status, .asked = k.asked});
    _exit(0);
}
