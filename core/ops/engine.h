// The modules of NVIDIA's TransformerEngine (2.11) and Megatron-LM (23e00ed, core 0.13) that a
// model is spread over tensor parallel ranks with. With sequence parallel a rank has its part of
// the tokens between them: what goes into a matrix that is cut by columns is gathered, what comes
// out of one that is cut by rows is summed and scattered. Gradients of weights are added up in the
// buffer that they are reduced from (gradient_accumulation_fusion), so that autograd gets none.
#ifndef FATHOM_OPS_ENGINE_H
#define FATHOM_OPS_ENGINE_H

#include "core/ops/ops.h"

// module/base.py, get_dummy_wgrad: autograd is handed an empty gradient in its place, one of each
// shape, which is never let go.
enum { ENGINE_SHAPES = 32 };
struct engine_shape {
    uint64_t rows, columns;
};

// What a process keeps of both libraries.
struct engine {
    uint64_t ranks;                       // of tensor parallel
    uint64_t context_ranks, context_rank; // of context parallel
    uint64_t expert_ranks;                // that share an expert, which lie together
    uint64_t workspace_bytes;
    struct engine_shape shapes[ENGINE_SHAPES];
    int shape_count;
    bool has_workspace, has_grouped_workspaces;
    uint64_t gathered_bytes; // of the head's input (utils.py, GlobalMemoryBuffer)
};

// Of a weight whose product's backward pass is over.
void engine_dummy_gradient(struct graph *g, int weight);

// How a weight is cut over the ranks: by columns of its product, by rows, or not at all.
enum cut_by { CUT_BY_COLUMNS, CUT_BY_ROWS, CUT_BY_NOTHING };

// A linear layer, and one with a norm before it (module/linear.py, module/layernorm_linear.py).
struct var op_cut_linear(struct graph *g, struct var x, int weight, enum cut_by cut);
struct var op_norm_linear(struct graph *g, struct var x, int norm, int weight);

// ops/basic/rmsnorm.py. Its input has to lie together.
struct var op_engine_norm(struct graph *g, struct var x, int norm);

// attention/rope.py: heads that are turned in one kernel, into a new tensor.
struct var op_fused_turn(struct graph *g, struct var x);

// core/fusions/fused_bias_swiglu.py: compiled, over gate and up in one tensor.
struct var op_fused_gate(struct graph *g, struct var x);

// core/tensor_parallel/layers.py: the words of this rank's part of the vocabulary, and the head
// over it.
struct var op_cut_embedding(struct graph *g, int weight, struct var ids, uint64_t sequences);
struct var op_cut_head(struct graph *g, struct var x, int weight);

// Of each token: TransformerEngine's kernel, which turns the logits into their gradient, and
// core/tensor_parallel/cross_entropy.py, as slime's log-probabilities are computed too
// (slime/utils/ppo_utils.py, _VocabParallelLogProbEntropy, without a gradient of the entropy).
struct var op_engine_entropy(struct graph *g, struct var logits, uint64_t tokens);
struct var op_cut_entropy(struct graph *g, struct var logits, uint64_t tokens);

// Attention that keeps only what goes into it, and is computed again when its gradient comes
// (core/transformer/attention.py, _checkpointed_attention_forward): of values that are a part of
// their projection all of that.
struct var op_recomputed_attention(struct graph *g, const struct var in[3],
                                   const struct attention_shape *shape);

// ------------------------------------------------------------------ engine_experts.c

// A token's chances for each expert, in the logits' type (core/transformer/moe/router.py); the
// logits are products of bf16. `chosen` of `experts` are.
struct var op_route(struct graph *g, struct var x, int weight, uint64_t chosen);

// permutation.py: a row for each token and expert that it goes to, by experts, and back: their sum.
struct var op_permute(struct graph *g, struct var x, struct var chances, uint64_t chosen);
struct var op_unpermute(struct graph *g, struct var x, uint64_t chosen);

// Rows in another order: a copy, of their gradient too.
struct var op_reorder(struct graph *g, struct var x);

// core/tensor_parallel/mappings.py, _AllToAll: between so many ranks.
struct var op_deal_out(struct graph *g, struct var x, uint64_t ranks);

// module/grouped_linear.py: the experts of this rank, which have `count` weights of one shape from
// this one on. And their gate, weighed by the chances of each row.
struct var op_grouped_linear(struct graph *g, struct var x, int weight, uint64_t count);
struct var op_weighed_gate(struct graph *g, struct var x);

// core/fusions/fused_mla_yarn_rope_apply.py: keys and values, made of the product of both and of
// the one key that is turned, which all heads share. Queries are turned where they lie.
struct var op_latent_keys(struct graph *g, struct var both, struct var turning, uint64_t elements,
                          struct var *values);

// A gathered part of a sequence, and its gradient's part (mappings.py).
struct var op_gather_tokens(struct graph *g, struct var x);

// All of a sequence, summed over ranks, to this rank's part.
struct var op_scatter_tokens(struct graph *g, struct var x);

// ------------------------------------------------------------------ engine_context.c

// Of queries, keys and values of this rank's tokens, which `shape` says: heads dealt out over the
// ranks of context parallel, or keys and values handed round.
struct var op_dealt_attention(struct graph *g, const struct var in[3],
                              const struct attention_shape *shape);
struct var op_handed_attention(struct graph *g, const struct var in[3],
                               const struct attention_shape *shape);

// Where a stage of a pipeline begins: the gradient of what came is left in `gradient`.
struct var op_received(struct graph *g, struct var x, struct storage **gradient);

#endif
