// What ZeRO-3 makes whole: parameters for a checkpoint, one module's after another's, and all of
// them for generation.
#include "core/strategies/zero/zero3.h"

static void drop_weight(struct trainer *t, int parameter)
{
    machine_drop(t->machine, t->graph.parameters[parameter].weight);
    t->graph.parameters[parameter].weight = NULL;
}

static struct storage *take_whole(struct trainer *t, int parameter)
{
    const struct zero3 *z = zero3_of(t);
    uint64_t elements = coordinator_shard(z->coordinator, parameter) * z->ranks;
    return machine_take(t->machine, elements * t->width, MEMORY_GATHERED);
}

// deepspeed/runtime/engine.py, _zero3_consolidated_16bit_state_dict: one module's parameters after
// another's, for the first rank to copy; those of all experts of a layer are one module's.
static void gather_state(struct trainer *t)
{
    for (int i = 0; i < t->graph.parameter_count; i++)
        machine_drop(t->machine, take_whole(t, i));
    for (uint64_t i = 0; i < t->job->model.layers; i++) {
        const struct layer_parameters *p = &t->layers[i];
        if (p->experts_down < 0)
            continue;
        struct storage *up = take_whole(t, p->gate_up); // of one module
        machine_drop(t->machine, take_whole(t, p->experts_down));
        machine_drop(t->machine, up);
    }
}

// What was gathered goes first; small parameters that stay are gathered again in the end.
void zero3_save(struct trainer *t, bool hf)
{
    coordinator_let_all_go(zero3_of(t)->coordinator);
    if (hf)
        gather_state(t);
    coordinator_gather_persistent(zero3_of(t)->coordinator);
}

// trl 1.16, models/utils.py, unwrap_model_for_generation (ds3_gather_for_generation): without
// hooks, and under deepspeed.zero.GatheredParameters.
void zero3_make_whole(struct trainer *t, bool whole)
{
    struct zero3 *z = zero3_of(t);
    z->is_whole = whole;
    if (whole)
        coordinator_let_all_go(z->coordinator);
    for (int i = 0; i < t->graph.parameter_count; i++) {
        if (whole)
            t->graph.parameters[i].weight = take_whole(t, i);
        else
            drop_weight(t, i);
    }
    if (whole)
        return;
    coordinator_forget(z->coordinator); // the same, add_hooks
    coordinator_gather_persistent(z->coordinator);
}
