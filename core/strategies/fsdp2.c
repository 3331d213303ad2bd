// FSDP2 (torch 2.11, torch/distributed/fsdp/_fully_shard): each decoder layer is a unit, so are
// embedding and head where they are not tied, and the root holds the rest. Parameters live as
// shards; a unit is gathered before it runs and let go after; gradients are reduced to shards unit
// by unit.
//
// What it takes and gives back, event for event as in the recordings t05, t06 and t12. Three
// streams: gathering copies into buffers of its own stream, reduced gradients are made on another,
// everything else on the compute stream.
//
// Packed weights are shards too where they are stored as bf16 (bnb_4bit_quant_storage); in bytes
// accelerate would leave them whole on every rank. With them nothing that is trained becomes fp32,
// and no weight waits in host memory: all of the model is on each card before it is cut, and goes
// when all is (accelerate 1.15, utils/fsdp_utils.py, fsdp2_prepare_model: model_has_params4bit, and
// original_sd, which holds the whole weights). Scales and tables are no parameters and stay whole.
#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/models/vision/vision.h"
#include "core/strategies/strategies.h"

struct unit {
    int count;
    int *parameters;
    uint64_t *shards; // elements of each parameter's padded shard
    uint64_t shard_elements, trained_elements;
    uint64_t cast_elements; // of shards that are kept in another type
    struct storage *flat;   // gathered, not yet copied out
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
    int order_count;
    uint64_t ranks;
    uint32_t stored_width, reduce_width;
    uint16_t copy_in_stream, reduce_stream;
    int tail; // the last norm and the head, which may be the embedding too, in one unit; -1
    int read; // a head that nobody calls: its reader gathers it; -1
};

static struct shards *shards_of(const struct trainer *t)
{
    return t->state;
}

static bool is_offloaded(const struct trainer *t)
{
    return t->job->offload || (t->is_reference && !t->habits->one_unit);
}

static void drop(struct trainer *t, struct storage **s)
{
    machine_drop(t->machine, *s);
    *s = NULL;
}

static bool is_frozen(const struct trainer *t, const struct unit *u, int i)
{
    return t->graph.parameters[u->parameters[i]].frozen;
}

// Accelerate 1.15 makes what is trained fp32 (fsdp2_prepare_model).
static uint32_t stored_width(const struct trainer *t, int parameter)
{
    uint32_t width = shards_of(t)->stored_width;
    const struct parameter *p = &t->graph.parameters[parameter];
    return p->frozen && !p->idle ? trainer_frozen_width(t, width) : width;
}

// ------------------------------------------------------------------ scratch of two fused copies

// split_with_sizes_copy.out: where each chunk of each parameter goes
// (ATen/native/cuda/TensorShape.cu).
static uint64_t copy_out_scratch(const struct trainer *t, const struct unit *u)
{
    const struct shards *s = shards_of(t);
    uint64_t blocks = 0, placed = 0;
    for (int i = 0; i < u->count; i++)
        blocks += u64_divide_up(u->shards[i] * t->width, 2048);
    uint64_t resident = t->graph.multiprocessors * t->graph.threads_per_multiprocessor / 128 * 2;
    uint64_t rounds = resident ? u64_divide_up(blocks * s->ranks, resident) : 1;
    uint64_t root = 1;
    while (root * root < rounds)
        root++;
    uint64_t per_block = root < s->ranks ? root : s->ranks;
    uint64_t chunk = 2048 * u64_divide_up(rounds, per_block);
    for (int i = 0; i < u->count; i++)
        placed += u64_divide_up(u->shards[i] * t->width, chunk);
    return 8 * (4 * (uint64_t)u->count + 1 + placed);
}

// _chunk_cat.out, the same file.
static uint64_t chunk_cat_scratch(const struct trainer *t, const struct unit *u)
{
    uint64_t blocks = 0, count = 0;
    for (int i = 0; i < u->count; i++) {
        if (is_frozen(t, u, i))
            continue;
        blocks += u64_divide_up(u->shards[i] * shards_of(t)->reduce_width, 2048);
        count++;
    }
    return 8 * (6 * count + 2 + blocks);
}

