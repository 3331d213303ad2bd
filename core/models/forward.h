// The model's forward pass: its door, and what its files use of each other.
#ifndef FATHOM_MODELS_FORWARD_H
#define FATHOM_MODELS_FORWARD_H

#include "core/models/calls.h"
#include "core/models/trainer.h"

// A micro-batch up to its last hidden state, which has no name yet, and what else the model's
// forward made, which goes before or after its loss, as the framework does it.
struct output {
    struct var last, positions;
};
struct output model_forward(struct trainer *t);
void model_let_go(struct trainer *t, struct output o);

// ------------------------------------------------------------------ parts of a layer

static inline const struct model *model_of(const struct graph *g)
{
    const struct trainer *t = g->owner;
    return &t->job->model;
}

static inline bool runs_liger_layers(const struct graph *g)
{
    const struct trainer *t = g->owner;
    return t->job->layer_kernels == KERNELS_OF_LIGER;
}

// heads.c: queries, keys and values up to attention itself.
struct heads project_heads(struct graph *g, struct var x, const struct layer_call *call);
struct heads project_gated(struct graph *g, struct var x, const struct layer_parameters *p,
                           struct var *gate);
struct heads rotate_heads(struct scope *f, struct heads h, const struct layer_call *call);
void finish_heads(struct scope *f, struct heads *h, const struct layer_call *call);
bool is_masked(const struct layer_call *call);
bool lays_values_out(const struct layer_call *call);

struct var rotate_half(struct graph *g, struct var x);
struct var rotate(struct graph *g, struct var x, const struct layer_arguments *also);
struct var rotate_pair(struct graph *g, struct var first, struct var second,
                       const struct layer_arguments *also); // both have names

// Of each head a first part is turned, the rest joined to it, be there none.
struct parts {
    struct var turning, rest;
};
struct parts parts_of(struct scope *f, struct var x, const struct model *m);
struct var join_rest(struct graph *g, struct var turned, struct var rest);

// positions.c: the ways of other families.
struct heads rotate_cast(struct graph *g, struct heads h, const struct layer_arguments *also);
struct heads rotate_parts_late(struct scope *attention, struct heads h,
                               const struct layer_arguments *also);
struct var scale_queries(struct graph *g, struct var q, uint64_t positions);

// norms.c
struct var rms_norm(struct graph *g, struct var x, int weight);
struct var norm_if_any(struct graph *g, struct var x, int norm); // norm < 0: none

// layer.c: attention with its output projection, its weights where they are handed out, and the MLP
// or experts, with whatever is left out at random.
struct var attention(struct graph *g, struct var x, const struct layer_call *call,
                     struct var *weights);
struct var feed_forward(struct scope *layer, struct var x, const struct layer_call *call);
struct var add_last(struct graph *g, struct var residual, struct var hidden);

void decoder_layer(struct graph *g, struct var *out, struct var in, void *what);

// classic.c: attention without a fused kernel.
struct pair {
    struct var normed, residual;
};
struct var bloom_attention(struct graph *g, struct pair in, const struct layer_call *call,
                           struct var *weights);
struct var gptj_attention(struct graph *g, struct var x, const struct layer_call *call,
                          struct var *weights);

struct var mpt_attention(struct graph *g, struct var x, const struct layer_call *call,
                         struct var *weights);
struct var biases_of_keys(struct trainer *t); // MPT's

// falcon.c
void falcon_layer(struct graph *g, struct var *out, struct var in, void *what);

// blocks.c: other shapes.
struct var learned_positions(struct graph *g, struct var numbers);
struct var plain_mlp(struct graph *g, struct var x, const struct layer_parameters *p);
struct var dropped(struct graph *g, struct var x);
struct heads project_split(struct graph *g, struct var x, const struct layer_parameters *p);
struct heads project_first(struct graph *g, struct var x, const struct layer_parameters *p);
struct heads project_scaled(struct graph *g, struct var x, const struct layer_parameters *p);
void bloom_layer(struct graph *g, struct var *out, struct var in, void *what);
void opt_layer(struct graph *g, struct var *out, struct var in, void *what);
void mpt_layer(struct graph *g, struct var *out, struct var in, void *what);
void gpt_layer(struct graph *g, struct var *out, struct var in, void *what);
void stablelm_layer(struct graph *g, struct var *out, struct var in, void *what);
void parallel_layer(struct graph *g, struct var *out, struct var in, void *what);

// attention.c: masks, and what transformers computes operator by operator, handing out the weights
// too.
void make_masks(struct trainer *t);
void drop_masks(struct trainer *t);
struct var eager_attention(struct graph *g, struct heads h, const struct layer_call *call,
                           struct var *weights);
struct var math_attention(struct graph *g, struct heads h, const struct layer_call *call);
// Keys or values for every head of queries: a copy, but of a single head a view.
struct var repeat_heads(struct graph *g, struct var x, uint64_t elements);
uint64_t repeated_elements(const struct model *m, struct var x);
const struct layer_arguments *arguments_of(const struct trainer *t, int layer);

// ulysses.c: attention over all tokens with this rank's share of the heads.
struct var ulysses_attention(struct graph *g, struct heads h, const struct attention_shape *shape,
                             const struct job *job);

// unpadded.c: attention that leaves out what pads shorter rows.
struct var unpadded_attention(struct graph *g, struct heads h, const struct attention_shape *shape,
                              const struct layer_call *call); // all have names

// latent.c: attention and its output projection.
struct var latent_attention(struct graph *g, struct var x, const struct layer_call *call);

struct var mlp(struct graph *g, struct var x, const struct layer_parameters *p);

// experts/: the router, what it gives named in the caller's scope, and the experts it chooses;
// in shared_experts.c with one that sees every token where there is such.
struct var experts_in(struct scope *f, struct var x, const struct layer_call *call);
struct var sparse_block(struct scope *layer, struct var x, const struct layer_call *call);

struct layer_parameters shared_mlp(const struct layer_parameters *p);

// llama4.c: positions and norms of heads, and the sparse block.
struct heads llama4_turned(struct graph *g, struct heads h, const struct layer_call *call);
struct var every_expert(struct graph *g, struct var x, const struct layer_call *call);

// delta.c: linear attention and its output projection.
struct var delta_net(struct graph *g, struct var x, const struct layer_call *call);

// complex_rotary.c: positions as complex numbers, in place of cosines.
void complex_rotary(struct trainer *t, uint64_t tokens, struct layer_arguments *to);
struct heads complex_turned(struct graph *g, struct var q, struct var k,
                            const struct layer_arguments *also); // both have names

#endif
