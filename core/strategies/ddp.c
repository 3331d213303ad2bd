// DistributedDataParallel (torch 2.11): every rank has everything; a reducer holds a second copy of
// the gradients, in buckets (torch/nn/parallel/distributed.py,
// torch/csrc/distributed/c10d/reducer.cpp). Gradients are copied into buckets, reduced there and
// copied back: gradient_as_bucket_view is off, as it is unless asked for.
#include "core/base/units.h"
#include "core/models/adapters.h"
#include "core/strategies/strategies.h"

#define BROADCAST_BYTES    (250 * MIB) // of the first parameters, coalesced
#define FIRST_BUCKET_BYTES MIB
#define BUCKET_BYTES       (25 * MIB)

struct reducer {
    struct storage **buckets;
    int bucket_count;
    bool rebuilt;
    uint64_t gathered_bytes; // in the bucket that is filled
};

static uint64_t bytes_of(const struct parameter *p)
{
    return p->packed ? p->rows * p->columns / 2 : p->rows * p->columns * p->width;
}

// Whether it requires a gradient, be it that none comes.
static bool is_asked(const struct parameter *p)
{
    return !p->frozen || p->idle;
}

// What is sent together: parameters of one type.
struct parcel {
    int first, count; // by the modules' order
    uint64_t bytes;
};

enum { TYPES = 5 }; // by bytes an element; bytes of packed weights are a type of their own

struct parcels {
    struct parcel *sent;
    int count, seen;
    struct parcel open[TYPES];
};

// In the order of their first parameters.
static void close_parcel(struct parcels *p, struct parcel *open)
{
    int at = p->count++;
    for (; at > 0 && p->sent[at - 1].first > open->first; at--)
        p->sent[at] = p->sent[at - 1];
    p->sent[at] = *open;
    *open = (struct parcel){0};
}

static void pack_parcel(struct parcels *p, const struct parameter *parameter)
{
    struct parcel *open = &p->open[parameter->packed ? 1 : parameter->width];
    if (!open->count++)
        open->first = p->seen;
    p->seen++;
    open->bytes += bytes_of(parameter);
    if (open->bytes >= BROADCAST_BYTES)
        close_parcel(p, open);
}

// Rank 0's parameters go to all through flat copies, two of them in flight; one alone is sent as it
// is (torch/csrc/distributed/c10d/comm.cpp, and compute_bucket_assignment_by_size of reducer.cpp).
static void broadcast(struct trainer *t)
{
    const struct graph *g = &t->graph;
    struct parcels p = {.sent = NEW(t->machine->arena, struct parcel, g->parameter_count + TYPES)};
    struct storage *in_flight = NULL;
    int *order = NEW(t->machine->arena, int, g->parameter_count);
    int count = parameters_in_order(t, order);
    for (int i = 0; i < count; i++)
        pack_parcel(&p, &g->parameters[order[i]]);
    for (int i = 0; i < TYPES; i++)
        if (p.open[i].count)
            close_parcel(&p, &p.open[i]);
    for (int i = 0; i < p.count; i++) {
        struct storage *flat =
            machine_take(t->machine, p.sent[i].count > 1 ? p.sent[i].bytes : 0, MEMORY_WORKSPACE);
        machine_drop(t->machine, in_flight);
        in_flight = flat;
    }
    machine_drop(t->machine, in_flight);
}

// Until the order in which gradients come is known, one bucket holds them all.
static void build(struct trainer *t)
{
    const struct graph *g = &t->graph;
    struct reducer *r = NEW(t->machine->arena, struct reducer, 1);
    uint64_t bytes = 0;
    whole_build(t);
    broadcast(t);
    for (int i = 0; i < g->parameter_count; i++)
        bytes += is_asked(&g->parameters[i]) ? bytes_of(&g->parameters[i]) : 0;
    r->buckets = NEW(t->machine->arena, struct storage *, g->parameter_count);
    r->buckets[r->bucket_count++] = machine_take(t->machine, bytes, MEMORY_GRADIENTS);
    t->state = r;
}

// Parameters by the order in which their gradients came.
static int *in_order_of_gradients(const struct trainer *t)
{
    const struct graph *g = &t->graph;
    int *order = NEW(t->machine->arena, int, g->parameter_count);
    for (int i = 0; i < g->parameter_count; i++) {
        int at = i;
        for (; at > 0 && g->parameters[order[at - 1]].ready > g->parameters[i].ready; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

static void rebuild(struct trainer *t, struct reducer *r)
{
    const struct graph *g = &t->graph;
    const int *order = in_order_of_gradients(t);
    uint64_t bytes = 0, limit = FIRST_BUCKET_BYTES;
    machine_drop(t->machine, r->buckets[0]);
    r->bucket_count = 0;
    r->rebuilt = true;
    for (int i = 0; i < g->parameter_count; i++) {
        const struct parameter *p = &g->parameters[order[i]];
        bytes += is_asked(p) ? bytes_of(p) : 0;
        if (bytes < limit && i + 1 < g->parameter_count)
            continue;
        r->buckets[r->bucket_count++] = machine_take(t->machine, bytes, MEMORY_GRADIENTS);
        bytes = 0;
        limit = BUCKET_BYTES;
    }
}

static void before_forward(struct trainer *t)
{
    struct reducer *r = t->state;
    if (t->machine->step == 2 && !r->rebuilt)
        rebuild(t, r);
}

// Gradients are copied into buckets, which are summed over the ranks beside the backward pass once
// they are full (reducer.cpp).
static void send_bucket(struct trainer *t, struct reducer *r)
{
    struct machine *m = t->machine;
    uint16_t stream = t->first_stream;
    if (!r->gathered_bytes)
        return;
    machine_follow(m, stream, STREAM_COMPUTE);
    machine_collect(m, stream, ALL_REDUCE, job_ranks(t->job), r->gathered_bytes);
    r->gathered_bytes = 0;
}

static void gradient_ready(struct graph *g, int parameter)
{
    struct trainer *t = g->owner;
    struct reducer *r = t->state;
    uint64_t bytes = bytes_of(&g->parameters[parameter]);
    if (t->keeps_gradients) // reducer.cpp, autograd_hook: none are expected
        return;
    machine_move(t->machine, 2 * bytes);
    r->gathered_bytes += bytes;
    if (r->gathered_bytes >= BUCKET_BYTES)
        send_bucket(t, r);
}

// And copied back from them.
static void end_backward(struct trainer *t)
{
    struct reducer *r = t->state;
    uint64_t bytes = 0;
    if (t->keeps_gradients)
        return;
    send_bucket(t, r);
    machine_follow(t->machine, STREAM_COMPUTE, t->first_stream);
    for (int i = 0; i < t->trained_count; i++)
        bytes += t->trained[i].elements * t->trained[i].width;
    machine_move(t->machine, 2 * bytes);
}

const struct strategy_kind ddp_strategy = {
    .build = build,
    .gradient_ready = gradient_ready,
    .end_backward = end_backward,
    .before_forward = before_forward,
    .clip = optimizer_clip,
    .update = whole_update,
    .zero = optimizer_zero,
    .talks_alone = true,
};
