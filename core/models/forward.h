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

struct var rms_norm(struct graph *g, struct var x, int weight);
struct var rotate_pair(struct graph *g, struct var first, struct var second,
                       const struct layer_arguments *also); // both have names

// attention.c: masks, and what transformers computes operator by operator, handing out the weights
// too.
void make_masks(struct trainer *t);
void drop_masks(struct trainer *t);
struct var eager_attention(struct graph *g, struct heads h, const struct layer_call *call,
                           struct var *weights);
// Keys or values for every head of queries: a copy, but of a single head a view.
struct var repeat_heads(struct graph *g, struct var x, uint64_t elements);
const struct layer_arguments *arguments_of(const struct trainer *t, int layer);

// latent.c: attention and its output projection.
struct var latent_attention(struct graph *g, struct var x, const struct layer_call *call);

// experts.c: the sparse block of a layer.
struct var experts_forward(struct graph *g, struct var x, const struct layer_call *call);

#endif
