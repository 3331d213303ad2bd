// FSDP1 (torch 2.11, torch/distributed/fsdp, FullyShardedDataParallel) as most trainers set it up:
// FULL_SHARD, fp32 shards, bf16 compute, fp32 reduction, flat parameters, one unit a decoder layer;
// embedding, final norm and head belong to the root. Without mixed precision all of it is bf16:
// nothing is cast, and gradients are reduced as they are.
//
// What it takes and gives back, event for event as in the recordings t07 and v2. Four streams:
// shards are cast on one, gathered on a second, gradients reduced on a third. A tensor that was
// made on one stream and used on another goes with record_stream: its memory comes back only when
// that use is known to be over.
//
// On one rank nothing is gathered (NO_SHARD): the cast of a unit is what the operators use, and it
// goes after the forward pass even of the root (recording v0). A model that is only read may keep
// its shards in host memory; on one rank its copy on the card then stays between passes.
//
// When that is known depends on the speed of host and card, by the clocks of core/time: the host
// runs ahead until it waits, which FSDP makes it do before every gathering but two. Where both are
// as fast, two runs of one job differ (of three of Qwen3-30B-A3B's first four layers one took
// 1.3 GiB a step later).
//
// Adapters are units of their own beside a frozen layer, as transformers' Trainer asks for with
// peft's fsdp_auto_wrap_policy (peft/utils/other.py): lora_A and lora_B each in fp32. In a forward
// pass each is gathered and let go by itself; in the backward pass, small as they are, here
// together with their layer. A frozen unit has no gradient to join and is let go where that of its
// input is there (torch/distributed/fsdp/_runtime_utils.py, _post_backward_reshard_only_hook); the
// layer before it comes with the last of the adapters. That hook is on the input's AccumulateGrad
// where checkpoints are reentrant, and holds it to the end of the backward pass: no layer's input
// goes, nor its gradient. Three public jobs say so: allocated peaks of Mistral-7B with 2 and 4
// sequences, and with other kernels (fms-acceleration's tables). Packed weights are flat with the
// rest of their layer, as bf16 of which each holds four of their elements (bnb_4bit_quant_storage);
// their scales are not parameters, and every rank has them all.
#include "core/strategies/fsdp1.h"

#include "core/base/num.h"
#include "core/models/adapters.h"

enum { GATHERINGS_AHEAD = 2 };

static uint64_t padded_elements(const struct trainer *t, const struct unit *u)
{
    return u->shard_elements * shards_of(t)->ranks;
}

// ------------------------------------------------------------------ gathering

static void forget_oldest(struct shards *s)
{
    s->release_count--;
    for (int i = 0; i < s->release_count; i++)
        s->releases[i] = s->releases[i + 1];
}

// limit_all_gathers: the host waits until the oldest of two units let go is really unused.
static void limit_gatherings(struct trainer *t)
{
    struct shards *s = shards_of(t);
    if (s->release_count < GATHERINGS_AHEAD)
        return;
    machine_synchronize(t->machine, s->releases[0]);
    forget_oldest(s);
}

static void handle_unit(const struct trainer *t)
{
    const struct rates *r = machine_rates(t->machine);
    machine_host(t->machine, r->flat_unit + (keeps_parameters(t) ? r->flat_views : 0));
}

// A cast, or a copy from host memory. A unit that is still there is not gathered again.
static void gather(struct trainer *t, struct unit *u)
{
    struct machine *m = t->machine;
    const struct shards *s = shards_of(t);
    struct storage *part = NULL;
    handle_unit(t);
    if (is_parked(t) || s->stored_width != shards_of(t)->width)
        machine_move_on(m, s->cast_stream,
                        u->shard_elements * (s->stored_width + shards_of(t)->width));
    if (is_parked(t) || is_offloaded(t) || s->stored_width != shards_of(t)->width)
        part = machine_take_on(m, s->cast_stream, u->shard_elements * shards_of(t)->width,
                               MEMORY_GATHERED);
    if (is_offloaded(t)) // _flat_param.py, _use_low_precision_shard: as it is stored, then cast
        machine_drop(m, machine_take_on(m, s->cast_stream, u->shard_elements * s->stored_width,
                                        MEMORY_GATHERED));
    machine_wait(m, s->gather_stream, s->cast_stream);
    if (u->full) {
        machine_drop(m, part);
        return;
    }
    limit_gatherings(t);
    machine_collect(m, s->gather_stream, GATHER, s->ranks,
                    padded_elements(t, u) * shards_of(t)->width);
    u->full = machine_take_on(m, s->gather_stream, padded_elements(t, u) * shards_of(t)->width,
                              MEMORY_GATHERED);
    machine_drop_after(m, part, s->gather_stream);
}

