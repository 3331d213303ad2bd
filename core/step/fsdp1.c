// What FSDP1 takes and gives back, event for event as in the recording t07. Four streams: shards
// are cast on one, gathered on a second, gradients reduced on a third. A tensor that was made on
// one stream and used on another goes with record_stream: its memory comes back only when that
// use is known to be over.
//
// When that is known depends on the speed of host and card. Here the card is the slower one, as it
// is with long contexts: the host runs ahead until it waits, which FSDP makes it do before every
// gathering but two. With short contexts memory really comes back earlier than here, so that up to
// 5.4 % too much is predicted to be reserved (4096 tokens on two ranks).
#include "core/step/fsdp1.h"

#include "core/base/num.h"

enum { STREAM_CAST = 1, STREAM_GATHER = 2, STREAM_REDUCE = 3 };
enum { STORED_WIDTH = 4, REDUCE_WIDTH = 4, GATHERINGS_AHEAD = 2, MOST_RELEASES = 8 };

struct unit {
    int *parameters; // in the order of the flat parameter
    int count;
    uint64_t elements, shard_elements;
    struct storage *full;
    struct trained *trained; // its shard
};

struct shards {
    struct unit *units; // the layers, then the root
    int root;
    uint64_t ranks;
    bool is_ready;                    // the first forward pass has begun
    struct storage *zero;             // a scalar of clipping, kept
    uint64_t releases[MOST_RELEASES]; // when gathered units were let go, oldest first
    int release_count;
};

static struct shards *shards_of(const struct trainer *t)
{
    return t->shards;
}

static uint64_t padded_elements(const struct trainer *t, const struct unit *u)
{
    return u->shard_elements * shards_of(t)->ranks;
}

// ------------------------------------------------------------------ gathering

// limit_all_gathers: the host waits until the oldest of two units let go is really unused.
static void limit_gatherings(struct trainer *t)
{
    struct shards *s = shards_of(t);
    if (s->release_count < GATHERINGS_AHEAD)
        return;
    machine_synchronize(t->machine, s->releases[0]);
    s->release_count--;
    for (int i = 0; i < s->release_count; i++)
        s->releases[i] = s->releases[i + 1];
}

static void gather(struct trainer *t, struct unit *u)
{
    struct machine *m = t->machine;
    struct storage *cast =
        machine_take_on(t->machine, STREAM_CAST, u->shard_elements * t->width, MEMORY_GATHERED);
    machine_wait(m, STREAM_GATHER, STREAM_CAST);
    limit_gatherings(t);
    u->full = machine_take_on(t->machine, STREAM_GATHER, padded_elements(t, u) * t->width,
                              MEMORY_GATHERED);
    machine_drop_after(m, cast, STREAM_GATHER);
}

static void let_go(struct trainer *t, struct unit *u, uint16_t stream)
{
    struct shards *s = shards_of(t);
    if (stream == STREAM_GATHER)
        machine_drop(t->machine, u->full);
    else
        machine_drop_after(t->machine, u->full, stream);
    u->full = NULL;
    ASSERT(s->release_count < MOST_RELEASES);
    s->releases[s->release_count++] = t->machine->clock[stream];
}

// Buffers are made once to get their sizes, root first, and freed at once (_lazy_init).
static void make_ready(struct trainer *t)
{
    struct shards *s = shards_of(t);
    if (s->is_ready)
        return;
    s->is_ready = true;
    for (int i = 0; i <= s->root; i++) {
        const struct unit *u = &s->units[i ? i - 1 : s->root];
        machine_scratch(t->machine, u->shard_elements * t->width);
        machine_scratch(t->machine, padded_elements(t, u) * t->width);
        machine_scratch(t->machine, padded_elements(t, u) * STORED_WIDTH);
    }
}

static void before_forward(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    struct machine *m = t->machine;
    if (unit == s->root) {
        make_ready(t);
        machine_wait(m, STREAM_GATHER, STREAM_COMPUTE);
        machine_wait(m, STREAM_CAST, STREAM_COMPUTE);
    }
    if (unit == 0) // transformers has looked at a value on the card to choose a mask
        machine_synchronize(m, m->clock[STREAM_COMPUTE]);
    gather(t, &s->units[unit]);
}

static void after_forward(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    if (unit != s->root)
        let_go(t, &s->units[unit], STREAM_COMPUTE);
}

// The unit itself is there: the root since the forward pass, a layer since the one after it.
static void before_backward(struct trainer *t, int unit)
{
    struct shards *s = shards_of(t);
    if (unit == s->root)
        limit_gatherings(t);
    if (unit > 0)
        gather(t, &s->units[unit - 1]);
}

// ------------------------------------------------------------------ gradients

// The parameters' gradients are joined on the stream of gatherings, since their views were made
// there.
static void after_backward(struct trainer *t, int unit)
{
    struct unit *u = &shards_of(t)->units[unit];
    struct machine *m = t->machine;
    uint64_t padded = padded_elements(t, u);
    struct storage *padding = NULL;
    machine_wait(m, STREAM_GATHER, STREAM_COMPUTE);
    struct storage *flat =
        machine_take_on(t->machine, STREAM_GATHER, u->elements * t->width, MEMORY_GRADIENTS);
    for (int i = 0; i < u->count; i++) {
        struct parameter *p = &t->graph.parameters[u->parameters[i]];
        machine_drop_after(m, p->gradient, STREAM_GATHER);
        p->gradient = NULL;
    }
    let_go(t, u, STREAM_GATHER);
    machine_wait(m, STREAM_REDUCE, STREAM_GATHER);
    struct storage *wide =
        machine_take_on(t->machine, STREAM_REDUCE, u->elements * REDUCE_WIDTH, MEMORY_GRADIENTS);
    if (padded != u->elements)
        padding =
            machine_take_on(t->machine, STREAM_REDUCE, padded * REDUCE_WIDTH, MEMORY_GRADIENTS);
    u->trained->gradient = machine_take_on(t->machine, STREAM_REDUCE,
                                           u->shard_elements * REDUCE_WIDTH, MEMORY_GRADIENTS);
    machine_drop(m, padding);
    machine_drop(m, wide);
    machine_drop_after(m, flat, STREAM_REDUCE);
}

