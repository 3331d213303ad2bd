// FSDP2's building: which parameters are a unit (accelerate 1.15, utils/fsdp_utils.py), and how the
// shards come to the card: as such, cut on it, or sent one after another.
//
// Packed weights are shards too where they are stored as bf16 (bnb_4bit_quant_storage); in bytes
// accelerate would leave them whole on every rank. With them nothing that is trained becomes fp32,
// and no weight waits in host memory: all of the model is on each card before it is cut, and goes
// when all is (accelerate 1.15, utils/fsdp_utils.py, fsdp2_prepare_model: model_has_params4bit, and
// original_sd, which holds the whole weights). Scales and tables are no parameters and stay whole.
#include "core/models/adapters.h"
#include "core/models/vision/vision.h"
#include "core/strategies/fsdp2.h"

static void add_to_unit(struct trainer *t, struct unit *u, int parameter)
{
    uint64_t elements = shard_elements(t, parameter);
    u->parameters[u->count] = parameter;
    u->shards[u->count++] = elements;
    u->shard_elements += elements;
    u->trained_elements += t->graph.parameters[parameter].frozen ? 0 : elements;
    u->gathered_bytes += elements * gathered_width(t, parameter);
    u->cast_elements += stored_width(t, parameter) != gathered_width(t, parameter) ? elements : 0;
}

static void add_with_adapter(struct trainer *t, struct unit *u, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    if (p->original)
        add_to_unit(t, u, p->original);
    add_to_unit(t, u, parameter);
    for (int i = 0; i < adapter_tensors(p); i++)
        add_to_unit(t, u, p->adapter + i);
}

// Parameters from `first` on, each before its adapter, and room for others.
static void add_unit(struct trainer *t, struct unit *u, int first, int count)
{
    enum { ROOM_FOR_OTHERS = 8 };
    struct arena *a = t->machine->arena;
    int most = 4 * count + ROOM_FOR_OTHERS + 4 * (tower_span(t).end - tower_span(t).first);
    u->parameters = NEW(a, int, most);
    u->shards = NEW(a, uint64_t, most);
    u->full = NEW(a, struct storage *, most);
    for (int i = first; i < first + count; i++)
        add_with_adapter(t, u, i);
}

// Behind peft's model, and inside one with vision, accelerate 1.15 (utils/fsdp_utils.py,
// _find_final_norm) finds no last norm, which stays with the root; the tail is the head alone. TRL
// never calls it: a tied one is gathered as the embedding, another one by TRL itself; transformers'
// Trainer does, and so does who generates, after which it stays whole to the end of the step.
static void make_units_without_norm(struct trainer *t)
{
    struct shards *s = shards_of(t);
    add_unit(t, &s->units[s->root], t->final_norm, t->norm_count);
    s->units[s->root].stays = true;
    s->embedding = s->unit_count++;
    add_unit(t, &s->units[s->embedding], t->embedding, 1);
    if (t->head == t->embedding) {
        s->tail = s->embedding;
        s->units[s->tail].stays = true;
        return;
    }
    s->head = s->unit_count++;
    add_unit(t, &s->units[s->head], t->head, t->head_count);
    s->units[s->head].stays = true;
    if (!job_fuses_head(t->job) || job_generates(t->job))
        return;
    s->read = s->head;
    t->graph.parameters[t->head].width = stored_width(t, t->head);
}

// What stands between the embedding and the layers: learned positions, a norm.
static void add_loose(struct trainer *t, struct unit *u)
{
    for (int i = t->embedding + 1; i < t->layers[0].first; i++)
        add_to_unit(t, u, i);
}

// As accelerate finds them (_no_split_modules): each block of a vision tower; the root has the rest
// of it.
static void make_units_of_tower(struct trainer *t)
{
    struct shards *s = shards_of(t);
    struct span tower = tower_span(t);
    struct unit *root = &s->units[s->root];
    for (int i = 0; i < s->block_count; i++) {
        struct span block = tower_block(t, i);
        add_unit(t, &s->units[s->blocks + i], block.first, block.end - block.first);
    }
    int first = s->block_count ? tower_block(t, 0).first : 0;
    int end = s->block_count ? tower_block(t, s->block_count - 1).end : 0;
    for (int i = tower.first; i < tower.end; i++)
        if (i < first || i >= end)
            add_with_adapter(t, root, i);
}

static void make_tied_root(struct trainer *t, bool has_tail)
{
    struct shards *s = shards_of(t);
    add_unit(t, &s->units[s->root], t->embedding, 1);
    add_loose(t, &s->units[s->root]);
    for (int i = 0; i < t->norm_count; i++)
        add_to_unit(t, &s->units[s->root], t->final_norm + i);
    s->units[s->root].stays = has_tail;
    s->tail = has_tail ? s->root : -1;
}