// On one rank: the whole unit in the compute type. What a model that is only read had before, the
// copy that its building left or the one of the last pass, goes then.
static void make_whole(struct trainer *t, struct unit *u)
{
    struct machine *m = t->machine;
    machine_move_on(m, shards_of(t)->cast_stream,
                    u->elements * (shards_of(t)->stored_width + shards_of(t)->width));
    struct storage *former = u->full ? u->full : is_parked(t) ? u->trained->weight : NULL;
    u->full = machine_take_on(m, shards_of(t)->cast_stream, u->elements * shards_of(t)->width,
                              is_parked(t) ? MEMORY_REFERENCE : MEMORY_GATHERED);
    machine_wait(m, STREAM_COMPUTE, shards_of(t)->cast_stream);
    machine_drop(m, former);
    if (is_parked(t))
        u->trained->weight = NULL;
}

// Cast first where the policy is mixed.
static void gather_factor(struct trainer *t, struct unit *u, int i)
{
    struct machine *m = t->machine;
    const struct shards *s = shards_of(t);
    int first = 0;
    thin_of(t, u, &first);
    uint64_t elements = t->trained[first + i].elements;
    uint32_t width = t->graph.parameters[s->first_thin + first + i].width;
    struct storage *part = NULL;
    if (width != THIN_WIDTH)
        part = machine_take_on(m, s->cast_stream, elements * width, MEMORY_GATHERED);
    u->thin[i] = machine_take_on(m, s->gather_stream, elements * s->ranks * width, MEMORY_GATHERED);
    machine_drop_after(m, part, s->gather_stream);
}

static void gather_thin(struct trainer *t, struct unit *u)
{
    int first, count = thin_of(t, u, &first);
    for (int i = 0; i < count && !u->thin[i]; i++)
        gather_factor(t, u, i);
}

static void let_factor_go(struct trainer *t, struct unit *u, int i)
{
    machine_drop_after(t->machine, u->thin[i], STREAM_COMPUTE);
    u->thin[i] = NULL;
}

static void let_thin_go(struct trainer *t, struct unit *u)
{
    int first, count = thin_of(t, u, &first);
    for (int i = 0; i < count; i++)
        let_factor_go(t, u, i);
}

// SHARD_GRAD_OP, which verl does not ask for: from its forward pass to its backward pass a unit is
// there.
static bool stays_gathered(const struct trainer *t)
{
    bool asked = !t->job->reshard && !(t->job->traits & IS_POLICY);
    return asked && !is_whole(t) && !t->is_reference;
}

static void bring_unit(struct trainer *t, struct unit *u)
{
    if (u->full && stays_gathered(t)) {
        limit_gatherings(t);
        return;
    }
    (is_whole(t) ? make_whole : gather)(t, u);
}

static void bring(struct trainer *t, struct unit *u)
{
    bool stays = u->full && stays_gathered(t);
    bring_unit(t, u);
    if (!stays)
        gather_thin(t, u);
}

static void note_release(struct trainer *t, uint16_t stream)
{
    struct shards *s = shards_of(t);
    if (s->release_count == MOST_RELEASES)
        forget_oldest(s); // units that stay are let go and never gathered; this one is long unused
    s->releases[s->release_count++] = t->machine->clock[stream];
}

static void let_go(struct trainer *t, struct unit *u, uint16_t stream)
{
    struct shards *s = shards_of(t);
    uint16_t own = is_whole(t) ? s->cast_stream : s->gather_stream;
    if (stream == own)
        machine_drop(t->machine, u->full);
    else
        machine_drop_after(t->machine, u->full, stream);
    u->full = NULL;
    if (!is_whole(t))
        note_release(t, stream);
}

