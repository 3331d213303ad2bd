// The rows, and which of them a trial is.
#include "core/probe/outcome.h"

#include "core/base/compiler.h"

// Exit statuses of shells: a command that may not be run, one that is not there.
enum { CANNOT_RUN = 126, NOT_FOUND = 127 };
enum { SIGNAL_HANGUP = 1, SIGNAL_INTERRUPT = 2, SIGNAL_KILL = 9, SIGNAL_END = 15 };

const struct outcome_row outcome_rows[OUTCOMES] = {
    [OUTCOME_FITS] = {"fits", "fits", LENGTH_FITS, false},
    [OUTCOME_GPU_MEMORY] = {"gpu_memory", "out of GPU memory", LENGTH_FAILS, false},
    [OUTCOME_HOST_MEMORY] = {"host_memory", "out of host memory", LENGTH_FAILS, false},
    [OUTCOME_MEMORY_TAKEN] = {"memory_taken", "GPU memory taken by other processes",
                              LENGTH_UNDECIDED, true},
    [OUTCOME_DEVICE_ERROR] = {"device_error", "NCCL or CUDA error", LENGTH_UNDECIDED, true},
    [OUTCOME_TIMEOUT] = {"timeout", "timeout", LENGTH_UNDECIDED, true},
    [OUTCOME_RENDEZVOUS] = {"rendezvous", "ranks not brought together", LENGTH_UNDECIDED, true},
    [OUTCOME_STOPPED] = {"stopped", "stopped from outside", LENGTH_UNDECIDED, true},
    [OUTCOME_CONFIGURATION] = {"configuration", "configuration error", LENGTH_UNDECIDED, false},
    [OUTCOME_DISK] = {"disk", "disk full", LENGTH_UNDECIDED, false},
    [OUTCOME_FAILED] = {"failed", "failed", LENGTH_UNDECIDED, false},
    [OUTCOME_INTERRUPTED] = {"interrupted", "interrupted", LENGTH_UNDECIDED, false},
};

// Kinds of the doctor's in which the trial would have had its memory without others on the card.
static const char *const of_others[] = {"other-process", "startup-memory"};

// What a trial that ends well is not believed against, and kinds of it that runs get over without
// another word: a hub that is not reached, a port that is taken.
static const enum doctor_class fatal[] = {DOCTOR_GPU_MEMORY, DOCTOR_HOST_MEMORY,
                                          DOCTOR_DEVICE_ERROR, DOCTOR_TIMEOUT};
static const char *const harmless[] = {"network", "rendezvous"};

bool outcome_from_name(enum outcome *o, struct str name)
{
    for (int i = 0; i < OUTCOMES; i++) {
        if (str_is(name, outcome_rows[i].name)) {
            *o = (enum outcome)i;
            return true;
        }
    }
    return false;
}

static bool ended_well(const struct ending *e)
{
    return !e->timed_out && !e->signalled && !e->lost && e->status == 0;
}

static bool was_killed(const struct ending *e)
{
    return e->signalled ? e->status == SIGNAL_KILL : e->status == SHELL_SIGNAL + SIGNAL_KILL;
}

// A kill that nobody of ours sent is the kernel's: host memory, as far as anyone can tell.
static enum outcome outcome_of_status(const struct ending *e)
{
    int signal = e->signalled ? e->status : e->status - SHELL_SIGNAL;
    if (was_killed(e))
        return OUTCOME_HOST_MEMORY;
    if (signal == SIGNAL_HANGUP || signal == SIGNAL_INTERRUPT || signal == SIGNAL_END)
        return OUTCOME_STOPPED;
    bool started = e->signalled || (e->status != CANNOT_RUN && e->status != NOT_FOUND);
    return started ? OUTCOME_FAILED : OUTCOME_CONFIGURATION;
}

static bool is_memory(const struct doctor_finding *f)
{
    return f && (f->kind->class == DOCTOR_GPU_MEMORY || f->kind->class == DOCTOR_HOST_MEMORY);
}

static bool is_one_of(const struct doctor_kind *kind, const char *const *names, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        if (str_is(str_from(kind->name), names[i]))
            return true;
    return false;
}