// ------------------------------------------------------------------ gathering

static void time_unit(struct trainer *t, const struct unit *u)
{
    const struct rates *r = machine_rates(t->machine);
    machine_host(t->machine, r->unit + u->count * r->unit_tensor);
}

// Shards are copied into the buffer, which is gathered then.
static void time_gather(struct trainer *t, const struct unit *u)
{
    const struct shards *s = shards_of(t);
    uint64_t bytes = u->shard_elements * t->width;
    machine_move_on(t->machine, s->copy_in_stream, 2 * bytes);
    machine_collect(t->machine, s->copy_in_stream, GATHER, s->ranks, bytes * s->ranks);
}

// With offload each shard comes from pinned memory and is cast by itself.
static void fetch_shards(struct trainer *t, struct unit *u)
{
    const struct shards *s = shards_of(t);
    struct storage **fetched = NEW(t->machine->arena, struct storage *, u->count);
    time_unit(t, u);
    machine_host_copy(t->machine, s->copy_in_stream, u->shard_elements * s->stored_width);
    machine_move_on(t->machine, s->copy_in_stream, u->cast_elements * (s->stored_width + t->width));
    for (int i = 0; i < u->count; i++) {
        uint32_t width = stored_width(t, u->parameters[i]);
        fetched[i] =
            machine_take_on(t->machine, s->copy_in_stream, u->shards[i] * width, MEMORY_GATHERED);
        if (width == t->width)
            continue;
        struct storage *wide = fetched[i];
        fetched[i] = machine_take_on(t->machine, s->copy_in_stream, u->shards[i] * t->width,
                                     MEMORY_GATHERED);
        machine_drop(t->machine, wide);
    }
    time_gather(t, u);
    u->flat = machine_take_on(t->machine, s->copy_in_stream,
                              u->shard_elements * s->ranks * t->width, MEMORY_GATHERED);
    for (int i = u->count - 1; i >= 0; i--)
        drop(t, &fetched[i]);
}

static void gather(struct trainer *t, struct unit *u)
{
    const struct shards *s = shards_of(t);
    if (u->flat || u->is_full || !u->count)
        return;
    if (is_offloaded(t)) {
        fetch_shards(t, u);
        return;
    }
    time_unit(t, u);
    machine_move_on(t->machine, s->copy_in_stream, u->cast_elements * (s->stored_width + t->width));
    time_gather(t, u);
    struct storage *cast = machine_take_on(t->machine, s->copy_in_stream,
                                           u->cast_elements * t->width, MEMORY_GATHERED);
    u->flat = machine_take_on(t->machine, s->copy_in_stream,
                              u->shard_elements * s->ranks * t->width, MEMORY_GATHERED);
    drop(t, &cast);
}

static void copy_out(struct trainer *t, struct unit *u, bool forward)
{
    struct shards *s = shards_of(t);
    if (!u->flat)
        return;
    machine_follow(t->machine, STREAM_COMPUTE, s->copy_in_stream);
    machine_move(t->machine, 2 * u->shard_elements * s->ranks * t->width);
    for (int i = 0; i < u->count; i++)
        u->full[i] = machine_take(t->machine, u->shards[i] * s->ranks * t->width, MEMORY_GATHERED);
    u->is_full = true;
    machine_scratch(t->machine, copy_out_scratch(t, u));
    if (forward) { // this one stays until the next unit's copy
        drop(t, &s->last_flat);
        s->last_flat = u->flat;
        u->flat = NULL;
    } else {
        drop(t, &u->flat);
    }
}

static void let_go(struct trainer *t, struct unit *u)
{
    if (!u->is_full)
        return;
    for (int i = 0; i < u->count; i++)
        drop(t, &u->full[i]);
    u->is_full = false;
}

