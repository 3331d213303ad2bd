// Megatron-LM's GPT model (core 0.13, 23e00ed) with TransformerEngine's modules: one rank's part of
// one or more stages of a pipeline.
#ifndef FATHOM_MODELS_MEGATRON_H
#define FATHOM_MODELS_MEGATRON_H

#include "core/models/trainer.h"
#include "core/ops/engine.h"

// The layers of a stage; what precedes the first and follows the last one's.
struct stage {
    int first, count;
    bool has_words, has_head;
};

// What the rank of the trainer has beside its parameters.
struct megatron {
    struct engine engine;
    struct stage *stages; // one, or several in turn with those of other ranks
    int stage_count;
    int words, head; // the head may be the words
    bool *is_expert; // of each parameter
    int final_norm;
    // Of the micro-batch before, which keep their names until the next one's are there.
    struct storage *came, *sent;
};

struct megatron *megatron_of(const struct trainer *t);

// The parameters of its stages, in the order of Megatron's modules.
void megatron_parameters(struct trainer *t);

// Of micro-batch and stage: up to its last hidden state, or its loss. `in` is what came from the
// stage before, without storage where there is none; it is taken over.
struct var megatron_forward(struct graph *g, const struct stage *stage, struct var in);

// Ranks that share the optimizer's state, of experts and of the rest.
uint64_t megatron_data_ranks(const struct job *p);
uint64_t megatron_expert_ranks(const struct job *p);

uint64_t megatron_experts(const struct job *p); // of a layer, on one rank

#endif
