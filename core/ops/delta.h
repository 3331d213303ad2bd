// What gated delta nets need beside the other operators (delta.c).
#ifndef FATHOM_OPS_DELTA_H
#define FATHOM_OPS_DELTA_H

#include "core/ops/ops.h"

// A depthwise convolution over each of `channels`, padded on both sides; the caller cuts the end.
struct var op_convolution(struct graph *g, struct var x, int parameter);

// With one parameter's values added to each row.
struct var op_add_shift(struct graph *g, struct var x, int parameter);

// Differences of all pairs among each `group` values.
struct var op_differences(struct graph *g, struct var x, uint64_t group);

// torch.linalg.solve_triangular: of as many systems as there are, with `b` on their right.
struct var op_solve(struct graph *g, struct var systems, struct var b);

#endif