static void end_backward(struct trainer *t)
{
    after_backward(t, shards_of(t)->root);
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

static struct storage *scalar(struct trainer *t)
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
    if (!s->zero)
        s->zero = scalar(t);
    for (int i = 0; i < t->trained_count; i++) {
        norms[i] = scalar(t);
        norm_scratch(t, t->trained[i].elements);
    }
    struct storage *stacked = machine_take(m, 4 * (uint64_t)t->trained_count, MEMORY_WORKSPACE);
    for (int i = t->trained_count - 1; i >= 0; i--)
        machine_drop(m, norms[i]);
    struct storage *norm = scalar(t);
    machine_drop(m, stacked);
    struct storage *power = scalar(t), *total = scalar(t);
    machine_drop(m, power);
    struct storage *sum = scalar(t), *quotient = scalar(t), *factor = scalar(t);
    machine_drop(m, quotient);
    machine_drop(m, sum);
    struct storage *clamped = scalar(t);
    machine_drop(m, norm);
    machine_drop(m, factor);
    machine_drop(m, clamped);
    machine_drop(m, total);
}

// The step is over once its loss has been read.
static void zero(struct trainer *t)
{
    optimizer_zero(t);
    machine_synchronize(t->machine, t->machine->clock[STREAM_COMPUTE]);
}

// ------------------------------------------------------------------ building

static void take_whole(struct trainer *t, int parameter)
{
    struct parameter *p = &t->graph.parameters[parameter];
    p->weight = machine_take(t->machine, p->rows * p->columns * STORED_WIDTH, MEMORY_PARAMETERS);
}

static void drop_whole(struct trainer *t, int parameter)
{
    machine_drop(t->machine, t->graph.parameters[parameter].weight);
    t->graph.parameters[parameter].weight = NULL;
}

// Parameters come to the card module by module, the nearer ones first: `first` of them are the
// unit's own. They are joined, and this rank's part of that is kept.
static void shard_unit(struct trainer *t, struct unit *u, int first)
{
    struct machine *m = t->machine;
    for (int i = first; i < u->count; i++)
        take_whole(t, u->parameters[i]);
    for (int i = 0; i < first; i++)
        take_whole(t, u->parameters[i]);
    struct storage *flat = machine_take(m, u->elements * STORED_WIDTH, MEMORY_PARAMETERS);
    u->trained->weight = machine_take(m, u->shard_elements * STORED_WIDTH, MEMORY_PARAMETERS);
    machine_drop(m, flat);
    for (int i = u->count - 1; i >= 0; i--)
        drop_whole(t, u->parameters[i]);
}

static void add_parameter(struct trainer *t, struct unit *u, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    u->parameters[u->count++] = parameter;
    u->elements += p->rows * p->columns;
}

static void make_units(struct trainer *t)
{
    struct shards *s = shards_of(t);
    int per_layer = (t->final_norm - t->embedding - 1) / s->root;
    for (int i = 0; i <= s->root; i++) {
        struct unit *u = &s->units[i];
        u->parameters = NEW(t->machine->arena, int, per_layer + 3);
        u->trained = &t->trained[i == s->root ? 0 : i + 1];
        for (int j = 0; i < s->root && j < per_layer; j++)
            add_parameter(t, u, t->embedding + 1 + i * per_layer + j);
    }
    struct unit *root = &s->units[s->root];
    add_parameter(t, root, t->embedding);
    add_parameter(t, root, t->final_norm);
    if (t->head != t->embedding)
        add_parameter(t, root, t->head);
}

static void build(struct trainer *t)
{
    enum { LAYER_NORMS = 2, HEAD = 1 };
    struct shards *s = NEW(t->machine->arena, struct shards, 1);
    t->shards = s;
    s->ranks = plan_ranks(t->plan);
    s->root = (int)t->plan->model.layers;
    s->units = NEW(t->machine->arena, struct unit, s->root + 1);
    t->trained_count = s->root + 1;
    t->trained = NEW(t->machine->arena, struct trained, t->trained_count);
    make_units(t);
    for (int i = 0; i <= s->root; i++) {
        struct unit *u = &s->units[i];
        u->shard_elements = u64_divide_up(u->elements, s->ranks);
        *u->trained = (struct trained){.elements = u->shard_elements, .width = STORED_WIDTH};
        shard_unit(t, u, u->count - (i < s->root ? LAYER_NORMS : HEAD));
    }
}

static int unit_of(const struct trainer *t, enum part part)
{
    return part == PART_EMBEDDING || part == PART_HEAD ? -1 : shards_of(t)->root;
}

const struct sharding fsdp1_sharding = {
    .build = build,
    .before_forward = before_forward,
    .after_forward = after_forward,
    .before_backward = before_backward,
    .after_backward = after_backward,
    .end_backward = end_backward,
    .clip = clip,
    .zero = zero,
    .unit_of = unit_of,
};