// Whether a forward pass calls each adapter's factors, and not weights with adapters in them.
static bool calls_factors(const struct trainer *t)
{
    return shards_of(t)->thin_count && !is_whole(t) && !job_folds_experts(t->job);
}

// A factor comes and goes like any unit, and the host waits for the release before the last: for
// that of the layer before at the second factor (a history of b29). What is recomputed finds it.
static void at_adapter(struct graph *g, int parameter, bool done)
{
    struct trainer *t = g->owner;
    const struct shards *s = shards_of(t);
    if (!calls_factors(t))
        return;
    int number = parameter - s->first_thin, i = number % s->thin_count;
    struct unit *u = &s->units[number / s->thin_count];
    if (!done) {
        handle_unit(t);
        limit_gatherings(t);
        if (!u->thin[i])
            gather_factor(t, u, i);
        machine_follow(t->machine, STREAM_COMPUTE, s->gather_stream);
    } else if (!stays_gathered(t)) {
        let_factor_go(t, u, i);
        note_release(t, STREAM_COMPUTE);
    }
}

// Buffers are made once to get their sizes, root first, and freed at once (_lazy_init).
static void make_ready(struct trainer *t)
{
    struct shards *s = shards_of(t);
    if (s->is_ready)
        return;
    s->is_ready = true;
    if (is_whole(t) && is_parked(t))
        return;
    for (int i = 0; i < s->unit_count; i++) {
        const struct unit *u = &s->units[unit_in_order(s, i)];
        bool cast = s->stored_width != shards_of(t)->width;
        if (cast)
            machine_scratch(t->machine, u->shard_elements * shards_of(t)->width);
        if (is_whole(t))
            continue;
        machine_scratch(t->machine, padded_elements(t, u) * shards_of(t)->width);
        if (cast)
            machine_scratch(t->machine, padded_elements(t, u) * s->stored_width);
    }
}

static void drop_gradients(struct trainer *t)
{
    struct shards *s = shards_of(t);
    optimizer_zero(t);
    for (int i = 0; i < s->unit_count && keeps_parameters(t); i++) {
        machine_drop(t->machine, s->units[i].trained->gradient);
        s->units[i].trained->gradient = NULL;
    }
    s->is_zeroed = false;
}

static void enter_unit(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    struct machine *m = t->machine;
    if (unit == s->root) {
        if (s->is_zeroed && !s->summoned)
            drop_gradients(t);
        make_ready(t);
        machine_wait(m, s->gather_stream, STREAM_COMPUTE);
        machine_wait(m, s->cast_stream, STREAM_COMPUTE);
    }
    if (unit == 0) // transformers has looked at a value on the card to choose a mask
        machine_synchronize(m, m->clock[STREAM_COMPUTE]);
    if (unit != s->root || !s->summoned)
        (calls_factors(t) ? bring_unit : bring)(t, &s->units[unit]);
    machine_follow(m, STREAM_COMPUTE, s->gather_stream);
}

static void leave_unit(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    bool stays = is_whole(t) ? is_parked(t) : unit == s->root || stays_gathered(t);
    if (!stays_gathered(t))
        let_thin_go(t, &s->units[unit]);
    if (!stays)
        let_go(t, &s->units[unit], STREAM_COMPUTE);
}

// The unit that the forward pass comes to before this one; -1 where there is none.
static int before(const struct shards *s, int unit)
{
    if (unit == 0)
        return s->block_count ? s->blocks + s->block_count - 1 : -1;
    return unit == s->blocks ? -1 : unit - 1;
}

