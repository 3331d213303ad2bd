// The operators that models are written in. Each allocates what torch's eager operator allocates,
// in its order, and keeps what its backward needs. Arguments stay the caller's unless it says that
// one is taken over; results are the caller's to drop. In the order of the files they are in, each
// with its backward pass beside it.
#ifndef FATHOM_OPS_OPS_H
#define FATHOM_OPS_OPS_H

#include "core/autograd/graph.h"

// A parameter as a tensor like any other.
struct var op_parameter(const struct graph *g, int parameter);

// A tensor that no gradient goes to, by an operator of which nothing else matters.
struct var op_constant(struct graph *g, uint64_t elements, uint32_t width);

// ------------------------------------------------------------------ elementwise.c

struct var op_cast(struct graph *g, struct var x, uint32_t width); // the same tensor if it has it
struct var op_add_constant(struct graph *g, struct var x);
struct var op_add(struct graph *g, struct var a, struct var b);
struct var op_add_mask(struct graph *g, struct var x, struct var mask);      // one for all heads
struct var op_add_in_place(struct graph *g, struct var x, struct var other); // takes x over
struct var op_subtract(struct graph *g, struct var a, struct var b); // b may be one value a row
struct var op_multiply(struct graph *g, struct var a, struct var b); // likewise
struct var op_multiply_row(struct graph *g, struct var a, struct var row); // the same for all rows
struct var op_multiply_weight(struct graph *g, int parameter, struct var x);
struct var op_multiply_wide_weight(struct graph *g, int parameter, struct var x); // in fp32
struct var op_multiply_constant(struct graph *g, struct var x, struct var constant);
struct var op_scale(struct graph *g, struct var x); // by a number
struct var op_power(struct graph *g, struct var x); // squares
struct var op_rsqrt(struct graph *g, struct var x);
struct var op_tanh(struct graph *g, struct var x);
struct var op_sigmoid(struct graph *g, struct var x);
struct var op_cap(struct graph *g, struct var x); // softly: divided, tanh, multiplied; takes x over
struct var op_negate(struct graph *g, struct var x);
struct var op_clamp(struct graph *g, struct var x, int bounds);
struct var op_activation(struct graph *g, struct var x);
struct var op_relu(struct graph *g, struct var x);
struct var op_dropout(struct graph *g, struct var x);
struct var op_bloom_gelu(struct graph *g, struct var x);

// In place, which needs a copy of what x was. Takes x over.
struct var op_divide(struct graph *g, struct var x, struct var divisor);

// Some rows become zeros, in place or in a new tensor. Take x over.
struct var op_mask(struct graph *g, struct var x, struct var mask);
struct var op_masked(struct graph *g, struct var x, struct var mask);

// A scalar made of others: their sum, or a quotient.
struct var op_scalar(struct graph *g, struct var a, struct var b);

// ------------------------------------------------------------------ reductions.c

struct var op_mean(struct graph *g, struct var x, uint64_t rows); // over the last dimension
struct var op_sum_rows(struct graph *g, struct var x, uint64_t rows);
struct var op_sum_groups(struct graph *g, struct var x, uint64_t elements); // of rows, to these
struct var op_max(struct graph *g, struct var x, uint64_t rows);
struct var op_softmax(struct graph *g, struct var x);

// The largest values of each row, and where they were.
struct var op_top(struct graph *g, struct var x, uint64_t elements, struct var *indices);

// ------------------------------------------------------------------ views.c

struct var op_slice(struct graph *g, struct var x, uint64_t elements); // a view of a part
struct var op_first_half(struct graph *g, struct var x);               // a view
struct var op_second_half(struct graph *g, struct var x);              // a view
struct var op_join(struct graph *g, struct var a, struct var b);

// x copied into a part of base, in place. Takes base over.
struct var op_write(struct graph *g, struct var base, struct var x);

// x repeated to `elements`, as a view or in a new tensor (none where it has as many).
struct var op_expand(struct graph *g, struct var x, uint64_t elements);
struct var op_repeat(struct graph *g, struct var x, uint64_t elements);

// A copy into another layout; its gradient needs none.
struct var op_copy(struct graph *g, struct var x);

// A view whose gradient has to be copied into another layout on its way back. Takes x over.
struct var op_relayout(struct graph *g, struct var x);

