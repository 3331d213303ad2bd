// How long a step takes, of a prediction's last simulated one: with the range in which such
// predictions were off, and what bounds it.
#ifndef FATHOM_PREDICT_STEP_TIME_H
#define FATHOM_PREDICT_STEP_TIME_H

#include "core/job/job.h"
#include "core/time/timeline.h"

struct step_time {
    const char *unknown; // why there is none of a whole step; NULL where there is
    const char *beside; // why it is of the update alone, which the rest is then of; NULL: it is not
    double seconds, low, high;
    double waits;             // of it, for the host's launches and for other ranks
    double tokens_per_second; // of each GPU
    double mfu;               // of the card's dense bf16 rate; 0 where that is not known
    const char *bound_by;
    double bubble;        // that ranks of a pipeline wait, of it; 0 without one
    double reading;       // beside it, of the same micro-batches forward alone; 0: not known
    const char *basis;    // what the range comes from
    double mean_tokens;   // of real sequences; 0: none were described, all are --context long
    double padded_tokens; // that a batch of them is padded to
    double longest;       // seconds of a step whose batches are as long as memory must be for
    uint64_t epoch_steps; // over the data; 0: how many there are was not said
    const char *inside, *across; // what is between several GPUs, between nodes; NULL: one
};

// Why no time is known of a job's steps, before any is simulated; NULL where it is.
const char *step_time_unknown(const struct job *job);

// The same of the update alone, where a step holds generation: what can be ranked by all the same.
const char *step_update_unknown(const struct job *job);

// Makes it the update's, where that is all that is known.
void step_time_of_update(struct step_time *t);

// Where time is counted: on which card, between what, before which host.
bool timeline_for(struct timeline *t, const struct job *job, struct error *e) MUST_USE;

// Of a step that has just ended.
struct step_time step_time_of(const struct job *job, double seconds, const struct timeline *line);

#endif
