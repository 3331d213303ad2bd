// A training job in the simulated process: the model's parameters on the card, and steps of
// forward, backward, clipping and optimizer over them.
#ifndef FATHOM_MODELS_TRAINER_H
#define FATHOM_MODELS_TRAINER_H

#include "core/autograd/graph.h"
#include "core/job/job.h"
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

struct trainer;
struct reducer;
struct zero;

// The first makes gradients, the others add to them: more repeat the last.
enum { DIFFERENT_MICRO_BATCHES = 3 };

// A layer as its forward is called, once a micro-batch.
struct layer_call {
    struct trainer *trainer;
    int layer;
};

// How parameters come to the card and gradients leave it. Units are the decoder layers by number,
// and what unit_of names (-1 where there is none). Without sharding there is no struct at all.
struct sharding {
    void (*build)(struct trainer *t);
    void (*before_forward)(struct trainer *t, int unit);
    void (*after_forward)(struct trainer *t, int unit);
    void (*before_backward)(struct trainer *t, int unit);
    void (*after_backward)(struct trainer *t, int unit);
    void (*end_backward)(struct trainer *t); // the units whose input has no gradient
    void (*clip)(struct trainer *t);
    void (*zero)(struct trainer *t);
    void (*step)(struct trainer *t); // instead of clip, the optimizer and zero; may be NULL
    int (*unit_of)(const struct trainer *t, enum part part); // embedding, head, else the root
    void (*end_reading)(struct trainer *t);                  // a model that is only read has been
    void (*publish)(struct trainer *t);       // each parameter whole in fp32, one after another
    void (*save)(struct trainer *t, bool hf); // a checkpoint of shards, and one of whole parameters
    int (*tail_of)(const struct trainer *t);  // last norm and head in one; NULL: never
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
    const struct sharding *sharding;
    void *shards;            // the sharding's own
    struct reducer *reducer; // of ddp
    struct zero *zero;       // of DeepSpeed, stages 1 and 2
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
    bool is_reference;     // only read: no gradients, no optimizer, its shards in host memory
    uint16_t first_stream; // of its sharding's own
};

// What cuBLAS keeps for each thread that multiplies matrices on this card.
uint64_t cublas_workspace_bytes(const struct gpu *card);

// Everything before the first step.
void trainer_build(struct trainer *t, const struct job *p, struct machine *m);

// A second model of the same shape that is only read, on streams of its own.
void trainer_build_reference(struct trainer *t, const struct job *p, struct machine *m);

void trainer_step(struct trainer *t);
void trainer_micro_batch(struct trainer *t); // forward and backward
void trainer_update(struct trainer *t);      // clipping, optimizer, zero_grad

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

// optimizer.c
void optimizer_clip(struct trainer *t);
void optimizer_step(struct trainer *t);
void optimizer_zero(struct trainer *t);

#endif
