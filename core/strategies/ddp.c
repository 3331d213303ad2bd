// DistributedDataParallel (torch 2.11): every rank has everything; a reducer holds a second copy of
// the gradients, in buckets (torch/nn/parallel/distributed.py,
// torch/csrc/distributed/c10d/reducer.cpp). Gradients are copied into buckets, reduced there and
// copied back: gradient_as_bucket_view is off, as it is unless asked for.
#include "core/base/units.h"
#include "core/strategies/strategies.h"

#define BROADCAST_BYTES    (250 * MIB) // of the first parameters, coalesced
#define FIRST_BUCKET_BYTES MIB
#define BUCKET_BYTES       (25 * MIB)

struct reducer {
    struct storage **buckets;
    int bucket_count;
    bool rebuilt;
};

static uint64_t bytes_of(const struct parameter *p)
{
    return p->rows * p->columns * p->width;
}

struct broadcast {
    struct trainer *trainer;
    struct storage *in_flight;
};

static void send(struct broadcast *b, uint64_t bytes)
{
    struct machine *m = b->trainer->machine;
    struct storage *flat = machine_take(m, bytes, MEMORY_WORKSPACE);
    machine_drop(m, b->in_flight);
    b->in_flight = flat;
}

// Parameters from one number to before another. Adapters of another type than the base are
// coalesced apart from it, and go after the base's first that has one.
static void send_all(struct broadcast *b, int from, int end)
{
    const struct graph *g = &b->trainer->graph;
    uint64_t bytes = 0;
    int first_adapter = 0, count = 0;
    for (int i = from; i < end; i++) {
        const struct parameter *p = &g->parameters[i];
        first_adapter = first_adapter ? first_adapter : p->adapter;
        bytes += bytes_of(p);
        count++;
        if (bytes < BROADCAST_BYTES && i + 1 < end)
            continue;
        send(b, count > 1 ? bytes : 0); // one alone is sent as it is
        bytes = 0;
        count = 0;
        if (first_adapter == end)
            send_all(b, end, g->parameter_count);
        first_adapter = 0;
    }
}

// Rank 0's parameters go to all through flat copies, two of them in flight
// (torch/csrc/distributed/c10d/comm.cpp).
static void broadcast(struct trainer *t)
{
    const struct graph *g = &t->graph;
    struct broadcast b = {.trainer = t};
    int base = 0;
    while (base < g->parameter_count && g->parameters[base].frozen)
        base++;
    bool apart = base && g->parameters[base].width != g->parameters[0].width;
    send_all(&b, 0, apart ? base : g->parameter_count);
    machine_drop(t->machine, b.in_flight);
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
        bytes += g->parameters[i].frozen ? 0 : bytes_of(&g->parameters[i]);
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
        bytes += p->frozen ? 0 : bytes_of(p);
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

const struct strategy_kind ddp_strategy = {
    .build = build,
    .before_forward = before_forward,
    .clip = optimizer_clip,
    .update = whole_update,
    .zero = optimizer_zero,
    .talks_alone = true,
};
