// DistributedDataParallel (torch 2.11): every rank has everything; a reducer holds a second copy of
// the gradients, in buckets.
#ifndef FATHOM_STRATEGIES_DDP_H
#define FATHOM_STRATEGIES_DDP_H

#include "core/models/trainer.h"

void ddp_build(struct trainer *t);          // once the parameters are there
void ddp_before_forward(struct trainer *t); // of every micro-batch

#endif