// DTensor.full_tensor (torch 2.11, distributed/tensor/placement_types.py): in the shards' type, and
// once more without padding where they have some.
static void read_whole(struct trainer *t, int unit)
{
    const struct shards *s = shards_of(t);
    const struct unit *u = &s->units[unit];
    struct parameter *p = &t->graph.parameters[u->parameters[0]];
    uint32_t width = stored_width(t, u->parameters[0]);
    uint64_t bytes = p->rows * p->columns * width;
    struct storage *padded =
        machine_take(t->machine, u->shards[0] * s->ranks * width, MEMORY_GATHERED);
    p->whole = padded;
    if (padded->bytes == bytes)
        return;
    p->whole = machine_take(t->machine, bytes, MEMORY_GATHERED);
    machine_drop(t->machine, padded);
}

static void enter_unit(struct trainer *t, int unit)
{
    struct unit *u = &shards_of(t)->units[unit];
    if (unit == shards_of(t)->read) {
        read_whole(t, unit);
        return;
    }
    gather(t, u);
    copy_out(t, u, true);
}

static void note_passed(const struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    if (!t->is_reference && unit >= 0 && s->units[unit].count)
        s->order[s->order_count++] = unit;
}

// A unit has passed when all of its modules have been called; TRL never calls the head, which ends
// the tail.
static int tail_before_root(const struct trainer *t)
{
    const struct shards *s = shards_of(t);
    return job_fuses_head(t->job) || s->tail == s->root ? -1 : s->tail;
}

static void leave_unit(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    if (unit == s->read) {
        drop(t, &t->graph.parameters[s->units[unit].parameters[0]].whole);
        return;
    }
    if (t->job->reshard && !s->units[unit].stays)
        let_go(t, &s->units[unit]);
    if (unit == s->root)
        note_passed(t, tail_before_root(t));
    if (unit != s->tail)
        note_passed(t, unit);
    if (unit == s->root)
        drop(t, &s->last_flat);
}

static void enter_backward(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    if (unit == s->read)
        return;
    gather(t, &s->units[unit]);
    copy_out(t, &s->units[unit], false);
    int at = s->order_count - 1;
    while (at > 0 && s->order[at] != unit)
        at--;
    if (at > 0)
        gather(t, &s->units[s->order[at - 1]]); // ahead of its turn
}

// ------------------------------------------------------------------ gradients

// Those of the first `end` parameters, the last first.
static void drop_gradients(struct trainer *t, const struct unit *u, int end)
{
    for (int i = end - 1; i >= 0; i--)
        drop(t, &t->graph.parameters[u->parameters[i]].gradient);
}

static int last_trained(const struct trainer *t, const struct unit *u)
{
    int last = u->count - 1;
    while (last >= 0 && is_frozen(t, u, last))
        last--;
    return last;
}

// With replicas (_fsdp_collectives.py, foreach_reduce) what was reduced is added up over them and
// turned into the shards' type on a third stream, and its unit keeps it until the end of the
// backward pass (_fsdp_param_group.py, AllReduceState). In one type it is the gradient itself.
static uint16_t after_reduction(const struct trainer *t)
{
    uint16_t reduce = shards_of(t)->reduce_stream;
    return t->job->replicas > 1 ? (uint16_t)(reduce + 1) : reduce;
}

static void keep_summed(struct trainer *t, struct unit *u, struct storage *summed)
{
    if (t->job->replicas == 1) {
        machine_drop(t->machine, summed);
        return;
    }
    drop(t, &u->summed);
    u->summed = summed;
}

