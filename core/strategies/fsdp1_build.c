// FSDP1's building: layers and the root become flat parameters, which torch cuts, and sends to the
// other ranks, unit by unit (torch/distributed/fsdp/_init_utils.py and _flat_param.py, 2.11).
#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/models/vision/vision.h"
#include "core/strategies/fsdp1.h"

// verl makes an untied model on the meta device on every rank but the first. There each module is
// then made on the card and the cache emptied (utils/fsdp_utils.py, init_fn), which leaves worse
// holes than the first rank has: it is such a rank that is simulated.
static bool is_made_on_meta(const struct trainer *t)
{
    return t->habits->sends_parameters && !is_whole(t) && t->head != t->embedding;
}

// Accelerate 1.15 (utils/dataclasses.py) sets sync_module_states where one rank reads the weights.
static bool is_sent(const struct trainer *t)
{
    return t->habits->sends_parameters || (t->habits->cuts_on_card && t->job->loads_once);
}

// What is to be packed comes to every rank's card by a map, and is wrapped there
// (transformers 5.17, quantizers/quantizer_bnb_4bit.py, update_device_map). transformers 4 brought
// it back to host memory once it was packed (4.45, modeling_utils.py,
// _load_state_dict_into_meta_model).
static bool is_loaded_whole(const struct trainer *t)
{
    return t->job->packed && !job_stands_on_4(t->job);
}

static void load_whole(struct trainer *t)
{
    if (!is_loaded_whole(t))
        return;
    device_map_load(t);
    take_adapters(t, THIN_WIDTH);
    machine_mark(t->machine, EVENT_EMPTY_CACHE); // transformers/trainer.py, free_memory()
}

static void take_whole(struct trainer *t, int parameter)
{
    struct parameter *p = &t->graph.parameters[parameter];
    if (is_loaded_whole(t))
        return;
    p->weight = machine_take(t->machine, stored_elements(p) * shards_of(t)->stored_width,
                             MEMORY_PARAMETERS);
    if (is_made_on_meta(t))
        machine_mark(t->machine, EVENT_EMPTY_CACHE);
}

static void drop_whole(struct trainer *t, int parameter)
{
    machine_drop(t->machine, t->graph.parameters[parameter].weight);
    t->graph.parameters[parameter].weight = NULL;
}

// One bucket of sync_module_states; a tensor alone is sent as it is.
static struct storage *fill_bucket(struct trainer *t, uint64_t bytes, int tensors)
{
    return tensors > 1 ? machine_take(t->machine, bytes, MEMORY_WORKING) : NULL;
}

// sync_module_states: the first rank's buffers and parameters are sent to the others, joined in
// buckets that are closed at 250 MiB, two of them on their way at a time
// (torch/csrc/distributed/c10d/comm.cpp, broadcast_coalesced). What is kept lies in their holes.
static void broadcast_unit(struct trainer *t, const struct unit *u, uint64_t buffer_bytes)
{
    static const uint64_t limit = 250 * MIB;
    struct storage *on_their_way[2] = {NULL, NULL}; // the older one first
    uint64_t bytes = buffer_bytes;
    int tensors = buffer_bytes ? 2 : 0;
    for (int i = 0; i < u->count; i++) {
        const struct parameter *p = &t->graph.parameters[u->parameters[i]];
        bytes += stored_elements(p) * shards_of(t)->stored_width;
        tensors++;
        if (bytes < limit && i + 1 < u->count)
            continue;
        machine_drop(t->machine, on_their_way[0]);
        on_their_way[0] = on_their_way[1];
        on_their_way[1] = fill_bucket(t, bytes, tensors);
        bytes = 0;
        tensors = 0;
    }
    machine_drop(t->machine, on_their_way[0]);
    machine_drop(t->machine, on_their_way[1]);
}

