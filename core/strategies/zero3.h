// DeepSpeed's ZeRO-3 (0.19.8, deepspeed/runtime/zero/stage3.py): every parameter is cut into equal
// parts, one a rank; rank 0 is followed here.
#ifndef FATHOM_STRATEGIES_ZERO3_H
#define FATHOM_STRATEGIES_ZERO3_H

#include "core/models/trainer.h"

extern const struct sharding zero3_sharding;

#endif
