// FSDP2 (torch 2.11, torch/distributed/fsdp/_fully_shard): each decoder layer is a unit, so are
// embedding and head where they are not tied, and the root holds the rest. Parameters live as
// shards; a unit is gathered before it runs and let go after; gradients are reduced to shards unit
// by unit.
#ifndef FATHOM_STRATEGIES_FSDP2_H
#define FATHOM_STRATEGIES_FSDP2_H

#include "core/models/trainer.h"

extern const struct sharding fsdp2_sharding;

#endif