static void make_untied(struct trainer *t, bool has_tail)
{
    struct shards *s = shards_of(t);
    bool head_in_root = t->habits->head_unit == HEAD_IN_ROOT;
    bool scores = has_tail && t->job->task == TASK_REWARD; // no output embedding to be found
    int both = t->norm_count + t->head_count;
    int in_root = head_in_root ? both : has_tail ? 0 : t->norm_count;
    if (scores)
        add_unit(t, &s->units[s->root], t->head, t->head_count);
    else
        add_unit(t, &s->units[s->root], t->final_norm, in_root);
    s->units[s->root].stays = scores;
    add_loose(t, &s->units[s->root]);
    s->embedding = s->unit_count++;
    add_unit(t, &s->units[s->embedding], t->embedding, 1);
    if (head_in_root)
        return;
    s->head = s->unit_count++;
    if (has_tail)
        add_unit(t, &s->units[s->head], t->final_norm, scores ? t->norm_count : both);
    else
        add_unit(t, &s->units[s->head], t->head, t->head_count);
    s->units[s->head].stays = has_tail;
    s->tail = has_tail ? s->head : -1;
}

static void make_units_of_text(struct trainer *t)
{
    struct shards *s = shards_of(t);
    int layers = (int)t->job->model.layers;
    bool has_tail = t->habits->head_unit == HEAD_WITH_NORM;
    for (int i = 0; i < layers; i++) {
        int first = t->layers[i].first;
        int end = i + 1 < layers ? t->layers[i + 1].first : t->final_norm;
        add_unit(t, &s->units[i], first, end - first);
    }
    if ((t->job->lora_rank || s->block_count) && has_tail)
        make_units_without_norm(t);
    else if (t->head == t->embedding)
        make_tied_root(t, has_tail);
    else
        make_untied(t, has_tail);
}

// Passes that are noted, the last ones: kto reads twice with the model it trains, a reference that
// is this model without its adapters twice more; rloo generates, reads with both, and trains.
enum { MOST_PASSES = 6 + PLAYED_TOKENS };

static void make_units(struct trainer *t)
{
    struct shards *s = shards_of(t);
    const struct model *m = &t->job->model;
    s->root = (int)m->layers;
    s->blocks = s->root + 1;
    s->block_count = (int)m->vision.depth;
    s->unit_count = s->blocks + s->block_count;
    s->units = NEW(t->machine->arena, struct unit, s->unit_count + 2);
    s->order_most = MOST_PASSES * (s->unit_count + 2);
    s->order = NEW(t->machine->arena, int, s->order_most);
    s->embedding = s->head = s->tail = s->read = -1;
    if (t->habits->one_unit) { // trl 1.16, models/utils.py, prepare_fsdp: fully_shard(model)
        add_unit(t, &s->units[s->root], 0, t->graph.parameter_count);
        return;
    }
    make_units_of_text(t);
    make_units_of_tower(t);
}

// The shards, in the modules' order. transformers makes the head before it ties it: for a moment a
// tied model has two.
static void take_shards(struct trainer *t)
{
    struct graph *g = &t->graph;
    bool tied = t->head == t->embedding;
    if (is_offloaded(t))
        return;
    for (int i = 0; i < g->parameter_count; i++) {
        uint64_t bytes = shard_elements(t, i) * stored_width(t, i);
        graph_at_parameter(g, i);
        g->parameters[i].weight = machine_take(t->machine, bytes, MEMORY_PARAMETERS);
    }
    if (!tied)
        return;
    uint64_t bytes = shard_elements(t, t->embedding) * stored_width(t, t->embedding);
    struct storage *head = machine_take(t->machine, bytes, MEMORY_PARAMETERS);
    drop(t, &g->parameters[t->embedding].weight);
    g->parameters[t->embedding].weight = head;
}

// Accelerate's fully_shard of a model in host memory (torch's _fsdp_init.py and _fsdp_param.py): a
// unit's parameters come whole, then each is cut, then all go.
static struct storage **cut_unit(struct trainer *t, const struct unit *u)
{
    struct parameter *all = t->graph.parameters;
    struct storage **whole = NEW(t->machine->arena, struct storage *, u->count);
    for (int i = 0; i < u->count; i++) {
        const struct parameter *p = &all[u->parameters[i]];
        uint32_t width = stored_width(t, u->parameters[i]);
        whole[i] = machine_take(t->machine, p->rows * p->columns * width, MEMORY_PARAMETERS);
    }
    for (int i = 0; i < u->count; i++) {
        struct storage **shard = &all[u->parameters[i]].weight;
        uint64_t bytes = u->shards[i] * stored_width(t, u->parameters[i]);
        graph_at_parameter(&t->graph, u->parameters[i]);
        *shard = machine_take(t->machine, bytes, MEMORY_PARAMETERS);
        if (is_offloaded(t))
            drop(t, shard);
    }
    return whole;
}

