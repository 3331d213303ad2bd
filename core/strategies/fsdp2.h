// Inside the room: FSDP2's units and their shards, which fsdp2_build.c makes and fsdp2.c runs.
#ifndef FATHOM_STRATEGIES_FSDP2_H
#define FATHOM_STRATEGIES_FSDP2_H

#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/strategies/strategies.h"

struct unit {
    int count;
    int *parameters;
    uint64_t *shards; // elements of each parameter's padded shard
    uint64_t shard_elements, trained_elements;
    uint64_t gathered_bytes; // of its shards, each in the type that it computes in
    uint64_t cast_elements;  // of shards that are kept in another type
    struct storage *flat;    // gathered, not yet copied out
    struct storage **full;
    bool is_full;
    struct storage *gradient; // of all its shards, one flat tensor
    struct storage *summed;   // what replicas added up, until the backward pass is over
    bool stays;               // whole from its forward pass on
};

struct shards {
    struct unit *units;
    int unit_count, root, embedding, head; // -1 where there is none
    int blocks, block_count;               // of a vision tower
    struct storage *last_flat;    // of the unit gathered before, kept during the forward pass
    struct storage *last_reduced; // input of the last reduction
    int *order;                   // units as the forward pass finished them
    int order_count, order_most;
    uint64_t ranks;
    uint32_t stored_width, trained_width, reduce_width; // of shards, of trained ones, of sums
    uint16_t copy_in_stream, reduce_stream;
    int tail; // the last norm and the head, which may be the embedding too, in one unit; -1
    int read; // a head that nobody calls: its reader gathers it; -1
    bool tail_is_begun; // its norm has been called, and its head not yet
    bool tail_is_late;  // its gradients wait for the end of the backward pass
};

static inline struct shards *shards_of(const struct trainer *t)
{
    return t->state;
}

static inline bool is_offloaded(const struct trainer *t)
{
    return t->job->offload || (t->is_reference && !t->habits->one_unit);
}

static inline void drop(struct trainer *t, struct storage **s)
{
    machine_drop(t->machine, *s);
    *s = NULL;
}

// peft's adapters beside a model in bf16 that no policy casts.
static inline bool is_wide_alone(const struct trainer *t, int parameter)
{
    return job_widens_adapters(t->job) && !t->graph.parameters[parameter].frozen;
}

static inline uint32_t gathered_width(const struct trainer *t, int parameter)
{
    return is_wide_alone(t, parameter) ? t->graph.parameters[parameter].width : t->width;
}

// Accelerate 1.15 makes what is trained fp32 (fsdp2_prepare_model).
static inline uint32_t stored_width(const struct trainer *t, int parameter)
{
    if (is_wide_alone(t, parameter))
        return gathered_width(t, parameter);
    uint32_t width = shards_of(t)->stored_width;
    const struct parameter *p = &t->graph.parameters[parameter];
    return p->frozen && !p->idle ? trainer_frozen_width(t, width) : width;
}

static inline uint64_t shard_elements(const struct trainer *t, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    if (p->packed)
        return u64_divide_up(stored_elements(p), job_shards(t->job));
    return u64_divide_up(p->rows, job_shards(t->job)) * p->columns;
}

void fsdp2_load(struct trainer *t);
void fsdp2_dismiss(struct trainer *t);

#endif
