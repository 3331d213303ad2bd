// See parameters.h. What there is, and in which order, says core/model/params.c.
#include "core/models/parameters.h"

#include <stddef.h>
#include <string.h>

#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/models/vision/vision.h"

// Of a tower: what its blocks and mergers multiply by.
static bool is_towers_linear(const struct tensor *row)
{
    bool merges = row->role == (ptrdiff_t)offsetof(struct vision_parameters, fc1) ||
                  row->role == (ptrdiff_t)offsetof(struct vision_parameters, fc2);
    return row->part == PART_VISION && row->shape[1] > 1 && (row->place != PLACE_MODEL || merges);
}

// What bitsandbytes knows, which leaves the head as it is (transformers 5.17, quantizers/base.py,
// get_keys_to_not_convert): transformers 4 has each expert as linear layers.
static bool is_linear(const struct trainer *t, const struct tensor *row)
{
    if (is_towers_linear(row))
        return true;
    return row->target && (!tensor_is_folded(row) || job_stands_on_4(t->job));
}

int parameter_add(struct trainer *t, const struct tensor *row)
{
    struct graph *g = &t->graph;
    struct parameter p = {.name = row->name,
                          .rows = row->shape[0],
                          .columns = row->shape[1],
                          .width = t->width,
                          .cut = row->cut,
                          .packed = t->job->packed && is_linear(t, row),
                          .single = t->job->packed == QUANTIZE_NF4_SINGLE};
    bool as_stored = t->job->strategy == STRATEGY_FSDP2 || t->job->strategy == STRATEGY_ZERO3;
    if (p.packed && t->job->recipe == RECIPE_TRL && t->job->precision != PRECISION_BF16 &&
        !as_stored)  // whose storage is of one type with the weights around it
        p.width = 4; // as it is loaded (trl/trainer/utils.py, create_model_from_path)
    if (p.packed && !t->by_device_map && !t->strategy->load)
        pack_weight(t, &p);
    else if (!t->strategy->load && !t->by_device_map)
        p.weight = machine_take(t->machine, row->elements * t->width, MEMORY_PARAMETERS);
    g->parameters[g->parameter_count] = p;
    return g->parameter_count++;
}

static void add_layer(struct trainer *t, int layer)
{
    const struct parameters *all = &t->job->parameters;
    struct layer_parameters *l = &t->layers[layer];
    memset(l, -1, sizeof *l);
    l->first = t->graph.parameter_count;
    for (ptrdiff_t i = 0; i < all->tensor_count; i++) {
        const struct tensor *row = &all->tensors[i];
        if (row->buffer || !tensor_is_in(row, &t->job->model.layer[layer]))
            continue;
        ASSERT(row->role);
        machine_module(t->machine, row->name, layer, false);
        int number = parameter_add(t, row);
        t->graph.parameters[number].layer = layer;
        memcpy((char *)l + row->role, &number, sizeof number);
    }
}

int parameter_of(const struct layer_parameters *l, const struct tensor *row)
{
    int number;
    memcpy(&number, (const char *)l + row->role, sizeof number);
    return number;
}

// The tensors of this part that are not in a layer, of which the first is the weight; -1 without.
static int add_part(struct trainer *t, enum part part)
{
    const struct parameters *all = &t->job->parameters;
    int first = t->graph.parameter_count;
    for (ptrdiff_t i = 0; i < all->tensor_count; i++)
        if (all->tensors[i].place == PLACE_MODEL && all->tensors[i].part == part) {
            machine_module(t->machine, all->tensors[i].name, 0, false);
            parameter_add(t, &all->tensors[i]);
        }
    return t->graph.parameter_count > first ? first : -1;
}

enum { ADAPTER_TENSORS = 3 * (TARGET_COUNT + 2) };

void parameters_build(struct trainer *t)
{
    const struct model *m = &t->job->model;
    struct arena *a = t->machine->arena;
    ptrdiff_t layers = (ptrdiff_t)m->layers;
    ptrdiff_t adapters = t->job->lora_rank ? ADAPTER_TENSORS : 0;
    ptrdiff_t most = t->job->parameters.tensor_count + adapters;
    ptrdiff_t parts = layers + (ptrdiff_t)(m->vision.depth + m->vision.deepstack) + 1;
    t->graph.parameters = NEW(a, struct parameter, most * parts);
    t->layers = NEW(a, struct layer_parameters, layers);
    t->calls = ROOM(a, struct layer_call, layers);
    tower_build(t);
    t->embedding = add_part(t, PART_EMBEDDING);
    t->positions = model_has(m, FEATURE_POSITIONS) ? t->embedding + 1 : -1;
    for (int i = 0; i < (int)layers; i++) {
        t->calls[i] = (struct layer_call){t, i};
        add_layer(t, i);
    }
    t->final_norm = t->graph.parameter_count;
    add_part(t, PART_NORMS);
    t->norm_count = t->graph.parameter_count - t->final_norm;
    t->head = add_part(t, PART_HEAD);
    t->head_count = t->graph.parameter_count - t->final_norm - t->norm_count;
    machine_module(t->machine, NULL, 0, true);
    t->head_is_idle = t->head >= 0 && t->job->loss == LOSS_NONE;
    tower_settle(t);
    if (t->head >= 0)
        return;
    t->head = t->embedding;
    t->graph.parameters[t->head].tied = true;
}

void buffers_build(struct trainer *t)
{
    const struct model *m = &t->job->model;
    const struct parameters *all = &t->job->parameters;
    int rotaries = model_has(m, FEATURE_LOCAL_ROTARY) ? 2 : 1;
    if (model_has(m, FEATURE_EMBEDDING_SCALE))
        machine_take(t->machine, t->width, MEMORY_PARAMETERS);
    for (ptrdiff_t i = 0; i < all->tensor_count; i++)
        for (uint64_t j = 0; all->tensors[i].buffer && j < all->tensors[i].copies; j++)
            machine_take(t->machine, all->tensors[i].elements * t->width, MEMORY_PARAMETERS);
    tower_buffers(t);
    if (m->family->causal_buffer)
        machine_take(t->machine, m->max_position * m->max_position, MEMORY_PARAMETERS);
    for (uint64_t i = 0; model_has(m, FEATURE_WIDE_SCORES) && i < m->layers; i++)
        machine_take(t->machine, m->max_position * m->rotary_dim * 4, MEMORY_PARAMETERS);
    uint64_t positions = u64_most(m->max_position, t->job->context);
    for (uint64_t i = 0; job_caches_positions(t->job) && i < 2 * m->layers;
         i++) // cosines and sines
        machine_take(t->machine, positions * m->rotary_dim * t->width, MEMORY_PARAMETERS);
    if (model_has(m, FEATURE_NO_ROTARY))
        return;
    for (int i = 0; i < 2 * rotaries; i++) // frequencies, and a copy
        machine_take(t->machine, m->rotary_dim * 2, MEMORY_PARAMETERS);
}
