// Finding what nobody keeps any more, naming it, and ending it as a keeper would.
#include "host/trials/leftovers.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/probe/tell.h"
#include "host/files/file.h"
#include "host/trials/descendants.h"

// A server's keeper, which the store does not know, takes half a second to end it. What cannot be
// killed for so long after the grace waits for a device.
enum { KEPT_MS = 3000, GIVE_UP_MS = 30000, STEP_MS = 20, NAME_BYTES = 64 };

static const char variable[] = "FATHOM_RUN";

struct str run_mark(struct arena *a)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = monotonic_ms() << 32 | (uint64_t)getpid();
    const char *value = str_z(a, str_format(a, "%016llx", (unsigned long long)number));
    (void)setenv(variable, value, 1);
    return str_format(a, "%s=%s", variable, value);
}

// The kernel's name of a process; a program may choose any bytes.
static struct str name_of(struct arena *a, pid_t pid)
{
    struct error ignored = {0};
    struct str text = STR_NONE;
    struct str path = str_format(a, "/proc/%ld/comm", (long)pid);
    if (!file_read(&text, a, path, NAME_BYTES, &ignored))
        return STR("?");
    struct buf b = buf_in(a);
    struct str name = str_cut(text, '\n').head;
    for (ptrdiff_t i = 0; i < name.n; i++) {
        bool shown = name.p[i] > ' ' && name.p[i] <= '~';
        buf_put(&b, shown ? str_slice(name, i, i + 1) : STR("?"));
    }
    return buf_str(&b);
}

// "process 17 (python3) and 2 more, started 2026-11-15 19:30 UTC"
static struct str describe(struct arena *a, const struct traces *t, struct trial_left left)
{
    struct buf b = buf_in(a);
    struct tm when = {0};
    time_t seconds = (time_t)(t->started_ms / 1000);
    char text[32];
    (void)gmtime_r(&seconds, &when);
    (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M", &when);
    struct str name = name_of(a, left.first);
    buf_printf(&b, "process %ld (%.*s)", (long)left.first, STR_ARGS(name));
    if (left.count > 1)
        buf_printf(&b, " and %td more", left.count - 1);
    buf_printf(&b, ", started %s UTC", text);
    return buf_str(&b);
}

// Sends the signal again and again until nothing is left or the time is over.
static bool wait_until_gone(struct trial_left *left, const struct leftovers *l,
                            const struct traces *t, int signal_number, uint64_t ms)
{
    uint64_t until = monotonic_ms() + ms;
    struct pollfd interrupt = {l->interrupts->fd, POLLIN, 0};
    for (;;) {
        *left = trial_signal(signal_number, t->leader, t->mark);
        if (!left->count || monotonic_ms() >= until)
            return true;
        if (poll(&interrupt, 1, STEP_MS) > 0 && interrupts_pending(l->interrupts))
            return false;
    }
}

static bool end_trial(const struct leftovers *l, const struct traces *t, struct str what,
                      struct error *e)
{
    struct trial_left left = trial_signal(SIGTERM, t->leader, t->mark);
    if (!wait_until_gone(&left, l, t, 0, l->grace_ms) ||
        (left.count && !wait_until_gone(&left, l, t, SIGKILL, GIVE_UP_MS)))
        return tell_interrupted(e);
    if (left.count)
        return FAIL(e, CHILD, STR_NONE,
                    "the trial of %llu tokens that a killed fathom left cannot be ended: %.*s",
                    (unsigned long long)t->context, STR_ARGS(describe(l->arena, t, left)));
    struct buf b = buf_in(l->arena);
    buf_printf(&b, "ended the trial of %llu tokens that a killed fathom left: %.*s\n",
               (unsigned long long)t->context, STR_ARGS(what));
    l->console->line(l->console->context, buf_str(&b));
    return true;
}

static bool settle(const struct leftovers *l, const struct traces *t, struct error *e)
{
    struct trial_left left;
    if (!wait_until_gone(&left, l, t, 0, KEPT_MS))
        return tell_interrupted(e);
    if (!left.count)
        return true;
    struct str what = describe(l->arena, t, left);
    if (l->end)
        return end_trial(l, t, what, e);
    FAIL(e, CHILD, STR_NONE,
         "the trial of %llu tokens that a killed fathom left still runs: %.*s; its log is %.*s",
         (unsigned long long)t->context, STR_ARGS(what), STR_ARGS(str_short(t->log)));
    return HINT(e, "--end-running ends it");
}

bool leftovers_settle(const struct leftovers *l, struct error *e)
{
    struct traces *traces;
    ptrdiff_t count;
    if (!store_traces(&traces, &count, l->store, l->arena, e))
        return false;
    for (ptrdiff_t i = 0; i < count; i++)
        if (!settle(l, &traces[i], e))
            return false;
    return true;
}
