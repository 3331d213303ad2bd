// How a model is spread over ranks, as a row of functions: what a strategy does while the model is
// built, around its parts in the forward and backward pass, and in the step that follows. Units are
// the decoder layers by number, and what unit_of names. NULL is nothing to do.
#ifndef FATHOM_MODELS_STRATEGY_H
#define FATHOM_MODELS_STRATEGY_H

#include "core/autograd/graph.h"
#include "core/job/job.h"

struct trainer;

struct strategy_kind {
    // Brings the parameters to the card once they are known; NULL: each comes whole as it is made.
    void (*load)(struct trainer *t);
    void (*build)(struct trainer *t); // buffers and adapters are there too

    // Embedding, head, the first block of a vision tower, else the root; -1.
    int (*unit_of)(const struct trainer *t, enum part part);
    int (*tail_of)(const struct trainer *t); // last norm and head in one; -1
    int (*block_of)(const struct trainer *t, int layer, bool with_router); // of experts; -1
    void (*enter_unit)(struct trainer *t, int unit);                       // in the forward pass
    void (*leave_unit)(struct trainer *t, int unit);
    void (*enter_rotary)(struct trainer *t); // the module of the rotary embedding is called
    void (*enter_backward)(struct trainer *t, int unit); // its gradient comes
    void (*leave_backward)(struct trainer *t, int unit); // and has passed
    void (*at_module)(struct graph *g, int parameter, const struct operation *operation,
                      enum module_moment moment);
    void (*at_adapter)(struct graph *g, int parameter, bool done);
    void (*gradient_ready)(struct graph *g, int parameter);

    void (*before_forward)(struct trainer *t); // of a micro-batch
    void (*end_backward)(struct trainer *t);   // also of the units whose input has no gradient
    void (*clip)(struct trainer *t);
    void (*update)(struct trainer *t); // clipping, the optimizer and zero
    void (*zero)(struct trainer *t);

    void (*end_reading)(struct trainer *t);            // a model that is only read has been
    void (*dismiss)(struct trainer *t);                // and is not read again
    void (*make_whole)(struct trainer *t, bool whole); // to generate with, and in parts again
    void (*publish)(struct trainer *t);       // each parameter whole in fp32, one after another
    void (*save)(struct trainer *t, bool hf); // a checkpoint of shards, and one of whole parameters

    uint64_t (*host_bytes)(const struct job *p); // what a rank keeps in host memory
    bool talks_alone;                            // NCCL is set up on a single GPU too
};

#endif