// The unit itself is there: the root since the forward pass, a layer since the one after it; but
// for the last one where TRL calls the head, which no root's backward pass comes before
// (_runtime_utils.py, _pre_backward_hook: what was not gathered ahead is gathered now).
static void enter_backward(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    machine_follow(t->machine, STREAM_COMPUTE, s->gather_stream); // it has come
    if (unit == s->root && is_whole(t))
        make_whole(t, &s->units[unit]);
    else if (unit == s->root)
        limit_gatherings(t);
    bool ahead = t->job->backward_prefetch;
    if (unit != s->root && (!ahead || !s->units[unit].full)) {
        bring(t, &s->units[unit]);
        machine_follow(t->machine, STREAM_COMPUTE, s->gather_stream);
    }
    if (ahead && before(s, unit) >= 0 && (!s->thin_count || unit == s->root))
        bring(t, &s->units[before(s, unit)]);
}

// verl reshards the root of the model it has read, with several ranks (workers/fsdp_workers.py).
static void end_reading(struct trainer *t)
{
    struct unit *root = &shards_of(t)->units[shards_of(t)->root];
    if (!is_whole(t) && t->job->reshard)
        let_go(t, root, STREAM_COMPUTE);
}

// summon_full_params of the root, then of each layer: all in fp32, on the compute stream.
static void publish(struct trainer *t)
{
    struct shards *s = shards_of(t);
    make_ready(t);
    for (int i = 0; i < s->unit_count && !is_whole(t); i++) {
        const struct unit *u = &s->units[unit_in_order(s, i)];
        machine_scratch(t->machine, padded_elements(t, u) * s->stored_width);
    }
}

// What is under the root's wrapper is called then: nobody casts what its layers are given, and
// accelerate's autocast is around all of it. In peft's generate it is not.
static void call_under_wrapper(struct trainer *t, bool whole)
{
    const struct shards *s = shards_of(t);
    const struct unit *root = &s->units[s->root];
    if (t->job->lora_rank || s->stored_width == s->width)
        return;
    t->width = whole ? s->stored_width : s->width;
    t->graph.autocast = whole;
    for (int i = 0; i < root->count; i++) {
        struct parameter *p = &t->graph.parameters[root->parameters[i]];
        p->width = t->width;
        p->is_view = whole;
    }
}

// trl 1.16, trainer/grpo_trainer.py and rloo_trainer.py: summon_full_params of the root alone while
// answers are generated. The root's gradients go then (_unshard_param_utils.py,
// _unshard_fsdp_state_params), those of layers wait for the next step; the root is not gathered,
// and its head in fp32 is cast for each token.
static void summon(struct trainer *t, bool whole)
{
    struct shards *s = shards_of(t);
    machine_drop(t->machine, s->summoned);
    s->summoned = NULL;
    if (is_whole(t))
        return;
    call_under_wrapper(t, whole);
    if (!whole)
        return;
    make_ready(t);
    struct trained *root = s->units[s->root].trained;
    if (s->is_zeroed) {
        machine_drop(t->machine, root->gradient);
        root->gradient = NULL;
    }
    s->summoned = machine_take(t->machine, padded_elements(t, &s->units[s->root]) * s->stored_width,
                               MEMORY_GATHERED);
}

// A state dict of several ranks: the root is there while each layer comes and goes.
static void gather_state(struct trainer *t)
{
    struct shards *s = shards_of(t);
    struct storage *root = machine_take(
        t->machine, padded_elements(t, &s->units[s->root]) * s->stored_width, MEMORY_GATHERED);
    for (int i = 1; i < s->unit_count; i++) {
        const struct unit *u = &s->units[unit_in_order(s, i)];
        machine_scratch(t->machine, padded_elements(t, u) * s->stored_width);
    }
    machine_drop(t->machine, root);
}

// torch 2.11, FullStateDictConfig with offload_to_cpu: gradients that nobody sees go first
// (_state_dict_utils.py), a unit goes to the host once it is whole and comes back before it is let
// go (_flat_param.py, to_cpu), the root after its layers.
static void gather_to_host(struct trainer *t)
{
    struct shards *s = shards_of(t);
    if (s->is_zeroed)
        drop_gradients(t);
    for (int i = 0; i <= s->unit_count; i++) {
        const struct unit *u = &s->units[unit_in_order(s, i % s->unit_count)];
        uint64_t bytes = padded_elements(t, u) * s->stored_width;
        machine_scratch(t->machine, bytes);
        if (i % s->unit_count)
            machine_scratch(t->machine, bytes);
    }
}

