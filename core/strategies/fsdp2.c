// FSDP2 (torch 2.11, torch/distributed/fsdp/_fully_shard): each decoder layer is a unit, so are
// embedding and head where they are not tied, and the root holds the rest. Parameters live as
// shards; a unit is gathered before it runs and let go after; gradients are reduced to shards unit
// by unit.
//
// What it takes and gives back, event for event as in the recordings t05, t06 and t12. Three
// streams: gathering copies into buffers of its own stream, reduced gradients are made on another,
// everything else on the compute stream.
#include "core/strategies/fsdp2.h"

#include <string.h>

static bool is_frozen(const struct trainer *t, const struct unit *u, int i)
{
    return t->graph.parameters[u->parameters[i]].frozen;
}

// ------------------------------------------------------------------ scratch of two fused copies

// split_with_sizes_copy.out: where each chunk of each parameter goes
// (ATen/native/cuda/TensorShape.cu).
static uint64_t copy_out_scratch(const struct trainer *t, const struct unit *u)
{
    const struct shards *s = shards_of(t);
    uint64_t blocks = 0, placed = 0;
    for (int i = 0; i < u->count; i++)
        blocks += u64_divide_up(u->shards[i] * gathered_width(t, u->parameters[i]), 2048);
    uint64_t resident = t->graph.multiprocessors * t->graph.threads_per_multiprocessor / 128 * 2;
    uint64_t rounds = resident ? u64_divide_up(blocks * s->ranks, resident) : 1;
    uint64_t root = 1;
    while (root * root < rounds)
        root++;
    uint64_t per_block = root < s->ranks ? root : s->ranks;
    uint64_t chunk = 2048 * u64_divide_up(rounds, per_block);
    for (int i = 0; i < u->count; i++)
        placed += u64_divide_up(u->shards[i] * gathered_width(t, u->parameters[i]), chunk);
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
    uint64_t bytes = u->gathered_bytes;
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
        if (width == gathered_width(t, u->parameters[i]))
            continue;
        struct storage *wide = fetched[i];
        fetched[i] = machine_take_on(t->machine, s->copy_in_stream, u->shards[i] * t->width,
                                     MEMORY_GATHERED);
        machine_drop(t->machine, wide);
    }
    time_gather(t, u);
    u->flat = machine_take_on(t->machine, s->copy_in_stream, u->gathered_bytes * s->ranks,
                              MEMORY_GATHERED);
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
    u->flat = machine_take_on(t->machine, s->copy_in_stream, u->gathered_bytes * s->ranks,
                              MEMORY_GATHERED);
    drop(t, &cast);
}

