// The backward pass of each operator, and the scratch that CUDA kernels ask for.
#ifndef FATHOM_AUTOGRAD_BACKWARD_H
#define FATHOM_AUTOGRAD_BACKWARD_H

#include "core/autograd/graph.h"

// Fills in the gradients for the node's inputs; n->gradient stays the node's.
void backward_of(struct graph *g, struct node *n, struct outcome out[NODE_INPUTS]);

// What a sum over rows takes and gives back.
void reduction_scratch(struct graph *g, const struct reduction *r);

// What cub's radix sort of 64-bit keys with 64-bit values takes, for so many bits of the keys.
uint64_t sort_scratch(uint64_t rows, uint64_t bits);

// A grouped matrix product's arguments, then CUTLASS's workspace.
void grouped_scratch(struct graph *g, uint64_t groups);

// What the scales of so many four-bit elements take once they are fp32.
uint64_t packed_scale_bytes(uint64_t elements);

// The first matrix product on a thread makes cuBLAS's workspace, which stays.
void gemm_workspace(struct graph *g);
void fused_bias_workspace(struct graph *g);

void fused_policy_backward(struct graph *g, struct node *n, struct outcome *out); // fused_policy.c
void chunked_entropy_backward(struct graph *g, struct node *n,
                              struct outcome *out); // policy_entropy.c

#endif