static enum outcome outcome_of_kind(const struct doctor_kind *kind, const struct ending *ending)
{
    switch (kind->class) {
    case DOCTOR_GPU_MEMORY:
        return is_one_of(kind, of_others, COUNT_OF(of_others)) ? OUTCOME_MEMORY_TAKEN
                                                               : OUTCOME_GPU_MEMORY;
    case DOCTOR_HOST_MEMORY:
        return OUTCOME_HOST_MEMORY;
    case DOCTOR_DEVICE_ERROR:
        return OUTCOME_DEVICE_ERROR;
    case DOCTOR_TIMEOUT:
        return str_is(str_from(kind->name), "rendezvous") ? OUTCOME_RENDEZVOUS : OUTCOME_TIMEOUT;
    case DOCTOR_CONFIGURATION:
        return OUTCOME_CONFIGURATION;
    case DOCTOR_DISK:
        return OUTCOME_DISK;
    case DOCTOR_STOPPED:
        if (kind->transient && !was_killed(ending))
            return OUTCOME_STOPPED;
        break;
    case DOCTOR_SIGN:
        break;
    }
    return outcome_of_status(ending);
}

// Whether the run went on after it: the doctor says so, or the last of all steps was reported.
static bool went_on(const struct doctor_finding *f, const struct doctor_result *log)
{
    bool all_steps = log->steps_total > 0 && log->last_step >= log->steps_total;
    return f->survived || (all_steps && f->step < log->last_step);
}

static bool is_fatal(const struct doctor_kind *kind)
{
    bool found = false;
    for (ptrdiff_t i = 0; i < COUNT_OF(fatal); i++)
        found |= kind->class == fatal[i];
    return found && !is_one_of(kind, harmless, COUNT_OF(harmless));
}

// What ended a run whose exit status is 0: launchers that catch everything and pipes hide failures.
static const struct doctor_finding *hidden_failure(const struct ending *ending,
                                                   const struct doctor_result *log)
{
    const struct doctor_finding *found = NULL;
    for (ptrdiff_t i = 0; i < log->count; i++) {
        const struct doctor_finding *f = &log->findings[i];
        bool counts = ending->hides_failures || is_fatal(f->kind);
        bool heavier = f->kind->weight > (found ? found->kind->weight : DOCTOR_AFTERMATH);
        if (counts && heavier && !went_on(f, log))
            found = f;
    }
    return found || !ending->admits_failure ? found : log->cause;
}

const struct doctor_finding *outcome_cause(const struct ending *ending,
                                           const struct doctor_result *log)
{
    if (!ended_well(ending))
        return log->cause;
    return ending->said_done ? NULL : hidden_failure(ending, log);
}

enum outcome outcome_of(const struct ending *ending, const struct doctor_result *log)
{
    const struct doctor_finding *cause = outcome_cause(ending, log);
    bool well = ended_well(ending);
    if (ending->interrupted)
        return OUTCOME_INTERRUPTED;
    if (ending->lost)
        return OUTCOME_FAILED;
    if (ending->timed_out && !is_memory(cause))
        return OUTCOME_TIMEOUT;
    if (!well && ending->oom_killed && !is_memory(cause))
        return OUTCOME_HOST_MEMORY;
    if (cause)
        return outcome_of_kind(cause->kind, ending);
    if (well && ending->unplayed)
        return OUTCOME_CONFIGURATION;
    if (well && (ending->said_done || !ending->admits_failure))
        return OUTCOME_FITS;
    return outcome_of_status(ending);
}

struct str outcome_detail(struct arena *a, const struct doctor_finding *cause)
{
    enum { MOST_BYTES = 300 };
    if (!cause)
        return STR_NONE;
    struct str said = str_cut(cause->text, '\n').head;
    said = str_slice(said, 0, said.n < MOST_BYTES ? said.n : MOST_BYTES);
    return str_format(a, "%s: %.*s", cause->kind->title, STR_ARGS(said));
}

enum outcome outcome_of_error(enum error_code code)
{
    return code == ERROR_BAD_INPUT ? OUTCOME_CONFIGURATION
           : code == ERROR_IO      ? OUTCOME_DISK
                                   : OUTCOME_FAILED;
}

static bool says(struct str text, struct str words)
{
    for (ptrdiff_t i = 0; i + words.n <= text.n; i++)
        if (text.p[i] == words.p[0] && str_equal(str_slice(text, i, i + words.n), words))
            return true;
    return false;
}

bool outcome_is_told(struct arena scratch, struct str tail)
{
    struct doctor *d = doctor_new(&scratch);
    doctor_feed(d, tail);
    struct doctor_result log = doctor_end(d, &scratch);
    return is_memory(log.cause) && says(tail, STR("Traceback (most recent call last)"));
}
