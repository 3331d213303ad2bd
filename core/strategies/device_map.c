// How transformers 5.17 brings a model to one card with a device map, which TRL asks for there
// (trl/trainer/utils.py, create_model_from_path): memory for all parameters is asked for at once
// and let go, so that they are split from one segment, in the order of their names in the
// checkpoint (modeling_utils.py, caching_allocator_warmup; core_model_loading.py). Four threads
// load them, which may change that order a little; merging experts is not followed.
#include <string.h>

#include "core/base/units.h"
#include "core/models/adapters.h"
#include "core/models/vision.h"
#include "core/strategies/strategies.h"

static void take(struct trainer *t, int parameter)
{
    struct parameter *p = &t->graph.parameters[parameter];
    graph_at_parameter(&t->graph, parameter);
    if (p->packed)
        pack_weight(t, p);
    else
        p->weight = machine_take(t->machine, p->rows * p->columns * p->width, MEMORY_PARAMETERS);
}

static void take_layer(struct trainer *t, int first, int end)
{
    const struct parameter *all = t->graph.parameters;
    int *order = NEW(t->machine->arena, int, end - first);
    for (int i = first; i < end; i++) {
        int at = i - first;
        for (; at > 0 && strcmp(all[i].name, all[order[at - 1]].name) < 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < end - first; i++)
        take(t, order[i]);
}

// What is to be packed comes to its own card by a map under ddp too
// (quantizers/quantizer_bnb_4bit.py, update_device_map).
bool device_map_loads(const struct trainer *t)
{
    bool whole =
        t->job->strategy == STRATEGY_SINGLE || (t->job->packed && t->job->strategy == STRATEGY_DDP);
    return t->habits->device_map && whole;
}

// Half a byte for each element that is to be packed.
static uint64_t bytes_to_load(const struct trainer *t)
{
    uint64_t bytes = 0;
    for (int i = 0; i < t->graph.parameter_count; i++) {
        const struct parameter *p = &t->graph.parameters[i];
        uint64_t elements = p->rows * p->columns;
        bytes += p->packed ? elements / 2 : elements * p->width;
    }
    return bytes;
}

// Accelerate's look at the card (utils/modeling.py, get_max_memory) leaves a first segment, which
// the request is smaller by; a map with one entry needs no look.
void device_map_load(struct trainer *t)
{
    const uint64_t first_segment = t->job->strategy == STRATEGY_SINGLE ? 2 * MIB : 0;
    int layers = (int)t->job->model.layers;
    uint64_t bytes = bytes_to_load(t);
    if (first_segment)
        machine_scratch(t->machine, 8);
    if (bytes > 2 * first_segment)
        machine_scratch(t->machine, bytes - first_segment);
    for (int i = t->head_count - 1; i >= 0; i--)
        take(t, t->head + i);
    for (int i = t->embedding; i < t->layers[0].first; i++)
        take(t, i);
    for (int i = 0; i < layers; i++)
        take_layer(t, t->layers[i].first, i + 1 < layers ? t->layers[i + 1].first : t->final_norm);
    for (int i = t->norm_count - 1; i >= 0; i--)
        take(t, t->final_norm + i);
    struct span tower = tower_span(t);
    for (int i = tower.first; i < tower.end; i++)
        take(t, i);
}
