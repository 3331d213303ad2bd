// The files of families, and what rows of both have in common.
#ifndef FATHOM_MODEL_FAMILY_H
#define FATHOM_MODEL_FAMILY_H

#include "core/model/model.h"

extern const struct family dense_families[], expert_families[];
extern const ptrdiff_t dense_family_count, expert_family_count;

#define QWEN3_VISION                                                                             \
    "vision.patch_size=16 vision.in_channels=3 vision.temporal_patch_size=2 "                    \
    "vision.spatial_merge_size=2 vision.num_position_embeddings=2304 vision.deepstack_count=3 "  \
    "vision.deepstack_at.0=8 vision.deepstack_at.1=16 vision.deepstack_at.2=24 "                 \
    "vision.depth=27 vision.hidden_size=1152 vision.intermediate_size=4304 vision.num_heads=16 " \
    "vision.out_hidden_size=3584"

#endif
