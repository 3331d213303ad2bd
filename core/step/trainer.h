// A training job in the simulated process: the model's parameters on the card, and steps of
// forward, backward, clipping and optimizer over them.
#ifndef FATHOM_STEP_TRAINER_H
#define FATHOM_STEP_TRAINER_H

#include "core/step/graph.h"
#include "core/step/plan.h"

// Indices into the graph's parameters; -1 where a family has none.
struct layer_parameters {
    int q, k, v, o;
    int q_bias, k_bias, v_bias;
    int q_norm, k_norm;
    int gate, up, down;                // -1 where the layer has experts
    int gate_up, experts_down, router; // -1 where it has none
    int input_norm, post_attention_norm;
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
};

struct optimizer_state {
    struct storage *step, *first, *second;
};

// A tensor that the optimizer updates: a parameter, or this rank's shard of one.
struct trained {
    uint64_t elements;
    uint32_t width;
    struct storage *weight, *gradient;
    struct optimizer_state state;
};

struct trainer {
    const struct plan *plan;
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
    struct var ids;          // the same in every step
    struct var cosine, sine; // of the micro-batch
    uint32_t width;          // bytes an element in compute
};

// What cuBLAS keeps for each thread that multiplies matrices on this card.
uint64_t cublas_workspace_bytes(const struct gpu *card);

// Everything before the first step.
void trainer_build(struct trainer *t, const struct plan *p, struct machine *m);

void trainer_step(struct trainer *t);

// forward.c: a micro-batch to its loss.
struct var trainer_forward(struct trainer *t);

// experts.c: the sparse block of a layer.
struct var experts_forward(struct graph *g, struct var x, const struct layer_call *call);

// optimizer.c
void optimizer_clip(struct trainer *t);
void optimizer_step(struct trainer *t);
void optimizer_zero(struct trainer *t);

#endif