static void drop_whole(struct trainer *t, const struct unit *u, struct storage **whole)
{
    for (int i = 0; i < u->count; i++)
        drop(t, &whole[i]);
}

// The weights of embedding and head have names in fsdp2_prepare_model (accelerate 1.15,
// utils/fsdp_utils.py), and so live until all is cut.
static void cut_units(struct trainer *t)
{
    const struct shards *s = shards_of(t);
    const int last[] = {s->embedding, s->head, s->root};
    struct storage **whole[COUNT_OF(last)];
    for (int i = s->blocks; i < s->blocks + s->block_count; i++)
        drop_whole(t, &s->units[i], cut_unit(t, &s->units[i]));
    for (int i = 0; i < s->root; i++)
        drop_whole(t, &s->units[i], cut_unit(t, &s->units[i]));
    for (int i = 0; i < COUNT_OF(last); i++)
        if (last[i] >= 0)
            whole[i] = cut_unit(t, &s->units[last[i]]);
    for (int i = 0; i < COUNT_OF(last); i++)
        if (last[i] >= 0)
            drop_whole(t, &s->units[last[i]], whole[i]);
}

// All of the model is on the card: shards are cut beside it.
static void cut_packed(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct shards *s = shards_of(t);
    struct storage **whole = NEW(t->machine->arena, struct storage *, g->parameter_count);
    device_map_load(t);
    take_adapters(t, s->stored_width);
    machine_mark(t->machine, EVENT_EMPTY_CACHE); // transformers/trainer.py, free_memory()
    for (int i = 0; i < g->parameter_count; i++)
        whole[i] = g->parameters[i].weight;
    for (int i = 0; i < s->unit_count; i++)
        for (int j = 0; j < s->units[i].count; j++) {
            int parameter = s->units[i].parameters[j];
            uint64_t bytes = s->units[i].shards[j] * stored_width(t, parameter);
            g->parameters[parameter].weight = machine_take(t->machine, bytes, MEMORY_PARAMETERS);
        }
    for (int i = 0; i < g->parameter_count; i++)
        drop(t, &whole[i]);
}

static void spread(struct trainer *t, int parameter, struct storage **shard)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    uint32_t width = stored_width(t, parameter);
    struct storage *whole =
        machine_take(t->machine, p->rows * p->columns * width, MEMORY_PARAMETERS);
    *shard = machine_take(t->machine, shard_elements(t, parameter) * width, MEMORY_PARAMETERS);
    if (is_offloaded(t))
        drop(t, shard);
    drop(t, &whole);
}

// With cpu_ram_efficient_loading units are cut without storage; then the first rank's tensors come
// to the card one after another, in the modules' order, and each is scattered
// (fsdp2_load_full_state_dict of accelerate 1.15). A tied head comes too, until it is tied again.
static void spread_all(struct trainer *t)
{
    struct storage *head = NULL;
    for (int i = 0; i < t->graph.parameter_count; i++)
        spread(t, i, &t->graph.parameters[i].weight);
    if (t->head != t->embedding)
        return;
    spread(t, t->head, &head);
    drop(t, &head);
}

// The recordings of context parallel began with shards.
static void take_weights(struct trainer *t)
{
    if (t->job->packed)
        cut_packed(t);
    else if (!t->habits->cuts_on_card || t->job->ring > 1)
        take_shards(t);
    else if (t->job->loads_once && !t->habits->one_unit) // prepare_fsdp has no such way
        spread_all(t);
    else
        cut_units(t);
}

void fsdp2_load(struct trainer *t)
{
    struct shards *s = NEW(t->machine->arena, struct shards, 1);
    bool mixed = job_is_mixed(t->job) && (!t->is_reference || t->habits->one_unit);
    t->state = s;
    s->ranks = job_shards(t->job);
    bool narrowed = t->job->packed && t->job->recipe == RECIPE_TRL;
    s->stored_width = mixed && !narrowed ? 4 : t->width;
    s->copy_in_stream = t->first_stream;
    s->reduce_stream = t->first_stream + 1;
    s->trained_width = job_widens_adapters(t->job) ? 4 : s->stored_width;
    bool wide_sums = (mixed && !t->habits->sums_narrow) || job_widens_adapters(t->job);
    s->reduce_width = wide_sums ? 4 : t->width;
    make_units(t);
    take_weights(t);
    t->trained = NEW(t->machine->arena, struct trained, t->graph.parameter_count);
    for (int i = 0; i < t->graph.parameter_count; i++)
        if (!t->graph.parameters[i].frozen && !(t->head_is_idle && i == t->head))
            t->trained[t->trained_count++] =
                (struct trained){.elements = shard_elements(t, i), .width = stored_width(t, i)};
}

void fsdp2_dismiss(struct trainer *t)
{
    for (int i = 0; i < t->graph.parameter_count; i++)
        drop(t, &t->graph.parameters[i].weight);
}
