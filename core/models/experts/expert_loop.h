// Experts that are called one after another.
#ifndef FATHOM_MODELS_EXPERT_LOOP_H
#define FATHOM_MODELS_EXPERT_LOOP_H

#include "core/models/experts/routers.h"

struct var experts_in_turn(struct graph *g, struct var x, const struct routing *r,
                           const struct layer_call *call);

#endif