static void copy_out(struct trainer *t, struct unit *u, bool forward)
{
    struct shards *s = shards_of(t);
    if (!u->flat)
        return;
    machine_follow(t->machine, STREAM_COMPUTE, s->copy_in_stream);
    machine_move(t->machine, 2 * u->gathered_bytes * s->ranks);
    for (int i = 0; i < u->count; i++)
        u->full[i] =
            machine_take(t->machine, u->shards[i] * s->ranks * gathered_width(t, u->parameters[i]),
                         MEMORY_GATHERED);
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
static void read_whole(struct trainer *t)
{
    const struct shards *s = shards_of(t);
    struct parameter *p = &t->graph.parameters[t->head];
    uint32_t width = stored_width(t, t->head);
    uint64_t bytes = p->rows * p->columns * width;
    struct storage *padded =
        machine_take(t->machine, shard_elements(t, t->head) * s->ranks * width, MEMORY_GATHERED);
    p->whole = padded;
    if (padded->bytes == bytes)
        return;
    p->whole = machine_take(t->machine, bytes, MEMORY_GATHERED);
    machine_drop(t->machine, padded);
}

// TRL calls the tail's norm and never its head (torch 2.11, _fully_shard/_fsdp_state.py,
// _register_group_forward_hooks): a pass that finds an earlier one unfinished, as the first after
// an evaluation does, is not seen, and what would reduce its gradients is not asked to.
static void begin_tail(struct trainer *t)
{
    struct shards *s = shards_of(t);
    s->tail_is_late = s->tail_is_begun;
    s->tail_is_begun = !t->cache && job_fuses_head(t->job) && t->job->task != TASK_REWARD;
}

static void enter_unit(struct trainer *t, int unit)
{
    struct unit *u = &shards_of(t)->units[unit];
    if (unit == shards_of(t)->tail &&
        unit == shards_of(t)->head) // a tied one is reduced at the end
        begin_tail(t);
    if (unit == shards_of(t)->read) {
        read_whole(t);
        return;
    }
    gather(t, u);
    copy_out(t, u, true);
}

// Evaluation, after which nothing goes backward, may pass any number of times before the next step:
// of those that came first nobody asks again.
static void forget_first_half(struct shards *s)
{
    int kept = s->order_most / 2;
    memmove(s->order, s->order + s->order_count - kept, (size_t)kept * sizeof *s->order);
    s->order_count = kept;
}

static void note_passed(const struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    if (t->is_reference || unit < 0 || !s->units[unit].count)
        return;
    if (s->order_count == s->order_most)
        forget_first_half(s);
    s->order[s->order_count++] = unit;
}

// A unit has passed when all of its modules have been called; TRL calls the head, which ends the
// tail, only to generate. Backwards the pass before is gathered ahead too, as torch notes it.
static int tail_before_root(const struct trainer *t)
{
    const struct shards *s = shards_of(t);
    bool ends_early = job_fuses_head(t->job) && t->job->task != TASK_REWARD;
    return ends_early || s->tail == s->root ? -1 : s->tail;
}

static void leave_unit(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    if (unit == s->read) {
        drop(t, &t->graph.parameters[t->head].whole);
        return;
    }
    if (t->job->reshard && !s->units[unit].stays)
        let_go(t, &s->units[unit]);
    if (unit == s->root)
        note_passed(t, tail_before_root(t));
    if (unit != s->tail || t->cache)
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
        machine_host_copy(m, s->reduce_stream, u->trained_elements * s->trained_width);
    drop(t, &s->last_reduced);
    s->last_reduced = machine_take(m, whole * s->reduce_width, MEMORY_GRADIENTS);
    machine_scratch(m, chunk_cat_scratch(t, u));
    drop_gradients(t, u, last);
    struct storage *reduced = machine_take_on(
        t->machine, s->reduce_stream, u->trained_elements * s->reduce_width, MEMORY_GRADIENTS);
    if (s->reduce_width != s->trained_width) {
        struct storage *narrow = reduced;
        reduced = machine_take_on(m, after_reduction(t), u->trained_elements * s->trained_width,
                                  MEMORY_GRADIENTS);
        keep_summed(t, u, narrow);
    }
    drop(t, &t->graph.parameters[u->parameters[last]].gradient);
    if (is_offloaded(t) || u->gradient)
        machine_drop(m, reduced); // copied to the host, or added in place
    else
        u->gradient = reduced;
}

static void leave_in_turn(struct trainer *t, int unit)
{
    const struct shards *s = shards_of(t);
    bool waits = unit == s->tail && s->tail_is_late;
    if (!waits && unit != s->read)
        leave_backward(t, unit);
}

// Of a head that TRL reads by full_tensor, this rank keeps its part of the gradient, copied
// (torch 2.11, distributed/tensor/placement_types.py, _replicate_to_shard).
static void gradient_ready(struct graph *g, int parameter)
{
    struct trainer *t = g->owner;
    const struct shards *s = shards_of(t);
    if (s->read < 0 || parameter != t->head)
        return;
    struct unit *u = &s->units[s->read];
    struct storage *part = machine_take(
        t->machine, shard_elements(t, parameter) * stored_width(t, parameter), MEMORY_GRADIENTS);
    drop(t, &g->parameters[parameter].gradient);
    if (u->gradient)
        machine_drop(t->machine, part); // added in place
    else
        u->gradient = part;
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
    if (s->tail_is_late)
        leave_backward(t, s->tail);
    s->tail_is_begun = s->tail_is_late = false;
    machine_follow(t->machine, STREAM_COMPUTE, s->reduce_stream);
    drop(t, &s->last_reduced);
    for (int i = 0; i < s->unit_count; i++) {
        drop(t, &s->units[i].flat); // gathered ahead for a backward pass that never came
        drop(t, &s->units[i].summed);
    }
    s->order_count = 0;
}

// ------------------------------------------------------------------ what is asked of it

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

const struct strategy_kind fsdp2_strategy = {
    .load = fsdp2_load,
    .dismiss = fsdp2_dismiss,
    .enter_unit = enter_unit,
    .leave_unit = leave_unit,
    .enter_backward = enter_backward,
    .leave_backward = leave_in_turn,
    .end_backward = end_backward,
    .gradient_ready = gradient_ready,
    .clip = optimizer_clip,
    .update = optimizer_update,
    .zero = zero,
    .unit_of = unit_of,
    .publish = publish,
    .save = save,
    .tail_of = tail_of,
    .host_bytes = shards_host_bytes,
};
