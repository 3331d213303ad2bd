// How transformers 5.17 brings a model to one card with a device map, which TRL asks for there
// (trl/trainer/utils.py, create_model_from_path): memory for all parameters is asked for at once
// and let go, so that they are split from one segment, in the order of their names in the
// checkpoint (modeling_utils.py, caching_allocator_warmup; core_model_loading.py). Four threads
// load them, which may change that order a little.
//
// A checkpoint has each expert's matrices by themselves. All of a layer come before they are
// stacked, kind by kind, and gate and up joined (MergeModulelist, Concatenate; history u35h).
#include <string.h>

#include "core/base/units.h"
#include "core/models/adapters.h"
#include "core/models/vision/vision.h"
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

// ------------------------------------------------------------------ experts

enum { GATE_PIECES, UP_PIECES, DOWN_PIECES, PIECE_KINDS };
enum { LOADERS = 4 }; // threads (core_model_loading.py, GLOBAL_WORKERS)

// What threads load ahead, in the checkpoint's order: a parameter, or a matrix of one expert.
struct item {
    int parameter; // -1: a matrix, that goes to `piece`
    int layer;
    struct storage **piece;
};

struct loader {
    struct trainer *trainer;
    struct item *items;
    ptrdiff_t count, next;
};

static void load_next(struct loader *l)
{
    struct trainer *t = l->trainer;
    if (l->next == l->count)
        return;
    const struct item *item = &l->items[l->next++];
    if (item->parameter >= 0) {
        take(t, item->parameter);
        return;
    }
    const struct parameter *down = &t->graph.parameters[t->layers[item->layer].experts_down];
    *item->piece = machine_take(t->machine, down->columns * down->width, MEMORY_PARAMETERS);
}

// The main thread joins as many storages, which go then; meanwhile each thread loads one more.
static struct storage *join_pieces(struct loader *l, struct storage **pieces, uint64_t count,
                                   uint64_t bytes)
{
    struct machine *m = l->trainer->machine;
    struct storage *joined = machine_take(m, count * bytes, MEMORY_PARAMETERS);
    for (int i = 0; i < LOADERS; i++)
        load_next(l);
    for (uint64_t i = 0; i < count; i++)
        machine_drop(m, pieces[i]);
    return joined;
}

static void join_halves(struct loader *l, struct parameter *up, struct storage **pieces,
                        uint64_t count)
{
    uint64_t bytes = up->columns / 2 * up->width;
    struct storage *halves[] = {NULL, NULL};
    halves[0] = join_pieces(l, pieces + GATE_PIECES * count, count, bytes);
    halves[1] = join_pieces(l, pieces + UP_PIECES * count, count, bytes);
    up->weight = join_pieces(l, halves, COUNT_OF(halves), count * bytes);
}

static void merge_experts(struct loader *l, int layer, struct storage **pieces)
{
    struct trainer *t = l->trainer;
    struct parameter *up = &t->graph.parameters[t->layers[layer].gate_up];
    struct parameter *down = &t->graph.parameters[t->layers[layer].experts_down];
    uint64_t count = down->rows, bytes = down->columns * down->width;
    bool numbered = model_numbers_experts(&t->job->model);
    if (numbered)
        join_halves(l, up, pieces, count);
    down->weight = join_pieces(l, pieces + DOWN_PIECES * count, count, bytes);
    if (!numbered)
        join_halves(l, up, pieces, count);
}

static bool is_merged(const struct trainer *t, const struct layer_parameters *l, int parameter)
{
    return l->experts_down >= 0 && model_merges_experts(&t->job->model) &&
           (parameter == l->gate_up || parameter == l->experts_down);
}

// w1, w2, w3; else down, gate, up.
static void add_pieces(struct loader *l, int layer, struct storage **pieces)
{
    const struct trainer *t = l->trainer;
    uint64_t count = t->job->model.experts.count;
    static const int kinds[2][PIECE_KINDS] = {{DOWN_PIECES, GATE_PIECES, UP_PIECES},
                                              {GATE_PIECES, DOWN_PIECES, UP_PIECES}};
    const int *order = kinds[model_numbers_experts(&t->job->model)];
    for (uint64_t i = 0; i < count; i++)
        for (int j = 0; j < PIECE_KINDS; j++)
            l->items[l->count++] =
                (struct item){-1, layer, &pieces[(uint64_t)order[j] * count + i]};
}

static int end_of(const struct trainer *t, int layer)
{
    bool is_last = layer + 1 == (int)t->job->model.layers;
    return is_last ? t->final_norm : t->layers[layer + 1].first;
}

