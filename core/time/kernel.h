// How long kernels take: products by tiles and waves, attention by the blocks that a causal mask
// leaves, all others by the bytes they read and write.
#ifndef FATHOM_TIME_KERNEL_H
#define FATHOM_TIME_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/time/rates.h"

// out[rows, columns] = a[rows, depth] b[depth, columns], `count` times, in one kernel.
struct product_shape {
    uint64_t rows, columns, depth, count;
    uint32_t width; // bytes an element
    bool grouped;   // by CUTLASS, a matrix for each expert
    bool added;     // to what lies there, in fp32
    uint64_t more;  // kernels like this that follow it
};

// `rows` sequences of `tokens`; keys and values shared by heads.
struct attending_shape {
    uint64_t rows, tokens, heads, kv_heads, head_dim;
    bool all_pairs; // a mask is read, no block is left out
    bool flash2, backward;
};

double product_flops(const struct product_shape *p);
double product_seconds(const struct rates *r, const struct product_shape *p);
double attending_flops(const struct attending_shape *a); // that a model counts
double attending_seconds(const struct rates *r, const struct attending_shape *a);
double moving_seconds(const struct rates *r, double bytes);

#endif