// A view of all of it in another shape: torch adds nothing into its gradient. Takes x over.
struct var op_reshape(struct graph *g, struct var x);

// Marks where a sharded unit begins (its input) or ends (its output). Takes x over.
struct var op_boundary(struct graph *g, struct var x, int unit, bool input);

// ------------------------------------------------------------------ chunks.c

// Views of a tensor that are used one after another; their gradients are joined at the end. Takes x
// over.
struct var op_chunks(struct graph *g, struct var x, int count);
struct var op_chunk(struct graph *g, struct var whole, uint64_t elements);

// ------------------------------------------------------------------ linear.c

// A linear layer without bias (parameter) and with one (bias >= 0), packed or with an adapter where
// the parameter is.
struct var op_linear(struct graph *g, struct var x, int parameter, int bias);

// Without bias, both factors cast to `width` first.
struct var op_linear_cast(struct graph *g, struct var x, int parameter, uint32_t width);

// Matrix products of two tensors; the result has `elements`, each a sum over `depth` products.
struct var op_product(struct graph *g, struct var a, struct var b, uint64_t elements,
                      uint64_t depth);

// Row by row with the matrix of its expert, out of `columns` values into other ones.
struct var op_grouped_product(struct graph *g, struct var x, int parameter, uint64_t columns,
                              struct var offsets);
// By what one expert of them has of a frozen weight, of so many columns and outputs; and rows added
// to those of base that the numbers say, in place.
struct var op_part_product(struct graph *g, struct var x, int parameter, uint64_t columns,
                           uint64_t outputs);
struct var op_add_to_rows(struct graph *g, struct var base, struct var x, struct var numbers);

// ------------------------------------------------------------------ tensor_parallel.c

// What a cut weight is multiplied with: each rank has a part of its gradient.
struct var op_shared(struct graph *g, struct var x);

// What ranks have parts of: its sum, or all of it side by side. Take x over.
struct var op_summed(struct graph *g, struct var x);
struct var op_side_by_side(struct graph *g, struct var x);

// The same sum in place, of what experts made.
struct var op_summed_in_place(struct graph *g, struct var x);

// A weight that is cut over ranks, whole for a while.
struct var op_whole_weight(struct graph *g, int parameter);

// ------------------------------------------------------------------ adapters.c

// bitsandbytes/functional.py: a scale for so many four-bit elements; what the scales take in fp32.
enum { PACKED_BLOCK = 64 };
uint64_t packed_scale_bytes(uint64_t elements);

// A linear layer over four-bit weights, and peft's forward of a layer with an adapter, whose base
// has made `result`. Takes result over.
struct var op_packed_linear(struct graph *g, struct var x, int parameter, int bias);
struct var op_adapter(struct graph *g, struct var x, struct var result, int parameter, int bias);

// dora.c: the same with a magnitude for each output. Takes result over.
struct var op_dora(struct graph *g, struct var x, struct var result, int parameter, int bias);

// folded.c: peft's wrapper around a module whose weight is no linear layer's; between the two calls
// the weight with its change is used in the weight's place. Nothing without such an adapter.
void op_fold(struct graph *g, int parameter, struct folded *f);
void op_unfold(struct graph *g, int parameter);

// ------------------------------------------------------------------ attention.c, exchange.c

struct attention_shape {
    uint64_t tokens; // of all sequences
    uint64_t heads, kv_heads, head_dim;
    uint64_t mask_elements; // 0: causal, which needs no mask
    struct storage *mask;   // where it has the queries' type; NULL: it is made for every call
    uint64_t sequence;      // tokens that attend to each other; 0: all
    uint64_t spread;        // ranks that the heads are spread over; 0: none
};
struct var op_attention(struct graph *g, struct var q, struct var k, struct var v,
                        const struct attention_shape *shape);

// Ulysses: all_to_all between sequence shards and head shards.
struct var op_exchange_in(struct graph *g, struct var x);
struct var op_exchange_out(struct graph *g, struct var x, struct var *received); // takes x over

// DeepSpeed's, of a tensor that lies as it is sent; its gradient is copied to lie so, and what
// comes back of it to lie as the tensor was before.
struct sent {
    bool copied_before, copied_after;
};
struct var op_all_to_all(struct graph *g, struct var x, struct sent gradient);

