// The operators that models are written in. Each allocates what torch's eager operator allocates,
// in its order, and keeps what its backward needs. Arguments stay the caller's; results are the
// caller's to drop.
#ifndef FATHOM_AUTOGRAD_OPS_H
#define FATHOM_AUTOGRAD_OPS_H

#include "core/autograd/graph.h"

// The rest of an operator of one input: n (which may be NULL) gets the input and its bytes, the
// output has `elements` of `width`.
struct var op_unary(struct graph *g, struct node *n, struct var x, uint64_t elements,
                    uint32_t width);

struct var op_cast(struct graph *g, struct var x, uint32_t width); // the same tensor if it has it
struct var op_power(struct graph *g, struct var x);                // squares
struct var op_mean(struct graph *g, struct var x, uint64_t rows);  // over the last dimension
struct var op_add_constant(struct graph *g, struct var x);
struct var op_rsqrt(struct graph *g, struct var x);
struct var op_multiply(struct graph *g, struct var a, struct var b); // b may be one value a row
struct var op_multiply_weight(struct graph *g, int parameter, struct var x);
struct var op_multiply_constant(struct graph *g, struct var x, struct var constant);
struct var op_multiply_row(struct graph *g, struct var a, struct var row); // the same for all rows
struct var op_scale(struct graph *g, struct var x);                        // by a number
struct var op_tanh(struct graph *g, struct var x);
struct var op_cap(struct graph *g, struct var x); // softly: divided, tanh, multiplied; takes x over
struct var op_negate(struct graph *g, struct var x);
struct var op_first_half(struct graph *g, struct var x);               // a view
struct var op_second_half(struct graph *g, struct var x);              // a view
struct var op_slice(struct graph *g, struct var x, uint64_t elements); // a view of a part
struct var op_join(struct graph *g, struct var a, struct var b);
struct var op_add(struct graph *g, struct var a, struct var b);
struct var op_add_mask(struct graph *g, struct var x, struct var mask); // one for all heads
struct var op_subtract(struct graph *g, struct var a, struct var b);    // b may be one value a row
struct var op_max(struct graph *g, struct var x, uint64_t rows);
struct var op_sigmoid(struct graph *g, struct var x);
struct var op_clamp(struct graph *g, struct var x, int bounds);
struct var op_softmax(struct graph *g, struct var x);
struct var op_activation(struct graph *g, struct var x);

// A linear layer without bias (parameter) and with one (bias >= 0).
struct var op_linear(struct graph *g, struct var x, int parameter, int bias);

// adapters.c: a linear layer over four-bit weights, and peft's forward of a layer with an adapter,
// whose base has made `result`. Takes result over.
struct var op_packed_linear(struct graph *g, struct var x, int parameter, int bias);
struct var op_adapter(struct graph *g, struct var x, struct var result, int parameter);

// liger.c: head and cross entropy in one, gradients and all, to a scalar.
struct var op_fused_loss(struct graph *g, struct var hidden, int head);

// Matrix products of two tensors; the result has `elements`, each a sum over `depth` products.
struct var op_product(struct graph *g, struct var a, struct var b, uint64_t elements,
                      uint64_t depth);

// A copy into another layout; its gradient needs none.
struct var op_copy(struct graph *g, struct var x);

// A view of x that repeats it to `elements`.
struct var op_expand(struct graph *g, struct var x, uint64_t elements);

// x copied into a part of base, in place. Takes base over.
struct var op_write(struct graph *g, struct var base, struct var x);

// Without bias, both factors cast to `width` first.
struct var op_linear_cast(struct graph *g, struct var x, int parameter, uint32_t width);

// A parameter as a tensor like any other.
struct var op_parameter(struct graph *g, int parameter);

// A view whose gradient has to be copied into another layout on its way back. Takes x over.
struct var op_relayout(struct graph *g, struct var x);

// Marks where a sharded unit begins (its input) or ends (its output). Takes x over.
struct var op_boundary(struct graph *g, struct var x, int unit, bool input);

// Ulysses: all_to_all between sequence shards and head shards, and heads repeated up to a number.
struct var op_exchange_in(struct graph *g, struct var x);
struct var op_exchange_out(struct graph *g, struct var x, struct var *received); // takes x over
struct var op_repeat(struct graph *g, struct var x, uint64_t elements);

// Views of a tensor that are used one after another; their gradients are joined at the end. Takes x
// over.
struct var op_chunks(struct graph *g, struct var x, int count);
struct var op_chunk(struct graph *g, struct var whole, uint64_t elements);

// A scalar made of others: their sum, or a quotient.
struct var op_scalar(struct graph *g, struct var a, struct var b);

struct attention_shape {
    uint64_t tokens; // of all sequences
    uint64_t heads, kv_heads, head_dim;
    uint64_t mask_elements; // 0: causal, which needs no mask
};
struct var op_attention(struct graph *g, struct var q, struct var k, struct var v,
                        const struct attention_shape *shape);

struct var op_embedding(struct graph *g, int parameter, struct var ids);

// Cross entropy of fp32 logits: log-softmax and negative log-likelihood, to a scalar. `labels` is
// kept.
struct var op_cross_entropy(struct graph *g, struct var logits, struct var labels, uint64_t rows);
struct var op_log_softmax(struct graph *g, struct var logits);
struct var op_likelihood(struct graph *g, struct var log_probabilities, struct var labels,
                         uint64_t rows);

// logits.div_(temperature) on a view of them: the same storage, its gradient goes through copies.
// Takes x over.
struct var op_divide_view(struct graph *g, struct var x);

// A kernel that reads all logits and gives one fp32 value a token, and in its backward one gradient
// of the logits' size: cross entropy, or the entropy.
struct var op_token_loss(struct graph *g, struct var logits, uint64_t tokens);

// policy_entropy.c: the entropy of each token, compiled in chunks and recomputed.
struct var op_chunked_entropy(struct graph *g, struct var logits, uint64_t tokens);

// fused_policy.c: one value a token straight from the last hidden state.
struct var op_fused_policy(struct graph *g, struct var hidden, int head);

#endif
