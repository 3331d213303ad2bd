// What is written down of a trial, as the store keeps it and reports show it.
#ifndef FATHOM_PROBE_RECORD_H
#define FATHOM_PROBE_RECORD_H

#include <stdint.h>

#include "core/probe/outcome.h"

// torch's statistics of one step as the trainer reported them, 0 where it did not.
struct step_record {
    uint64_t number;                                           // from 1
    uint64_t allocated_bytes, requested_bytes, reserved_bytes; // peaks
    uint64_t end_allocated_bytes, retries;                     // after it; retries since the start
    double seconds;
};

// The largest over all steps.
struct peaks {
    uint64_t steps; // that ended
    uint64_t allocated_bytes, requested_bytes, reserved_bytes, retries;
    double step_seconds; // the least of those after the first; 0: not told
};

// A step's seconds among those of a trial; the first step also loads and compiles.
void peaks_time(struct peaks *p, const struct step_record *s);

struct attempt_record {
    int64_t id;
    uint64_t context;
    int try;
    bool finished;
    enum outcome outcome;
    int status; // exit status, or 128 and a signal
    struct str detail;
    struct str log, command, versions, gpu;
    uint64_t timeout_ms;
    int64_t started_ms, ended_ms; // since 1970
    uint64_t predicted_bytes;     // reserved at the peak; 0: not predicted
    bool predicted_fits;
    uint64_t limit_bytes; // what torch was told to keep to; 0: all there is, or not known
    uint64_t total_bytes; // of the card it ran on; 0: not known
    struct peaks peaks;
    struct step_record *steps;
    ptrdiff_t step_count;
};

struct cell_record {
    int64_t id;
    struct str key; // settings that make the cell what it is, a line each
    struct str model, engine, card;
    struct str config; // the model's configuration as JSON, empty where it is not known
    uint64_t gpus, sp, max_position;
    struct attempt_record *attempts;
    ptrdiff_t attempt_count;
};

#endif
