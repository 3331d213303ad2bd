// How a trial ended, and what follows from it. Each way is a row: whether it decides the length,
// whether merely trying again may help, and how it is told.
#ifndef FATHOM_PROBE_OUTCOME_H
#define FATHOM_PROBE_OUTCOME_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/doctor/doctor.h"

enum outcome {
    OUTCOME_FITS,
    OUTCOME_GPU_MEMORY,
    OUTCOME_HOST_MEMORY,
    OUTCOME_MEMORY_TAKEN, // by others: says nothing about the length
    OUTCOME_DEVICE_ERROR,
    OUTCOME_TIMEOUT,
    OUTCOME_RENDEZVOUS, // a port in use, a peer that was not there
    OUTCOME_STOPPED,    // by somebody else: a scheduler, a signal, a server that died
    OUTCOME_CONFIGURATION,
    OUTCOME_DISK,
    OUTCOME_FAILED,      // for a reason the log does not give
    OUTCOME_INTERRUPTED, // by us: says nothing about the length
    OUTCOMES,
};

enum verdict_on_length { LENGTH_UNDECIDED, LENGTH_FITS, LENGTH_FAILS };

struct outcome_row {
    const char *name;  // "gpu_memory", as the store and JSON spell it
    const char *title; // "out of GPU memory"
    enum verdict_on_length verdict;
    bool transient; // tried again
};

extern const struct outcome_row outcome_rows[OUTCOMES];

// False where no outcome has this name.
bool outcome_from_name(enum outcome *o, struct str name);

enum { SHELL_SIGNAL = 128 }; // and the signal: the exit status that shells give for one

// What the supervisor saw of the process, and what is known of it.
struct ending {
    bool timed_out, interrupted;
    bool lost;      // nobody saw the end
    bool signalled; // `status` is a signal's number, else an exit status
    int status;
    bool oom_killed;     // the kernel killed for want of memory meanwhile
    bool said_done;      // a worker reported that it has made all of its steps
    bool hides_failures; // its exit status is 0 whatever happened
    bool admits_failure; // in words of its own
    bool unplayed;       // ranks were to be played, and nothing asked for them
};

// The log's word weighs most, then the ending's. A run that ends well fits, unless its log says
// that it ran out of memory, or that the GPUs failed, and did not go on.
enum outcome outcome_of(const struct ending *ending, const struct doctor_result *log);

// The finding that decided, NULL where none did.
const struct doctor_finding *outcome_cause(const struct ending *ending,
                                           const struct doctor_result *log);

// The cause's title and the first line of what was said; empty without one.
struct str outcome_detail(struct arena *a, const struct doctor_finding *cause);

// Of a trial that could not be started or watched.
enum outcome outcome_of_error(enum error_code code);

// Whether the last words of a trial that is silent are an out-of-memory error with its traceback.
// Trainers that catch one say so in words of their own, or go on.
bool outcome_is_told(struct arena scratch, struct str tail);

#endif
