// Ulysses: all_to_all between ranks that each have a part of the sequence and ranks that each have
// some of the heads.
#include "core/ops/operation.h"

static void exchanges(struct graph *g, uint64_t bytes)
{
    if (!g->stopped)
        machine_collect(g->machine, STREAM_COMPUTE, ALL_TO_ALL, g->exchange_ranks, bytes);
}

// A permuted copy and a receive buffer; the result is a view of the latter.
static void exchange_in_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *sent = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    exchanges(g, n->input_bytes[0]);
    out[0].gradient = take_working(g, n->input_bytes[0]);
    machine_drop(g->machine, sent);
}

static const struct operation exchange_in = {KERNELS_EXCHANGE_IN, exchange_in_backward};

struct var op_exchange_in(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &exchange_in, x);
    struct var sent = graph_output(g, NULL, x.elements, x.width);
    moves(g, 2 * var_bytes(x));
    exchanges(g, var_bytes(x));
    struct var received = graph_output(g, NULL, x.elements, x.width);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    var_drop(g, &sent);
    var_drop(g, &received);
    return out;
}

static void exchange_out_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *sent = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    exchanges(g, n->input_bytes[0]);
    struct storage *received = take_working(g, n->input_bytes[0]);
    out[0].gradient = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    machine_drop(g->machine, sent);
    machine_drop(g->machine, received);
}

static const struct operation exchange_out = {KERNELS_EXCHANGE_OUT, exchange_out_backward};

struct var op_exchange_out(struct graph *g, struct var x, struct var *received)
{
    struct node *n = graph_add_for(g, &exchange_out, x);
    struct var sent = graph_output(g, NULL, x.elements, x.width);
    moves(g, 2 * var_bytes(x));
    exchanges(g, var_bytes(x));
    *received = graph_output(g, NULL, x.elements, x.width);
    var_drop(g, &sent);
    var_drop(g, &x);
    return op_unary(g, n, x, x.elements, x.width);
}

// ------------------------------------------------------------------ DeepSpeed's

// deepspeed/sequence/layer.py, _dim_zero_all_to_all (0.19.8): grad.contiguous() is sent.
static void all_to_all_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct sent *gradient = NODE_DETAIL(n, struct sent);
    struct storage *sent = NULL;
    if (gradient->copied_before)
        sent = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    exchanges(g, n->input_bytes[0]);
    struct storage *received = take_working(g, n->input_bytes[0]);
    machine_drop(g->machine, sent);
    out[0].gradient = received;
    if (!gradient->copied_after)
        return;
    out[0].gradient = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    machine_drop(g->machine, received);
}

static const struct operation all_to_all = {KERNELS_ALL_TO_ALL, all_to_all_backward};

struct var op_all_to_all(struct graph *g, struct var x, struct sent gradient)
{
    struct node *n = graph_add_for(g, &all_to_all, x);
    if (n)
        *NODE_DETAIL(n, struct sent) = gradient;
    node_input(n, 0, x);
    exchanges(g, var_bytes(x));
    return graph_output(g, n, x.elements, x.width);
}