// ------------------------------------------------------------------ embedding.c

struct var op_embedding(struct graph *g, int parameter, struct var ids);

// The output of the model's frozen embedding, where adapters are trained under checkpointing: it
// requires a gradient (enable_input_require_grads), and as a leaf lives as long as the graph.
struct var op_leaf(struct graph *g, struct var x, int parameter);

// x has `rows` rows; the result has one for each number.
struct var op_index_rows(struct graph *g, struct var x, uint64_t rows, struct var numbers);

// The numbers of rows that something says, so many, once the host knows them; and zeros with rows
// of x in those places.
struct var op_row_numbers(struct graph *g, uint64_t chosen);
struct var op_spread_rows(struct graph *g, struct var x, uint64_t rows, struct var numbers);

// The rows of x (one for each value of the mask) that a mask of two dimensions picks, so many, and
// values of such rows put back, zeros elsewhere.
struct var op_masked_rows(struct graph *g, struct var x, struct var mask, uint64_t chosen);
struct var op_masked_scatter(struct graph *g, struct var x, struct var mask);

// ------------------------------------------------------------------ loss/losses.c

// Cross entropy of fp32 logits: log-softmax and negative log-likelihood, to a scalar. `labels` is
// kept.
struct var op_cross_entropy(struct graph *g, struct var logits, struct var labels);
struct var op_log_softmax(struct graph *g, struct var logits);
struct var op_likelihood(struct graph *g, struct var log_probabilities, struct var labels);

// logits.div_(temperature) on a view of them: the same storage, its gradient goes through copies.
// Takes x over.
struct var op_divide_view(struct graph *g, struct var x);

// A kernel that reads all logits and gives one fp32 value a token, and in its backward one gradient
// of the logits' size: cross entropy, or the entropy.
struct var op_token_loss(struct graph *g, struct var logits, uint64_t tokens);

// loss/liger.c: head and cross entropy in one, gradients and all, to a scalar.
struct var op_fused_loss(struct graph *g, struct var hidden, int head);

// liger_layers.c: a norm, heads that are turned in place, and the activation of one tensor times
// another.
struct var op_liger_norm(struct graph *g, struct var x, int weight, bool apart);
struct var op_liger_turn(struct graph *g, struct var x, struct var cosine, struct var sine);
struct var op_liger_gate(struct graph *g, struct var gate, struct var up);

// layer_norm.c: with a weight and a bias.
struct var op_layer_norm(struct graph *g, struct var x, struct var weight, struct var bias);

// Of rows that do not lie together, which are copied first.
struct var op_layer_norm_apart(struct graph *g, struct var x, struct var weight, struct var bias);

// policy_entropy.c: the entropy of each token, compiled in chunks and recomputed.
struct var op_chunked_entropy(struct graph *g, struct var logits, uint64_t tokens);

// fused_policy.c: one value a token straight from the last hidden state.
struct var op_fused_policy(struct graph *g, struct var hidden, int head);

// loss/log_probs.c: the log-probability of each target straight from the last hidden state.
// `weight` is the head's as it is used; `targets` is kept.
struct var op_log_probs(struct graph *g, struct var hidden, int head, struct var weight,
                        struct var targets);

// divergence.c: of each token's next words from the teacher's. `teacher`, its hidden states, is
// kept; `gathered` is the bytes of its head where that has to be put together.
struct var op_divergence(struct graph *g, struct var hidden, int head, struct var teacher,
                         uint64_t gathered);

// ------------------------------------------------------------------ vision.c

struct var op_add_row(struct graph *g, struct var x, struct var row); // one for all images
struct var op_pool(struct graph *g, struct var x, uint64_t elements); // means, to so many
struct var op_join_all(struct graph *g, const struct var *parts, uint64_t count);

// Rows in the places that a mask of rows says: of a copy of x, or in x itself, which is taken over.
struct var op_fill_rows(struct graph *g, struct var x, struct var mask, struct var rows);
struct var op_put_rows(struct graph *g, struct var x, struct var mask, struct var rows);

// ------------------------------------------------------------------ modules

// The operators whose parameters a module hook hears about (graph.module).
extern const struct operation operation_embedding, operation_linear, operation_multiply_weight;
extern const struct operation operation_layer_norm;

#endif
