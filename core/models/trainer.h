// A training job in the simulated process: the model's parameters on the card, and steps of
// forward, backward, clipping and optimizer over them.
#ifndef FATHOM_MODELS_TRAINER_H
#define FATHOM_MODELS_TRAINER_H

#include "core/models/habits.h"
#include "core/models/strategy.h"
#include "core/ops/ring.h"

// Indices into the graph's parameters; -1 where a family has none.
struct layer_parameters {
    int first; // in the modules' order
    int q, k, v, o;
    int qkv;                              // instead of q, k and v
    int q_a, q_a_bias, q_a_norm, q_b;     // of latent attention,
    int kv_a, kv_a_bias, kv_a_norm, kv_b; // else -1
    int sinks;
    int q_bias, k_bias, v_bias, o_bias;
    int gate_bias, up_bias, down_bias;
    int q_norm, k_norm;
    int gate, up, down;                // -1 where the layer has experts, or gate and up in one
    int gate_up, experts_down, router; // -1 where it has none
    int gate_up_bias, experts_down_bias, router_bias;
    int shared_gate, shared_up, shared_down;
    int input_norm, before_mlp_norm; // -1 where a family has no such norm
    int after_attention_norm, after_mlp_norm;
};

// What layers of a kind are given besides their input.
enum { LAYER_FULL, LAYER_SLIDING, LAYER_KINDS };
struct layer_arguments {
    struct var cosine, sine;
    struct var mask; // without storage where attention needs none
};

// A layer as its forward is called, once a micro-batch.
struct layer_call {
    struct trainer *trainer;
    int layer;
};

struct optimizer_state {
    struct storage *step, *first, *second;
};

// A tensor that the optimizer updates: a parameter, or this rank's shard of one.
struct trained {
    uint64_t elements;
    uint32_t width;
    int parameter; // its number, without sharding
    struct storage *weight, *gradient;
    struct optimizer_state state;
};

struct trainer {
    const struct job *job;
    struct machine *machine;
    struct graph graph;
    const struct strategy_kind *strategy;
    void *state; // the strategy's own
    const struct habits *habits;
    struct layer_parameters *layers;
    struct layer_call *calls;
    int embedding, final_norm, head; // head == embedding where they are tied
    bool head_is_idle;               // no loss uses it: it gets no gradient and no optimizer state
    struct trained *trained;
    int trained_count;
    bool has_quantile_maps;                        // of the 8-bit optimizer
    bool has_scale_code;                           // of packed weights
    struct ring ring;                              // of context parallel
    struct var ids;                                // the same in every step
    struct layer_arguments arguments[LAYER_KINDS]; // of the micro-batch
    uint32_t width;                                // bytes an element in compute
    bool keeps_gradients;  // of this micro-batch, whole until a later one is reduced
    bool is_reference;     // only read: no gradients, no optimizer, its shards in host memory
    uint16_t first_stream; // of its strategy's own
};

// What cuBLAS keeps for each thread that multiplies matrices on this card.
uint64_t cublas_workspace_bytes(const struct gpu *card);

// forward.c: a micro-batch to its loss.
struct var trainer_forward(struct trainer *t);

// Queries, keys and values of a layer.
struct heads {
    struct var q, k, v;
};

// attention.c: masks, and what transformers computes operator by operator, handing out the weights
// too.
void make_masks(struct trainer *t);
void drop_masks(struct trainer *t);
struct var eager_attention(struct graph *g, struct heads h, const struct layer_call *call,
                           struct var *weights);
// Keys or values for every head of queries: a copy, but of a single head a view.
struct var repeat_heads(struct graph *g, struct var x, uint64_t elements, const struct model *m);
const struct layer_arguments *arguments_of(const struct trainer *t, int layer);

// forward.c: parts that other attention uses too.
struct var rms_norm(struct graph *g, struct var x, int weight);
struct var rotate_pair(struct graph *g, struct var first, struct var second,
                       const struct layer_arguments *also);

// latent.c: attention and its output projection.
struct var latent_attention(struct graph *g, struct var x, const struct layer_call *call);

// experts.c: the sparse block of a layer.
struct var experts_forward(struct graph *g, struct var x, const struct layer_call *call);

#endif
