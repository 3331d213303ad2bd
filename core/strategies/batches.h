// The batches of a step, and the job as it is for one of them where they differ in length.
#ifndef FATHOM_STRATEGIES_BATCHES_H
#define FATHOM_STRATEGIES_BATCHES_H

#include "core/models/trainer.h"

enum { MOST_BATCH_COLUMNS = 6 };

// Whether each rank of a sequence parallel group takes its part of every batch, and the parts, a
// column each.
bool batch_is_split(const struct trainer *t);
void batch_take_parts(struct trainer *t, struct storage **parts);

// As transformers' Trainer loads them.
void batches_load(struct trainer *t);

// Around a micro-batch of the step: `job` is then that batch's, of a reference beside it too.
void batch_enter(struct trainer *t, uint64_t micro_batch);
void batch_leave(struct trainer *t);

#endif
