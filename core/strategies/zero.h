// DeepSpeed's ZeRO, stages 1 and 2 (0.19.8, deepspeed/runtime/zero/stage_1_and_2.py): every rank
// has all parameters in bf16, in one flat tensor; fp32 copies, moments and (stage 2) gradients are
// cut into equal parts of that tensor, of which rank 0's is followed here.
#ifndef FATHOM_STRATEGIES_ZERO_H
#define FATHOM_STRATEGIES_ZERO_H

#include "core/models/trainer.h"

// What transformers puts in for "auto" in a DeepSpeed configuration
// (transformers/integrations/deepspeed.py): buckets of hidden x hidden elements.
uint64_t zero_bucket_elements(const struct job *p);

// How often a backward pass gives a gradient to a parameter.
int zero_uses_of(const struct trainer *t, int parameter);

// zero_host.c: what a rank keeps in host memory.
uint64_t zero_host_bytes(const struct job *p);

void zero_build(struct trainer *t); // once the parameters are there
void zero_before_forward(struct trainer *t);
void zero_end_backward(struct trainer *t);
void zero_step(struct trainer *t); // clipping, the optimizer and what follows

#endif