static void leave_backward(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    struct unit *u = &s->units[unit];
    struct machine *m = t->machine;
    uint64_t whole = u->trained_elements * s->ranks;
    int last = last_trained(t, u);
    let_go(t, u);
    if (last < 0)
        return;
    if (t->keeps_gradients) // set_requires_gradient_sync(False)
        return;
    time_unit(t, u);
    machine_follow(m, STREAM_COMPUTE, s->reduce_stream); // the last one's input goes
    machine_move(m, whole * (t->width + s->reduce_width));
    machine_follow(m, s->reduce_stream, STREAM_COMPUTE);
    machine_collect(m, s->reduce_stream, REDUCE_SCATTER, s->ranks, whole * s->reduce_width);
    if (t->job->replicas > 1) {
        machine_follow(m, after_reduction(t), s->reduce_stream);
        machine_collect(m, after_reduction(t), REPLICA_REDUCE, t->job->replicas,
                        u->trained_elements * s->reduce_width);
    }
    if (is_offloaded(t))
        machine_host_copy(m, s->reduce_stream, u->trained_elements * s->stored_width);
    drop(t, &s->last_reduced);
    s->last_reduced = machine_take(m, whole * s->reduce_width, MEMORY_GRADIENTS);
    machine_scratch(m, chunk_cat_scratch(t, u));
    drop_gradients(t, u, last);
    struct storage *reduced = machine_take_on(
        t->machine, s->reduce_stream, u->trained_elements * s->reduce_width, MEMORY_GRADIENTS);
    if (s->reduce_width != s->stored_width) {
        struct storage *narrow = reduced;
        reduced = machine_take_on(m, after_reduction(t), u->trained_elements * s->stored_width,
                                  MEMORY_GRADIENTS);
        keep_summed(t, u, narrow);
    }
    drop(t, &t->graph.parameters[u->parameters[last]].gradient);
    if (is_offloaded(t) || u->gradient)
        machine_drop(m, reduced); // copied to the host, or added in place
    else
        u->gradient = reduced;
}

static void end_backward(struct trainer *t)
{
    struct shards *s = shards_of(t);
    leave_backward(t, s->root);
    if (s->embedding >= 0)
        leave_backward(t, s->embedding);
    if (s->units[0].is_full) // its input had no gradient
        leave_backward(t, 0);
    for (int i = s->blocks; i < s->blocks + s->block_count; i++) {
        if (s->units[i].is_full)
            leave_backward(t, i);
    }
    machine_follow(t->machine, STREAM_COMPUTE, s->reduce_stream);
    drop(t, &s->last_reduced);
    for (int i = 0; i < s->unit_count; i++) {
        drop(t, &s->units[i].flat); // gathered ahead for a backward pass that never came
        drop(t, &s->units[i].summed);
    }
    s->order_count = 0;
}

// ------------------------------------------------------------------ building

static uint64_t shard_elements(const struct trainer *t, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    if (p->packed)
        return u64_divide_up(stored_elements(p), job_shards(t->job));
    return u64_divide_up(p->rows, job_shards(t->job)) * p->columns;
}

static void add_to_unit(struct trainer *t, struct unit *u, int parameter)
{
    uint64_t elements = shard_elements(t, parameter);
    u->parameters[u->count] = parameter;
    u->shards[u->count++] = elements;
    u->shard_elements += elements;
    u->trained_elements += t->graph.parameters[parameter].frozen ? 0 : elements;
    u->cast_elements += stored_width(t, parameter) != t->width ? elements : 0;
}

static void add_with_adapter(struct trainer *t, struct unit *u, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
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
    if ((t->job->lora_rank || s->block_count) && has_tail) {
        make_units_without_norm(t);
        return;
    }
    if (t->head == t->embedding) {
        add_unit(t, &s->units[s->root], t->embedding, 1);
        add_loose(t, &s->units[s->root]);
        for (int i = 0; i < t->norm_count; i++)
            add_to_unit(t, &s->units[s->root], t->final_norm + i);
        s->units[s->root].stays = has_tail;
        s->tail = has_tail ? s->root : -1;
        return;
    }
    bool head_in_root = t->habits->head_unit == HEAD_IN_ROOT;
    int both = t->norm_count + t->head_count;
    int in_root = head_in_root ? both : has_tail ? 0 : t->norm_count;
    add_unit(t, &s->units[s->root], t->final_norm, in_root);
    add_loose(t, &s->units[s->root]);
    s->embedding = s->unit_count++;
    add_unit(t, &s->units[s->embedding], t->embedding, 1);
    if (head_in_root)
        return;
    s->head = s->unit_count++;
    if (has_tail)
        add_unit(t, &s->units[s->head], t->final_norm, both);
    else
        add_unit(t, &s->units[s->head], t->head, t->head_count);
    s->units[s->head].stays = has_tail;
    s->tail = has_tail ? s->head : -1;
}

// Passes of a step that are noted: kto reads twice with the model it trains, a reference that is
// this model without its adapters twice more.
enum { MOST_PASSES = 4 };

