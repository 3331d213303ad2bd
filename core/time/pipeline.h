// How long the stages of a pipeline take together: each rank does its forward and backward passes
// in Megatron-LM's order, and waits for what others hand it (core/pipeline_parallel/schedules.py
// of core 0.13).
#ifndef FATHOM_TIME_PIPELINE_H
#define FATHOM_TIME_PIPELINE_H

#include <stdint.h>

#include "core/base/arena.h"

// Of a rank's stages the first and the last may differ from those between them.
enum { STAGE_FIRST, STAGE_BETWEEN, STAGE_LAST, STAGE_PLACES };

// What a rank takes when nothing makes it wait, in seconds.
struct passing {
    double forward[STAGE_PLACES], backward[STAGE_PLACES]; // a micro-batch through one stage
    double rest; // what follows the last of them: gradients' sum, the update
};

static inline int stage_place(uint64_t stage, uint64_t stages)
{
    return stage == 0 ? STAGE_FIRST : stage == stages - 1 ? STAGE_LAST : STAGE_BETWEEN;
}

struct pipeline {
    struct passing first, between, last; // of the ranks
    uint64_t ranks;
    uint64_t stages; // a rank, in turn with others'
    uint64_t batches;
    double transfer; // of what a stage hands to the next, seconds
};

// How many turns go ahead before the first comes back, and of which stage and micro-batch a turn
// is.
uint64_t turns_ahead(const struct pipeline *p, uint64_t rank);
uint64_t turn_stage(const struct pipeline *p, uint64_t turn, bool back);
uint64_t turn_batch(const struct pipeline *p, uint64_t turn);

// Of a whole step.
double pipeline_seconds(const struct pipeline *p, struct arena scratch);

// Of all micro-batches once, without a way back.
double pipeline_reading(const struct pipeline *p, struct arena scratch);

// That its ranks wait, of all of their seconds.
double pipeline_bubble(const struct pipeline *p, double seconds);

#endif
