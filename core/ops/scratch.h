// The scratch that CUDA kernels and libraries ask for.
#ifndef FATHOM_OPS_SCRATCH_H
#define FATHOM_OPS_SCRATCH_H

#include "core/autograd/graph.h"

// What cub's radix sort of 64-bit keys with 64-bit values takes, for so many bits of the keys, and
// what its scan takes.
uint64_t sort_scratch(uint64_t rows, uint64_t bits);
uint64_t scan_scratch(uint64_t rows);

// A grouped matrix product's arguments, then CUTLASS's workspace.
void grouped_scratch(struct graph *g, uint64_t groups);

// attention.c: of a fused kernel's backward pass.
void attention_scratch(struct graph *g, uint64_t q_bytes, uint64_t k_bytes, uint64_t row_bytes);

// The first matrix product on a thread makes cuBLAS's workspace, which stays.
void gemm_workspace(struct graph *g);
void fused_bias_workspace(struct graph *g);

#endif
