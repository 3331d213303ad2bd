// Which layers are alike: their forward makes the same calls (core/autograd/stamp.h).
#ifndef FATHOM_MODELS_KIN_H
#define FATHOM_MODELS_KIN_H

#include "core/models/trainer.h"

struct kin kin_of(struct trainer *t, int layer);

#endif
