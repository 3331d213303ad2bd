// Head and loss over tiles of tokens and words, whose products are never there all at once.
#ifndef FATHOM_OPS_LOSS_TILES_H
#define FATHOM_OPS_LOSS_TILES_H

#include "core/base/num.h"
#include "core/ops/operation.h"

enum { TILE_TOKENS = 4096, TILE_WORDS = 32768 };

struct head_size {
    uint64_t tokens, columns, words;
};

// Autocast's type, else the hidden states'.
static inline uint32_t compute_width(const struct graph *g)
{
    return g->wide ? 4 : 2;
}

// Products of hidden states and head, tile by tile, and what is read and written of the tiles.
static inline void head_products(struct graph *g, struct head_size d, int count)
{
    uint64_t tiles = u64_divide_up(d.tokens, TILE_TOKENS) * u64_divide_up(d.words, TILE_WORDS);
    for (int i = 0; i < count; i++)
        multiplies(g, (struct product_shape){d.tokens, d.words, d.columns, 1, compute_width(g)});
    moves(g, 3 * d.tokens * d.words * compute_width(g));
    machine_host(g->machine, (double)tiles * machine_rates(g->machine)->call * 4);
}

#endif