// Parameters come to the card module by module, the nearer ones first: `first` of them are the
// unit's own. They are joined, and this rank's part of that is kept, on the card or in host memory.
static void shard_unit(struct trainer *t, struct unit *u, int first)
{
    struct machine *m = t->machine;
    uint32_t width = shards_of(t)->stored_width;
    enum memory_kind kind = is_parked(t) ? MEMORY_REFERENCE : MEMORY_PARAMETERS;
    for (int i = first; i < u->count; i++)
        take_whole(t, u->parameters[i]);
    for (int i = 0; i < first; i++)
        take_whole(t, u->parameters[i]);
    if (is_sent(t)) // the root has two buffers of rotary frequencies
        broadcast_unit(
            t, u, u == &shards_of(t)->units[shards_of(t)->root] ? 4 * t->job->model.head_dim : 0);
    u->trained->weight = machine_take(m, u->elements * width, kind);
    if (!is_whole(t)) {
        struct storage *flat = u->trained->weight;
        u->trained->weight = machine_take(m, u->shard_elements * width, kind);
        machine_drop(m, flat);
    }
    if ((is_parked(t) && !is_whole(t)) || is_offloaded(t)) {
        machine_drop(m, u->trained->weight);
        u->trained->weight = NULL;
    }
    for (int i = u->count - 1; i >= 0; i--)
        drop_whole(t, u->parameters[i]);
    for (int i = 0; i < u->count; i++)
        if (t->graph.parameters[u->parameters[i]].packed && !is_loaded_whole(t))
            take_tables(t, &t->graph.parameters[u->parameters[i]]);
}

static void add_parameter(struct trainer *t, struct unit *u, int parameter)
{
    u->parameters[u->count++] = parameter;
    u->elements += stored_elements(&t->graph.parameters[parameter]);
}

// Of a unit; frozen ones beside adapters have none of the trained.
static struct trained *trained_of(struct trainer *t, int index)
{
    bool own = shards_of(t)->thin_count || keeps_parameters(t);
    return own ? NEW(t->machine->arena, struct trained, 1) : &t->trained[index];
}

// Each block of a vision tower; the rest of it is the root's.
static void make_units_of_tower(struct trainer *t, struct unit *root)
{
    struct shards *s = shards_of(t);
    struct span tower = tower_span(t);
    int first = s->block_count ? tower_block(t, 0).first : tower.end;
    int end = s->block_count ? tower_block(t, s->block_count - 1).end : tower.end;
    for (int i = 0; i < s->block_count; i++) {
        struct span block = tower_block(t, i);
        struct unit *u = &s->units[s->blocks + i];
        u->parameters = NEW(t->machine->arena, int, block.end - block.first);
        u->trained = trained_of(t, i + 1);
        for (int j = block.first; j < block.end; j++)
            add_parameter(t, u, j);
    }
    for (int i = tower.first; i < tower.end; i++)
        if (i < first || i >= end)
            add_parameter(t, root, i);
}

static void make_units(struct trainer *t)
{
    struct shards *s = shards_of(t);
    for (int i = 0; i < s->root; i++) {
        struct unit *u = &s->units[i];
        int first = t->layers[i].first;
        int end = i + 1 < s->root ? t->layers[i + 1].first : t->final_norm;
        u->parameters = NEW(t->machine->arena, int, end - first);
        u->trained = trained_of(t, s->block_count + i + 1);
        for (int j = first; j < end; j++)
            add_parameter(t, u, j);
    }
    struct unit *root = &s->units[s->root];
    int first = t->layers[0].first, end = t->final_norm + t->norm_count + t->head_count;
    int tower = tower_span(t).end - tower_span(t).first;
    root->parameters =
        NEW(t->machine->arena, int, tower + first - t->embedding + end - t->final_norm);
    root->trained = trained_of(t, 0);
    make_units_of_tower(t, root);
    for (int i = t->embedding; i < first; i++)
        add_parameter(t, root, i);
    for (int i = t->final_norm; i < end; i++)
        add_parameter(t, root, i);
}

// Wrapped before their layer: whole, flat, and the part of this rank.
static void shard_thin(struct trainer *t, struct unit *u)
{
    struct machine *m = t->machine;
    struct shards *s = shards_of(t);
    int first, count = thin_of(t, u, &first);
    u->thin = NEW(m->arena, struct storage *, count);
    for (int i = first; i < first + count; i++) {
        struct parameter *p = &t->graph.parameters[s->first_thin + i];
        uint64_t elements = p->rows * p->columns, part = u64_divide_up(elements, s->ranks);
        struct storage *whole = is_loaded_whole(t)
                                    ? p->weight
                                    : machine_take(m, elements * THIN_WIDTH, MEMORY_PARAMETERS);
        struct storage *flat = machine_take(m, elements * THIN_WIDTH, MEMORY_PARAMETERS);
        t->trained[i] = (struct trained){.elements = part, .width = THIN_WIDTH};
        t->trained[i].weight = machine_take(m, part * THIN_WIDTH, MEMORY_PARAMETERS);
        machine_drop(m, flat);
        machine_drop(m, whole);
        p->weight = NULL;
        if (t->job->precision == PRECISION_BF16) // nothing is cast
            p->width = THIN_WIDTH;
    }
}

