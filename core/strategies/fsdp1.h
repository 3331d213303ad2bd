// FSDP1 (torch 2.11, torch/distributed/fsdp, FullyShardedDataParallel) as most trainers set it up:
// FULL_SHARD, fp32 shards, bf16 compute, fp32 reduction, flat parameters, one unit a decoder layer;
// embedding, final norm and head belong to the root.
#ifndef FATHOM_STRATEGIES_FSDP1_H
#define FATHOM_STRATEGIES_FSDP1_H

#include "core/models/trainer.h"

extern const struct sharding fsdp1_sharding;

#endif