// On one rank a state dict clones every parameter on the card, and a thread writes the clones.
static struct storage **clone_state(struct trainer *t, uint32_t width)
{
    struct shards *s = shards_of(t);
    struct storage **clones = NEW(t->machine->arena, struct storage *, s->unit_count);
    for (int i = 0; i < s->unit_count; i++)
        clones[i] = machine_take(t->machine, s->units[i].elements * width, MEMORY_WORKING);
    return clones;
}

static void drop_state(struct trainer *t, struct storage **clones)
{
    for (int i = 0; i < shards_of(t)->unit_count; i++)
        machine_drop(t->machine, clones[i]);
}

// trinity/trainer/verl/fsdp_checkpoint_manager.py: the shards, then with `hf` all of it, cast to
// bf16 at the end. transformers' Trainer writes the one or the other.
static void save(struct trainer *t, bool hf)
{
    if (!is_whole(t)) {
        if (!hf || !t->habits->keeps_parameters)
            gather_state(t);
        if (hf)
            gather_to_host(t);
        return;
    }
    struct storage **shards = clone_state(t, shards_of(t)->stored_width);
    if (hf) {
        struct storage **wide = clone_state(t, shards_of(t)->stored_width);
        struct storage **narrow = clone_state(t, 2);
        drop_state(t, narrow);
        drop_state(t, wide);
    }
    drop_state(t, shards);
}

// ------------------------------------------------------------------ gradients

// The parameters' gradients are joined on the stream of gatherings, since their views were made
// there.
static struct storage *join_gradients(struct trainer *t, struct unit *u)
{
    struct machine *m = t->machine;
    uint16_t stream = shards_of(t)->gather_stream;
    machine_wait(m, stream, STREAM_COMPUTE);
    handle_unit(t);
    machine_move_on(m, stream, 2 * u->elements * shards_of(t)->width);
    struct storage *flat =
        machine_take_on(m, stream, u->elements * shards_of(t)->width, MEMORY_GRADIENTS);
    for (int i = 0; i < u->count; i++) {
        struct parameter *p = &t->graph.parameters[u->parameters[i]];
        machine_drop_after(m, p->gradient, stream);
        p->gradient = NULL;
    }
    return flat;
}

// On one rank the first micro-batch's gradient is made fp32, the others are added to it.
static void keep_gradient(struct trainer *t, struct unit *u, struct storage *flat)
{
    struct machine *m = t->machine;
    uint16_t stream = shards_of(t)->reduce_stream;
    if (!u->trained->gradient)
        u->trained->gradient =
            machine_take_on(m, stream, u->elements * shards_of(t)->reduce_width, MEMORY_GRADIENTS);
    machine_drop_after(m, flat, stream);
}

static void reduce_gradient(struct trainer *t, struct unit *u, struct storage *flat)
{
    struct machine *m = t->machine;
    uint16_t stream = shards_of(t)->reduce_stream;
    uint64_t padded = padded_elements(t, u);
    uint32_t width = shards_of(t)->reduce_width;
    struct storage *wide = NULL, *padding = NULL;
    if (width != shards_of(t)->width)
        machine_move_on(m, stream, u->elements * (width + shards_of(t)->width));
    if (width != shards_of(t)->width)
        wide = machine_take_on(m, stream, u->elements * width, MEMORY_GRADIENTS);
    // Where the driver has to make this buffer, the card catches up meanwhile: frees of the layers'
    // gradients follow at once (recordings t07 and one of Gemma 2). Smaller ones take too little.
    if (wide && m->grew)
        machine_synchronize(m, m->clock[shards_of(t)->gather_stream]);
    machine_collect(m, stream, REDUCE_SCATTER, shards_of(t)->ranks, padded * width);
    if (t->job->replicas > 1) // HYBRID_SHARD; torch has a stream of its own for it
        machine_collect(m, stream, REPLICA_REDUCE, t->job->replicas, u->shard_elements * width);
    if (padded != u->elements)
        padding = machine_take_on(m, stream, padded * width, MEMORY_GRADIENTS);
    struct storage *mine = machine_take_on(m, stream, u->shard_elements * width, MEMORY_GRADIENTS);
    machine_drop(m, padding);
    machine_drop(m, wide);
    if (width != shards_of(t)->stored_width) { // _cast_grad_to_param_dtype
        struct storage *narrow = mine;
        mine = machine_take_on(m, stream, u->shard_elements * shards_of(t)->stored_width,
                               MEMORY_GRADIENTS);
        machine_drop(m, narrow);
    }
    if (u->trained->gradient)
        machine_drop(m, mine); // added in place
    else
        u->trained->gradient = mine;
    machine_drop_after(m, flat, stream);
}

