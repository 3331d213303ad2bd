// Python's lifetimes in a forward: what goes when, told by the sizes of what is taken and let go.
#include "core/base/buf.h"
#include "core/models/calls.h"
#include "tests/support/t.h"

struct run {
    struct trace trace;
    struct machine machine;
    struct graph graph;
};

static struct run *started(void)
{
    struct arena *a = test_arena();
    struct run *r = NEW(a, struct run, 1);
    struct error e;
    uint16_t stream;
    r->trace = trace_in(a);
    for (uint64_t i = 0; i < MACHINE_STREAMS; i++)
        CHECK(trace_stream(&stream, &r->trace, i, &e));
    r->machine = machine_with(a, &r->trace);
    r->graph = (struct graph){.machine = &r->machine};
    return r;
}

// "+8 -8": a tensor of one element of eight bytes, and its end.
static struct str history(const struct run *r)
{
    struct buf b = buf_in(r->trace.arena);
    uint64_t bytes[64] = {0};
    for (ptrdiff_t i = 0; i < r->trace.count; i++) {
        const struct event *e = &r->trace.events[i];
        if (e->kind == EVENT_ALLOC)
            bytes[e->block] = e->bytes;
        if (e->kind == EVENT_ALLOC || e->kind == EVENT_FREE)
            buf_printf(&b, "%s%c%llu", b.n ? " " : "", e->kind == EVENT_ALLOC ? '+' : '-',
                       (unsigned long long)bytes[e->block]);
    }
    return buf_str(&b);
}

TEST(a_value_without_a_name_goes_with_its_call)
{
    struct run *r = started();
    struct graph *g = &r->graph;
    struct scope f = scope_in(g);
    struct var x = local(&f, constant(g, 1, 1));
    struct var two = cast(g, cast(g, x, 2), 4);
    struct var sum = returns(&f, add(g, two, cast(g, x, 8)));
    CHECK_STR(history(r), "+1 +2 +4 -2 +8 +8 -4 -8 -1");
    var_drop(g, &sum);
    CHECK_STR(history(r), "+1 +2 +4 -2 +8 +8 -4 -8 -1 -8");
}

TEST(a_name_assigned_again_lets_its_old_value_go)
{
    struct run *r = started();
    struct graph *g = &r->graph;
    struct scope f = scope_in(g);
    struct var x = local(&f, constant(g, 1, 1)), y = local(&f, constant(g, 1, 2));
    struct var also = local(&f, x);
    assign(&f, &x, cast(g, x, 4));
    CHECK_STR(history(r), "+1 +2 +4");
    forget(&f, &also);
    assign(&f, &x, cast(g, y, 8));
    CHECK_STR(history(r), "+1 +2 +4 -1 +8 -4");
    ends(&f);
    CHECK_STR(history(r), "+1 +2 +4 -1 +8 -4 -8 -2");
}

// As an exception between the value and its assignment leaves the name what it had.
TEST(a_recomputation_that_stops_leaves_names_alone)
{
    struct run *r = started();
    struct graph *g = &r->graph;
    struct scope f = scope_in(g);
    struct var x = local(&f, constant(g, 1, 1)), y = local(&f, constant(g, 1, 2));
    g->stopped = true;
    assign(&f, &x, cast(g, y, 4));
    assign(&f, &x, same(y));
    forget(&f, &y);
    CHECK_U64(x.width, 2);
    CHECK_STR(history(r), "+1 +2");
    ends(&f);
    CHECK_STR(history(r), "+1 +2 -1 -2");
}