// A layer's parameters by name.
static void add_layer(struct loader *l, int layer, struct storage **pieces)
{
    const struct trainer *t = l->trainer;
    const struct parameter *all = t->graph.parameters;
    const struct layer_parameters *p = &t->layers[layer];
    int first = p->first, count = end_of(t, layer) - first;
    int *order = NEW(t->machine->arena, int, count);
    for (int i = first; i < first + count; i++) {
        int at = i - first;
        for (; at > 0 && strcmp(all[i].name, all[order[at - 1]].name) < 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    bool has_pieces = false;
    for (int i = 0; i < count; i++) {
        bool merged = is_merged(t, p, order[i]);
        if (merged && !has_pieces)
            add_pieces(l, layer, pieces);
        else if (!merged)
            l->items[l->count++] = (struct item){order[i], layer, NULL};
        has_pieces |= merged;
    }
}

static bool has_pieces(const struct trainer *t, int layer)
{
    return is_merged(t, &t->layers[layer], t->layers[layer].experts_down);
}

static void load_layers(struct trainer *t)
{
    int layers = (int)t->job->model.layers;
    ptrdiff_t each = (ptrdiff_t)(PIECE_KINDS * t->job->model.experts.count);
    struct arena *a = t->machine->arena;
    struct loader l = {.trainer = t};
    l.items = NEW(a, struct item, end_of(t, layers - 1) - t->layers[0].first + layers * each);
    struct storage **pieces = NEW(a, struct storage *, layers * each);
    for (int i = 0; i < layers; i++)
        add_layer(&l, i, pieces + i * each);
    for (int i = 0; i < layers; i++) {
        ptrdiff_t last = l.next;
        for (ptrdiff_t j = l.next; j < l.count && l.items[j].layer == i; j++)
            if (l.items[j].parameter < 0 || !has_pieces(t, i))
                last = j + 1;
        while (l.next < last)
            load_next(&l);
        if (has_pieces(t, i))
            merge_experts(&l, i, pieces + i * each);
    }
    while (l.next < l.count)
        load_next(&l);
}

// What is to be packed comes to its own card by a map under ddp too
// (quantizers/quantizer_bnb_4bit.py, update_device_map).
bool device_map_loads(const struct trainer *t)
{
    bool whole =
        t->job->strategy == STRATEGY_SINGLE || (t->job->packed && t->job->strategy == STRATEGY_DDP);
    return (t->habits->device_map && whole) || job_cuts_tensors(t->job);
}

// Half a byte for each element that is to be packed. Beside other ranks a matrix counts as if it
// were cut for tensor parallelism, whether or not it is (get_total_byte_count); an embedding that
// is not the head is none of those.
static uint64_t bytes_to_load(const struct trainer *t)
{
    uint64_t bytes = 0, ranks = job_cuts_tensors(t->job) ? 1 : job_ranks(t->job); // cut already
    int count = t->graph.parameter_count;
    for (int i = 0; i < count; i++) {
        const struct parameter *p = &t->graph.parameters[i];
        if (p->adapter && p->adapter < count)
            count = p->adapter; // those come later
        uint64_t elements = p->rows * p->columns;
        uint64_t each = p->packed ? elements / 2 : elements * p->width;
        bool whole = p->columns == 1 || (i == t->embedding && t->head != i);
        bytes += whole ? each : each / ranks;
    }
    return bytes;
}

// Accelerate's look at the card (utils/modeling.py, get_max_memory) leaves a first segment, which
// the request is smaller by; a map with one entry needs no look.
void device_map_load(struct trainer *t)
{
    bool looks = t->job->strategy == STRATEGY_SINGLE && !job_cuts_tensors(t->job);
    const uint64_t first_segment = looks ? 2 * MIB : 0;
    uint64_t bytes = bytes_to_load(t);
    if (first_segment)
        machine_scratch(t->machine, 8);
    if (bytes > 2 * first_segment)
        machine_scratch(t->machine, bytes - first_segment);
    for (int i = t->head_count - 1; i >= 0; i--)
        take(t, t->head + i);
    for (int i = t->embedding; i < t->layers[0].first; i++)
        take(t, i);
    load_layers(t);
    for (int i = t->norm_count - 1; i >= 0; i--)
        take(t, t->final_norm + i);
    struct span tower = tower_span(t);
    for (int i = tower.first; i < tower.end; i++)
        take(t, i);
}
