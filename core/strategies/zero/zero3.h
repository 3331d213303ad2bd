// Inside the room: what ZeRO-3 knows of its modules, which zero3_build.c makes and zero3.c runs.
#ifndef FATHOM_STRATEGIES_ZERO3_H
#define FATHOM_STRATEGIES_ZERO3_H

#include "core/strategies/trainer.h"
#include "core/strategies/zero/zero_coordinator.h"
#include "core/strategies/zero/zero_pending.h"

// Modules without parameters that are called before and after a module in a pass; each is a moment
// at which more parameters are gathered ahead.
struct neighbours {
    int before, after;
};

struct zero3 {
    struct coordinator *coordinator;
    struct neighbours *forward, *backward; // by module
    bool *is_read;                         // by DoRA's layer: a base's weight
    bool *is_unseen; // by module: the end of its backward pass, see leave_module_backward
    int *uses_left;
    struct storage *buffer; // of gradients on their way
    int *bucket;
    int bucket_count;
    uint64_t bucket_filled, bucket_elements, ranks;
    bool *in_block;         // a parameter of experts, or of their router where that is in the block
    bool has_leaf_blocks;   // see zero3_is_leaf
    int *weights;           // of a thin matrix: the weight it stands beside; -1
    int base_count;         // parameters before the thin ones
    bool is_fetched_early;  // a checkpointed layer's last module, before the recomputation
    int holder;             // which that was: weights to run it again are held for it; -1
    uint64_t micro_batch;   // of the step, from 1
    struct storage **parts; // of parameters as they were cut, before those that train are joined
    int part_count;
    bool is_whole; // hooks are taken off, all parameters are there
    struct pending reductions;
    struct storage **wide; // gradients on their way to files, by their place in the bucket
    bool reduces_wide;     // in fp32, whatever they are
    struct storage **widened, **narrowed; // then, by their place: gradients, and this rank's parts
};

static inline struct zero3 *zero3_of(const struct trainer *t)
{
    return t->state;
}

// Without overlap_comm all is on the stream of the products (stage3.py and parameter_offload.py,
// default_stream).
static inline uint16_t gather_stream(const struct trainer *t)
{
    return t->job->overlap_comm ? t->first_stream : STREAM_COMPUTE;
}

static inline bool zero3_freezes(const struct trainer *t, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    return p->frozen && !p->idle; // what is idle is flat with what is trained
}

// The families whose whole block of experts DeepSpeed takes as one module without children
// (deepspeed/runtime/zero/leaf_module_config.py); of others the experts are a module by themselves.
static inline bool zero3_is_leaf(const struct model *m)
{
    return words_have("mixtral|qwen2_moe|qwen3_moe", '|', str_from(m->family->model_type));
}

void zero3_load(struct trainer *t);
void zero3_build(struct trainer *t);

// zero3_save.c
void zero3_save(struct trainer *t, bool hf);
void zero3_make_whole(struct trainer *t, bool whole);

// zero3_dora.c: of a parameter the weight whose magnitude it is, -1; whether a thin matrix stands
// beside one that has a magnitude; what happens at that layer's moments.
int zero3_weight_of_magnitude(const struct trainer *t, int parameter);
bool zero3_has_magnitude(const struct trainer *t, int weight);
void zero3_enter_dora(struct trainer *t, int weight);
void zero3_read_in_dora(struct trainer *t, int weight);
void zero3_make_magnitudes(struct trainer *t);

#endif
