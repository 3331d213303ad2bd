// Rotary positions as complex numbers in fp32, as modeling_deepseek_v2.py and modeling_llama4.py of
// transformers 5.17 read: heads are cast, multiplied and cast back. Left out is that a backward
// pass copies the positions to conjugate them.
#include "core/models/forward.h"
#include "core/ops/scratch.h"

void complex_rotary(struct trainer *t, uint64_t tokens, struct layer_arguments *to)
{
    struct graph *g = &t->graph;
    uint64_t angles = tokens * t->job->model.rotary_dim / 2;
    struct scope f = scope_in(g);
    local(&f, constant(g, tokens, 4)); // positions
    local(&f, constant(g, angles, 4));
    gemm_workspace(g); // the angles are a matrix product
    struct var ones = constant(g, angles, 4);
    struct var turns = local(&f, after(g, constant(g, angles, 8), ones));
    assign(&f, &turns, constant(g, angles, 8)); // scaled
    to->cosine = taken(turns);
    to->sine = (struct var){NULL, NO_NODE, 8, 0};
    ends(&f);
}

struct heads complex_turned(struct graph *g, struct var q, struct var k,
                            const struct layer_arguments *also)
{
    struct scope f = scope_in(g);
    struct var q_wide = local(&f, cast(g, q, 4)), k_wide = local(&f, cast(g, k, 4));
    struct var turns = also->cosine;
    turns.width = 4; // two numbers each
    struct heads h = {.q = cast(g, multiply_constant(g, q_wide, turns), q.width)};
    h.k = cast(g, multiply_constant(g, k_wide, turns), k.width);
    ends(&f);
    return h;
}