static void make_units(struct trainer *t)
{
    struct shards *s = shards_of(t);
    const struct model *m = &t->job->model;
    s->root = (int)m->layers;
    s->blocks = s->root + 1;
    s->block_count = (int)m->vision.depth;
    s->unit_count = s->blocks + s->block_count;
    s->units = NEW(t->machine->arena, struct unit, s->unit_count + 2);
    ptrdiff_t passed = s->unit_count + 2;
    s->order = NEW(t->machine->arena, int, MOST_PASSES *passed);
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

static void load(struct trainer *t)
{
    struct shards *s = NEW(t->machine->arena, struct shards, 1);
    bool mixed = job_is_mixed(t->job) && (!t->is_reference || t->habits->one_unit);
    t->state = s;
    s->ranks = job_shards(t->job);
    bool narrowed = t->job->packed && t->job->recipe == RECIPE_TRL;
    s->stored_width = mixed && !narrowed ? 4 : t->width;
    s->copy_in_stream = t->first_stream;
    s->reduce_stream = t->first_stream + 1;
    s->reduce_width = mixed && !t->habits->sums_narrow ? 4 : t->width;
    make_units(t);
    take_weights(t);
    t->trained = NEW(t->machine->arena, struct trained, t->graph.parameter_count);
    for (int i = 0; i < t->graph.parameter_count; i++)
        if (!t->graph.parameters[i].frozen && !(t->head_is_idle && i == t->head))
            t->trained[t->trained_count++] =
                (struct trained){.elements = shard_elements(t, i), .width = s->stored_width};
}

// Tensor by tensor: gathered in fp32, on the host where the shards are there.
static void publish(struct trainer *t)
{
    const struct shards *s = shards_of(t);
    for (int i = 0; i < t->graph.parameter_count; i++)
        machine_scratch(t->machine, shard_elements(t, i) * s->ranks * stored_width(t, i));
}

// Shards go as they are; whole parameters one after another.
static void save(struct trainer *t, bool hf)
{
    if (hf)
        publish(t);
}

// A unit's shards are views of one tensor, which goes with the last of them: in the order of
// parameters, an embedding that shares its unit with the final norm goes with that.
static void zero(struct trainer *t)
{
    struct shards *s = shards_of(t);
    if (s->embedding >= 0)
        drop(t, &s->units[s->embedding].gradient);
    for (int i = 0; i < s->blocks + s->block_count; i++)
        drop(t, &s->units[i].gradient);
    if (s->head >= 0)
        drop(t, &s->units[s->head].gradient);
}

static int unit_of(const struct trainer *t, enum part part)
{
    const struct shards *s = shards_of(t);
    if (part == PART_HEAD)
        return s->head == s->tail ? -1 : s->head;
    if (part == PART_VISION)
        return s->block_count ? s->blocks : -1;
    return part == PART_EMBEDDING ? s->embedding : s->root;
}

static int tail_of(const struct trainer *t)
{
    const struct shards *s = shards_of(t);
    return s->head == s->tail ? s->tail : -1; // a tied one is the root, in use from the beginning
}

// With offload, host memory holds fp32 shards, gradients and two moments (not measured); of frozen
// ones the shards. Adapters are too few to count.
static uint64_t host_bytes(const struct job *p)
{
    enum { HOST_BYTES_PER_PARAMETER = 16, HOST_BYTES_PER_FROZEN = 4 };
    uint64_t part = u64_divide_up(p->parameters.total, job_shards(p));
    uint64_t each = p->lora_rank ? HOST_BYTES_PER_FROZEN : HOST_BYTES_PER_PARAMETER;
    return p->offload ? sat_mul(part, each) : 0;
}

const struct strategy_kind fsdp2_strategy = {
    .load = load,
    .enter_unit = enter_unit,
    .leave_unit = leave_unit,
    .enter_backward = enter_backward,
    .leave_backward = leave_backward,
    .end_backward = end_backward,
    .clip = optimizer_clip,
    .update = optimizer_update,
    .zero = zero,
    .unit_of = unit_of,
    .publish = publish,
    .save = save,
    .tail_of = tail_of,
    .host_bytes = host_bytes,
};
