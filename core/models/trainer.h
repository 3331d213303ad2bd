// A training job in the simulated process: the model's parameters on the card, and steps of
// forward, backward, clipping and optimizer over them.
#ifndef FATHOM_MODELS_TRAINER_H
#define FATHOM_MODELS_TRAINER_H

#include "core/models/habits.h"
#include "core/models/strategy.h"
#include "core/ops/ring.h"

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
    int like; // one more than the first layer that it is like, as kin_of found
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

// Of an answer's tokens that many are played, spread over it: with more, no measured row changes by
// more than 0.1 %; with three, g3 does by 0.6 %.
enum { PLAYED_TOKENS = 4 };

// Keys and values of every layer while answers are generated, of the tokens that were read before.
struct cache {
    struct var *keys, *values;
    uint64_t tokens;
};

// Of the loss, in fp16 (core/strategies/scaler.c).
struct scaler {
    struct storage *scale, *growth, *found;
};

struct tower; // vision/tower.h: what a vision tower has of its own

struct trainer {
    const struct job *job;
    const struct job *whole; // while `job` is that of one batch of several lengths; else NULL
    struct machine *machine;
    struct graph graph;
    const struct strategy_kind *strategy;
    void *state; // the strategy's own
    const struct habits *habits;
    struct layer_parameters *layers;
    struct layer_call *calls;
    struct tower *tower;             // NULL: a model of text
    int embedding, final_norm, head; // head == embedding where they are tied
    int norm_count, head_count;      // of final norm and head: with a bias two
    int positions;                   // learned; -1
    bool head_is_idle;               // no loss uses it: it gets no gradient and no optimizer state
    struct trained *trained;
    int trained_count;
    bool has_quantile_maps; // of the 8-bit optimizer
    struct scaler scaler;
    bool has_scale_code;                           // of packed weights
    struct var *router_logits;                     // of this pass, by layer; NULL: not asked for
    struct var *handed_out;                        // keys and values, by layer; NULL: none are
    struct ring ring;                              // of context parallel
    struct var ids;                                // the same in every step, or the batches' first
    struct storage **batches;                      // of the step, where the recipe loads them
    struct layer_arguments arguments[LAYER_KINDS]; // of the micro-batch
    struct var layer_weights;                      // of attention, handed out by the last layer
    uint32_t width;                                // bytes an element in compute
    bool by_device_map;                            // parameters come to the card when all are known
    bool keeps_gradients;      // of this micro-batch, whole until a later one is reduced
    struct trainer *reference; // read beside it, for a loss that compares; NULL: none
    bool without_graph;        // this forward pass is only read, by the model that is trained
    struct cache *cache;       // of answers being generated: the head is a module then; else NULL
    bool is_reference;         // only read: no gradients, no optimizer, its shards in host memory
    const struct job *learner; // of a teacher: the job that it teaches; else NULL
    uint16_t first_stream;     // of its strategy's own
};

// What cuBLAS keeps for each thread that multiplies matrices on this card.
uint64_t cublas_workspace_bytes(const struct gpu *card);

#endif
