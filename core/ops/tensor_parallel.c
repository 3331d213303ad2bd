// Weights that are cut over tensor parallel ranks, as transformers 5.17 has them
// (distributed/tensor_parallel.py: DTensors of torch 2.11). Collectives are functional: each gives
// a new tensor, and what it was given goes when the module's forward has returned. Seen in a log of
// all operators of a small model over torch's fake process group; measured in
// tests/runs/real_trainers.jsonl (tp1 to tp30).
#include "core/ops/operation.h"

static void collects(struct graph *g, enum collective kind, uint64_t bytes)
{
    if (!g->stopped)
        machine_collect(g->machine, STREAM_COMPUTE, kind, g->tensor_ranks, bytes);
}

// ------------------------------------------------------------------ inputs

static void shared_backward(struct graph *g, struct node *n, struct outcome *out)
{
    machine_host(g->machine, machine_rates(g->machine)->cut_gradient);
    out[0].gradient = take_working(g, n->input_bytes[0]);
    collects(g, ALL_REDUCE, n->input_bytes[0]);
}

static const struct operation shared = {KERNELS_CUT, shared_backward};

// DTensor.from_local, replicated: a view.
struct var op_shared(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &shared, x);
    node_input(n, 0, x);
    return node_view(g, n, var_share(x));
}

// ------------------------------------------------------------------ outputs

static struct var let_go(struct graph *g, struct var out, struct var x)
{
    var_drop(g, &x);
    return out;
}

static void summed_backward(struct graph *g, struct node *n, struct outcome *out)
{
    machine_host(g->machine, machine_rates(g->machine)->cut_gradient);
    operation_pass.backward(g, n, out);
}

static const struct operation summed = {KERNELS_CUT, summed_backward};

// Every rank has all of the sum's gradient, which is each part's. What is only read is summed in
// place.
struct var op_summed(struct graph *g, struct var x)
{
    if (!g->recording) {
        collects(g, ALL_REDUCE, var_bytes(x));
        return x;
    }
    struct node *n = graph_add_for(g, &summed, x);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    collects(g, ALL_REDUCE, var_bytes(x));
    return let_go(g, out, x);
}

// _AllReduceForward.
struct var op_summed_in_place(struct graph *g, struct var x)
{
    if (g->tensor_ranks > 1)
        collects(g, ALL_REDUCE, var_bytes(x));
    return x;
}

// _replicate_to_shard: a copy of one's own part.
static void side_by_side_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = make_working(g, n->input_bytes[0], n->input_bytes[0]);
}

static const struct operation side_by_side = {KERNELS_CUT, side_by_side_backward};

// all_gather_tensor puts one part below the other, then they are joined.
struct var op_side_by_side(struct graph *g, struct var x)
{
    uint64_t elements = x.elements * g->tensor_ranks;
    struct node *n = graph_add_for(g, &side_by_side, x);
    struct var gathered = graph_output(g, NULL, elements, x.width);
    collects(g, GATHER, var_bytes(gathered));
    struct var out = op_unary(g, n, x, elements, x.width);
    moves(g, 2 * var_bytes(out));
    var_drop(g, &gathered);
    return let_go(g, out, x);
}

// ------------------------------------------------------------------ weights

static void whole_weight_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = machine_take(g->machine, n->input_bytes[0], MEMORY_GRADIENTS);
    machine_move(g->machine, 2 * n->input_bytes[0]);
}

static const struct operation whole_weight = {KERNELS_CUT, whole_weight_backward};

struct var op_whole_weight(struct graph *g, int parameter)
{
    const struct parameter *p = &g->parameters[parameter];
    struct node *n = p->frozen ? NULL : graph_add(g, &whole_weight);
    node_parameter(g, n, 0, parameter);
    struct var out = graph_output(g, n, p->rows * g->tensor_ranks * p->columns, p->width);
    collects(g, GATHER, var_bytes(out));
    return out;
}