// Each by itself, into what the optimizer sees.
static void reduce_thin(struct trainer *t, struct unit *u)
{
    struct machine *m = t->machine;
    uint16_t stream = shards_of(t)->reduce_stream;
    int first, count = thin_of(t, u, &first);
    machine_wait(m, stream, STREAM_COMPUTE);
    for (int i = first; i < first + count; i++) {
        struct parameter *p = &t->graph.parameters[shards_of(t)->first_thin + i];
        if (!p->gradient)
            continue;
        struct storage *mine =
            machine_take_on(m, stream, t->trained[i].elements * THIN_WIDTH, MEMORY_GRADIENTS);
        machine_drop_after(m, p->gradient, stream);
        p->gradient = NULL;
        if (t->trained[i].gradient)
            machine_drop(m, mine); // added in place
        else
            t->trained[i].gradient = mine;
    }
}

// In the backward pass too each factor has come and gone by itself, and its gathering has waited
// for the last but one before it (limit_all_gathers): the host is where the card is.
static void wait_for_factors(struct trainer *t)
{
    struct shards *s = shards_of(t);
    for (int i = 0; i < s->release_count; i++)
        machine_synchronize(t->machine, s->releases[i]);
    s->release_count = 0;
    for (int i = 0; i < GATHERINGS_AHEAD; i++)
        note_release(t, STREAM_COMPUTE);
}

// The layer before is there first: both hooks are on the same tensor, and its own is the older one.
// The card is done with this layer when it is let go.
static void leave_frozen(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    struct unit *u = &s->units[unit];
    if (!t->keeps_gradients)
        reduce_thin(t, u);
    let_thin_go(t, u);
    if (calls_factors(t) && unit < s->root)
        wait_for_factors(t);
    if (unit > 0 && unit < s->root)
        bring(t, u - 1);
    machine_drop(t->machine, u->full);
    u->full = NULL;
    let_go(t, u, STREAM_COMPUTE);
}

// Under no_sync a unit's gradient stays whole, in the compute type; the next is added in place
// (torch/distributed/fsdp/_runtime_utils.py, _post_backward_hook).
static struct storage *add_unsent(struct trainer *t, struct unit *u, struct storage *flat)
{
    struct storage *sum = u->unsent;
    if (!sum)
        return flat;
    machine_drop_after(t->machine, flat, shards_of(t)->gather_stream);
    u->unsent = NULL;
    return sum;
}

static void leave_backward(struct trainer *t, int unit)
{
    const struct shards *s = shards_of(t);
    struct unit *u = &s->units[unit];
    if (s->thin_count) {
        leave_frozen(t, unit);
        return;
    }
    struct storage *flat = add_unsent(t, u, join_gradients(t, u));
    let_go(t, u, s->gather_stream);
    if (t->keeps_gradients && !is_whole(t)) {
        u->unsent = flat;
        return;
    }
    machine_wait(t->machine, s->reduce_stream, s->gather_stream);
    (is_whole(t) ? keep_gradient : reduce_gradient)(t, u, flat);
}

// Layers whose input has no gradient are let go with the root.
static void end_backward(struct trainer *t)
{
    struct shards *s = shards_of(t);
    for (int i = 0; i < s->root && s->thin_count; i++)
        if (s->units[i].full)
            leave_frozen(t, i);
    leave_backward(t, s->root);
    machine_follow(t->machine, STREAM_COMPUTE, s->reduce_stream);
    if (is_offloaded(t) && !t->keeps_gradients) // their copies are in the host
        drop_gradients(t);
}

