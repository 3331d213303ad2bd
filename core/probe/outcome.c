// The rows, and which of them a trial is.
#include "core/probe/outcome.h"

// Exit statuses of shells: a command that may not be run, one that is not there, a signal.
enum { CANNOT_RUN = 126, NOT_FOUND = 127, SHELL_SIGNAL = 128 };
enum { SIGNAL_HANGUP = 1, SIGNAL_INTERRUPT = 2, SIGNAL_KILL = 9, SIGNAL_END = 15 };

const struct outcome_row outcome_rows[OUTCOMES] = {
    [OUTCOME_FITS] = {"fits", "fits", LENGTH_FITS, false},
    [OUTCOME_GPU_MEMORY] = {"gpu_memory", "out of GPU memory", LENGTH_FAILS, false},
    [OUTCOME_HOST_MEMORY] = {"host_memory", "out of host memory", LENGTH_FAILS, false},
    [OUTCOME_DEVICE_ERROR] = {"device_error", "NCCL or CUDA error", LENGTH_UNDECIDED, true},
    [OUTCOME_TIMEOUT] = {"timeout", "timeout", LENGTH_UNDECIDED, true},
    [OUTCOME_RENDEZVOUS] = {"rendezvous", "ranks not brought together", LENGTH_UNDECIDED, true},
    [OUTCOME_STOPPED] = {"stopped", "stopped from outside", LENGTH_UNDECIDED, true},
    [OUTCOME_CONFIGURATION] = {"configuration", "configuration error", LENGTH_UNDECIDED, false},
    [OUTCOME_DISK] = {"disk", "disk full", LENGTH_UNDECIDED, false},
    [OUTCOME_FAILED] = {"failed", "failed", LENGTH_UNDECIDED, false},
    [OUTCOME_INTERRUPTED] = {"interrupted", "interrupted", LENGTH_UNDECIDED, false},
};

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

static enum outcome outcome_of_kind(const struct doctor_kind *kind, const struct ending *ending)
{
    switch (kind->class) {
    case DOCTOR_GPU_MEMORY:
        return OUTCOME_GPU_MEMORY;
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

enum outcome outcome_of(const struct ending *ending, const struct doctor_result *log)
{
    if (ending->interrupted)
        return OUTCOME_INTERRUPTED;
    if (ending->lost)
        return OUTCOME_FAILED;
    if (!ending->timed_out && !ending->signalled && ending->status == 0)
        return OUTCOME_FITS;
    bool memory = log->cause && (log->cause->kind->class == DOCTOR_GPU_MEMORY ||
                                 log->cause->kind->class == DOCTOR_HOST_MEMORY);
    if (ending->timed_out && !memory)
        return OUTCOME_TIMEOUT;
    if (ending->oom_killed && !memory)
        return OUTCOME_HOST_MEMORY;
    if (log->cause)
        return outcome_of_kind(log->cause->kind, ending);
    return outcome_of_status(ending);
}