// What is trained: every unit, or the adapters beside them, whose frozen units are as loaded.
static void find_trained(struct trainer *t, struct shards *s)
{
    const struct graph *g = &t->graph;
    if (t->job->lora_rank) {
        s->first_thin = t->final_norm + t->norm_count + t->head_count;
        s->thin_count = (g->parameter_count - s->first_thin) / s->root;
        s->stored_width = trainer_frozen_width(t, s->stored_width);
        t->graph.adapter_rest = THIN_WIDTH;
        t->graph.holds_leaves = t->job->reentrant;
    }
    t->trained_count = s->thin_count ? s->thin_count * s->root : s->unit_count;
    t->trained = NEW(t->machine->arena, struct trained, t->trained_count);
}

// A unit's part begins with its first parameters: how much of each this rank has.
static void measure_parts(const struct trainer *t, uint64_t *parts)
{
    const struct shards *s = shards_of(t);
    for (int i = 0; i < s->unit_count; i++) {
        uint64_t left = s->units[i].shard_elements;
        for (int j = 0; j < s->units[i].count; j++) {
            int parameter = s->units[i].parameters[j];
            uint64_t all = stored_elements(&t->graph.parameters[parameter]);
            parts[parameter] = all < left ? all : left;
            left -= parts[parameter];
        }
    }
}

// What of the parameters is here, in the Trainer's order: matrices, then norms and biases.
static void train_parts(struct trainer *t)
{
    const struct shards *s = shards_of(t);
    int count = t->graph.parameter_count;
    uint64_t *parts = NEW(t->machine->arena, uint64_t, count);
    measure_parts(t, parts);
    t->trained = NEW(t->machine->arena, struct trained, count);
    t->trained_count = 0;
    for (int group = 0; group < 2; group++)
        for (int i = 0; i < count; i++)
            if (parts[i] && (t->graph.parameters[i].columns == 1) == group)
                t->trained[t->trained_count++] = (struct trained){
                    .elements = parts[i], .width = s->stored_width, .parameter = i};
}

void fsdp1_load(struct trainer *t)
{
    enum { LAYER_NORMS = 2, HEAD = 1 };
    struct shards *s = NEW(t->machine->arena, struct shards, 1);
    t->state = s;
    s->ranks = job_shards(t->job);
    s->root = (int)t->job->model.layers;
    s->blocks = s->root + 1;
    s->block_count = (int)t->job->model.vision.depth;
    s->unit_count = s->blocks + s->block_count;
    s->width = t->width;
    s->stored_width = is_parked(t) || t->job->precision == PRECISION_BF16 ? t->width : 4;
    s->reduce_width = t->habits->sums_narrow && !is_whole(t) ? t->width : s->stored_width;
    s->cast_stream = t->first_stream;
    s->gather_stream = t->first_stream + 1;
    s->reduce_stream = t->first_stream + 2;
    t->graph.parameter_stream = s->gather_stream;
    s->units = NEW(t->machine->arena, struct unit, s->unit_count);
    find_trained(t, s);
    make_units(t);
    load_whole(t);
    for (int i = 1; i <= s->unit_count; i++) { // the root last
        struct unit *u = &s->units[unit_in_order(s, i % s->unit_count)];
        u->shard_elements = u64_divide_up(u->elements, s->ranks);
        *u->trained = (struct trained){.elements = u->shard_elements, .width = s->stored_width};
        shard_thin(t, u);
        shard_unit(t, u, u->count - (i < s->unit_count ? LAYER_NORMS : HEAD));
    }
    if (keeps_parameters(t))
        train_parts(t);
}

void fsdp1_dismiss(struct trainer *t)
{
    const struct shards *s = shards_of(t);
    for (int i = 0; i < s->unit_count; i++) {
        machine_drop(t->machine, s->units[i].full);
        machine_drop(t->machine, s->units[i].trained->weight);
        s->units[i].full = s->units[i].trained->weight = NULL;
    }
}
