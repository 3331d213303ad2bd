// Eager autograd over sizes, operator by operator: what is allocated, in which order, and that all
// of it is let go. That the sizes are torch's is for the recordings to say (test_step,
// accuracy.py).
#include "core/autograd/ops.h"
#include "tests/t.h"

struct stage {
    struct trace trace;
    struct machine machine;
    struct graph graph;
};

static struct graph *stage_up(struct stage *s)
{
    s->trace = trace_in(test_arena());
    s->machine = machine_with(test_arena(), &s->trace);
    s->graph = (struct graph){.machine = &s->machine, .recording = true, .keeping = true};
    return &s->graph;
}

static struct var leaf(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, graph_add(g, OPERATION_PASS), elements, width);
}

struct allocation {
    uint64_t bytes;
    enum memory_kind kind;
};

static void check_allocations(const struct trace *t, ptrdiff_t from,
                              const struct allocation *wanted, ptrdiff_t count)
{
    ptrdiff_t found = 0;
    for (ptrdiff_t i = from; i < t->count; i++) {
        const struct event *e = &t->events[i];
        if (e->kind != EVENT_ALLOC)
            continue;
        if (found < count) {
            CHECK_U64(e->bytes, wanted[found].bytes);
            CHECK_U64(e->tag, (uint64_t)wanted[found].kind);
        }
        found++;
    }
    CHECK_U64((uint64_t)found, (uint64_t)count);
}

static void bent_mean(struct graph *g, struct var *out, struct var in, void *what)
{
    (void)what;
    struct var bent = op_tanh(g, in), mean = op_mean(g, bent, 10);
    var_drop(g, &bent);
    *out = op_cast(g, mean, 4);
    var_drop(g, &mean);
}

// Cast and mean keep nothing: they come before the recomputation, which stops at tanh.
TEST(the_tail_of_a_checkpoint_runs_before_its_recomputation)
{
    struct stage s;
    struct graph *g = stage_up(&s);
    struct var in = leaf(g, 1000, 2), out = graph_checkpoint(g, in, bent_mean, NULL);
    struct var loss = op_mean(g, out, 1);
    var_drop(g, &out);
    ptrdiff_t from = s.trace.count;
    graph_backward(g, loss);
    static const struct allocation wanted[] = {
        {4, MEMORY_WORKING},    {40, MEMORY_WORKING}, {20, MEMORY_WORKING},
        {2000, MEMORY_WORKING}, {2000, MEMORY_SAVED}, {2000, MEMORY_WORKING},
    };
    check_allocations(&s.trace, from, wanted, COUNT_OF(wanted));
}
