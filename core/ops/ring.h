// Ring attention: torch's context parallel over scaled_dot_product_attention.
#ifndef FATHOM_OPS_RING_H
#define FATHOM_OPS_RING_H

#include "core/ops/ops.h"

// Tokens, labels, mask, shifted labels and positions, each as it came and as it was dealt out.
enum { RING_BUFFERS = 5 };

struct ring {
    struct attention_shape shape; // of this rank's own tokens
    uint64_t ranks, rank;
    struct var batch[RING_BUFFERS], dealt[RING_BUFFERS], piece;
};

// A micro-batch comes whole to every rank, which cuts out its own tokens in place: the buffers keep
// their memory until the step's end, and so do the pieces.
void ring_take_batch(struct graph *g, struct ring *r);
void ring_drop_batch(struct graph *g, struct ring *r);
struct var ring_tokens(const struct ring *r);
struct var ring_positions(const struct ring *r);

struct var ring_attention(struct graph *g, struct var q, struct var k, struct var v,
                          const struct ring *r);

#endif
