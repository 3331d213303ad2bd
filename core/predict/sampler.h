// The order in which transformers' Trainer draws sequences, and how TRL packs them: what libraries
// compute from lengths and a seed, to the row (tests/data/samplers.json has what they answered).
#ifndef FATHOM_PREDICT_SAMPLER_H
#define FATHOM_PREDICT_SAMPLER_H

#include <stdint.h>

#include "core/base/arena.h"

enum { SAMPLER_SEED = 42, SAMPLER_MOST_ROWS = 1 << 22 };

struct rows {
    uint32_t *tokens;
    ptrdiff_t count;
};

// Of the first epoch: accelerate 1.15, data_loader.py, SeedableRandomSampler, which is
// torch.randperm by a generator of its own, seeded as the Trainer was (transformers 5.17,
// training_args.py: 42).
void sampler_shuffle(uint32_t *order, ptrdiff_t count);

// Rows of up to `most` tokens, made of whole sequences (trl 1.16, data_utils.py, _pack_bfd).
struct rows sampler_pack(struct arena *a, struct rows sequences, uint32_t most);

#endif
