// Building a training job and running its steps, whatever the strategy.
#ifndef FATHOM_STRATEGIES_TRAINER_H
#define FATHOM_STRATEGIES_TRAINER_H

#include "core/models/trainer.h"

// The first makes gradients, the others add to them: more repeat the last.
enum { DIFFERENT_MICRO_BATCHES = 3 };

// Everything before the first step.
void trainer_build(struct trainer *t, const struct job *p, struct machine *m,
                   const struct habits *habits);

// A second model of the same shape that is only read, on streams of its own.
void trainer_build_reference(struct trainer *t, const struct job *p, struct machine *m,
                             const struct habits *habits);

// One of another shape, which `learner` learns from.
void trainer_build_teacher(struct trainer *t, const struct job *p, struct machine *m,
                           const struct habits *habits, const struct job *learner);

// What its graphs know of the job.
struct graph trainer_graph(struct trainer *t, const struct job *p);

// Whether the model that is trained is read first, as it was loaded.
bool trainer_reads_first(const struct trainer *t);

void trainer_step(struct trainer *t);
uint64_t trainer_micro_batches(const struct job *p); // that a step is made of here
void trainer_micro_batch(struct trainer *t);         // forward and backward
void trainer_update(struct trainer *t);              // clipping, optimizer, zero_grad
void trainer_read_value(struct trainer *t); // the loss or a norm, where the framework reads them

#endif
