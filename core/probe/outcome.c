// The rows, and which of them a trial is.
#include "core/probe/outcome.h"

enum { SIGNAL_KILL = 9, SHELL_SIGNAL = 128 };

const struct outcome_row outcome_rows[OUTCOMES] = {
    [OUTCOME_FITS] = {"fits", "fits", LENGTH_FITS, false},
    [OUTCOME_GPU_MEMORY] = {"gpu_memory", "out of GPU memory", LENGTH_FAILS, false},
    [OUTCOME_HOST_MEMORY] = {"host_memory", "out of host memory", LENGTH_FAILS, false},
    [OUTCOME_DEVICE_ERROR] = {"device_error", "NCCL or CUDA error", LENGTH_UNDECIDED, true},
    [OUTCOME_TIMEOUT] = {"timeout", "timeout", LENGTH_UNDECIDED, true},
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

static enum outcome outcome_of_class(enum doctor_class class, const struct ending *ending)
{
    switch (class) {
    case DOCTOR_GPU_MEMORY:
        return OUTCOME_GPU_MEMORY;
    case DOCTOR_HOST_MEMORY:
        return OUTCOME_HOST_MEMORY;
    case DOCTOR_DEVICE_ERROR:
        return OUTCOME_DEVICE_ERROR;
    case DOCTOR_TIMEOUT:
        return OUTCOME_TIMEOUT;
    case DOCTOR_CONFIGURATION:
        return OUTCOME_CONFIGURATION;
    case DOCTOR_DISK:
        return OUTCOME_DISK;
    case DOCTOR_STOPPED:
    case DOCTOR_SIGN:
        return was_killed(ending) ? OUTCOME_HOST_MEMORY : OUTCOME_FAILED;
    }
    return OUTCOME_FAILED;
}

// A kill that nobody of ours sent is the kernel's: host memory, as far as anyone can tell.
enum outcome outcome_of(const struct ending *ending, const struct doctor_result *log)
{
    if (ending->interrupted)
        return OUTCOME_INTERRUPTED;
    if (!ending->timed_out && !ending->signalled && ending->status == 0)
        return OUTCOME_FITS;
    bool memory = log->cause && (log->cause->kind->class == DOCTOR_GPU_MEMORY ||
                                 log->cause->kind->class == DOCTOR_HOST_MEMORY);
    if (ending->timed_out && !memory)
        return OUTCOME_TIMEOUT;
    if (ending->oom_killed && !memory)
        return OUTCOME_HOST_MEMORY;
    if (log->cause)
        return outcome_of_class(log->cause->kind->class, ending);
    return was_killed(ending) ? OUTCOME_HOST_MEMORY : OUTCOME_FAILED;
}