// ------------------------------------------------------------------ clipping

// The norm of one long vector: partial results of thread blocks of 512, each thread of which has at
// least 16 and at most 256 values (ATen/native/cuda/Reduce.cuh).
static void norm_scratch(struct trainer *t, uint64_t elements)
{
    enum { THREADS = 512, FEWEST = 16, MOST = 256 };
    const struct graph *g = &t->graph;
    uint64_t values = u64_divide_up(elements, THREADS);
    uint64_t target = g->multiprocessors * (g->threads_per_multiprocessor / THREADS);
    uint64_t splits = u64_divide_up(values, FEWEST);
    if (values < MOST)
        return;
    splits = splits < target ? splits : target;
    if (splits < u64_divide_up(values, MOST))
        splits = u64_divide_up(values, MOST);
    struct storage *partial = machine_take(t->machine, 4 * splits, MEMORY_WORKSPACE);
    machine_scratch(t->machine, 4);
    machine_drop(t->machine, partial);
}

static struct storage *one_value(struct trainer *t)
{
    return machine_take(t->machine, 4, MEMORY_WORKSPACE);
}

// FullyShardedDataParallel.clip_grad_norm_: a norm for every unit, no foreach; then the power, its
// sum over the ranks, the root and the factor.
static void clip(struct trainer *t)
{
    struct shards *s = shards_of(t);
    struct machine *m = t->machine;
    struct storage **norms = NEW(m->arena, struct storage *, t->trained_count);
    for (int i = 0; i < t->trained_count; i++) { // the norm, then the factor
        machine_move(m, t->trained[i].elements * t->trained[i].width);
        machine_move(m, 2 * t->trained[i].elements * t->trained[i].width);
    }
    if (!s->zero)
        s->zero = one_value(t);
    for (int i = 0; i < t->trained_count; i++) {
        norms[i] = one_value(t);
        norm_scratch(t, t->trained[i].elements);
    }
    struct storage *stacked = machine_take(m, 4 * (uint64_t)t->trained_count, MEMORY_WORKSPACE);
    for (int i = t->trained_count - 1; i >= 0; i--)
        machine_drop(m, norms[i]);
    struct storage *norm = one_value(t);
    machine_drop(m, stacked);
    struct storage *power = one_value(t), *total = one_value(t);
    machine_drop(m, power);
    struct storage *sum = one_value(t), *quotient = one_value(t), *factor = one_value(t);
    machine_drop(m, quotient);
    machine_drop(m, sum);
    struct storage *clamped = one_value(t);
    machine_drop(m, norm);
    machine_drop(m, factor);
    machine_drop(m, clamped);
    machine_drop(m, total);
}

// The step is over once its loss has been read. With use_orig_params, as accelerate has it, only
// the views are zeroed: flat gradients stay until a forward pass begins (_runtime_utils.py,
// _reset_flat_param_grad_info_if_needed).
static void zero(struct trainer *t)
{
    shards_of(t)->is_zeroed = t->habits->keeps_parameters && !is_whole(t);
    if (!shards_of(t)->is_zeroed)
        drop_gradients(t);
    machine_synchronize(t->machine, t->machine->clock[STREAM_COMPUTE]);
}

static int unit_of(const struct trainer *t, enum part part)
{
    const struct shards *s = shards_of(t);
    if (part == PART_VISION)
        return s->block_count ? s->blocks : -1;
    return part == PART_EMBEDDING || part == PART_HEAD ? -1 : s->root;
}

const struct strategy_kind fsdp1_strategy = {
    .load = fsdp1_load,
    .dismiss = fsdp1_dismiss,
    .enter_unit = enter_unit,
    .leave_unit = leave_unit,
    .enter_backward = enter_backward,
    .leave_backward = leave_backward,
    .at_adapter = at_adapter,
    .end_backward = end_backward,
    .clip = clip,
    .update = optimizer_update,
    .zero = zero,
    .unit_of = unit_of,
    .end_reading = end_reading,
    .publish = publish,
    .make_whole = summon,
    .host_bytes = shards_host_bytes,
    .save = save,
};
