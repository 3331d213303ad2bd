// Nodes with their inputs, and the backward pass that most operators have.
#include "core/ops/operation.h"

int32_t gradient_of(const struct graph *g, int parameter)
{
    return g->parameters[parameter].frozen ? NO_NODE : input_of_parameter(parameter);
}

void node_of_frozen(const struct graph *g, struct node *n, int parameter)
{
    if (n && g->parameters[parameter].frozen)
        n->frozen_module = parameter + 1;
}

void node_input(struct node *n, int input, struct var x)
{
    if (!n)
        return;
    n->inputs[input] = x.node;
    n->input_bytes[input] = var_bytes(x);
}

void node_parameter(const struct graph *g, struct node *n, int input, int parameter)
{
    node_input(n, input, op_parameter(g, parameter));
}

struct var op_parameter(const struct graph *g, int parameter)
{
    const struct parameter *p = &g->parameters[parameter];
    return (struct var){NULL, gradient_of(g, parameter), p->width, p->rows * p->columns};
}

struct var op_constant(struct graph *g, uint64_t elements, uint32_t width)
{
    graph_called(g);
    moves(g, 2 * elements * width);
    return graph_output(g, NULL, elements, width);
}

void moves(struct graph *g, uint64_t bytes)
{
    if (!g->stopped)
        machine_move(g->machine, bytes);
}

void reads_too(struct graph *g, struct var x)
{
    if (!g->stopped)
        machine_move_more(g->machine, var_bytes(x));
}

void slower(struct graph *g, enum moving kind, uint64_t bytes)
{
    if (!g->stopped)
        machine_slow(g->machine, kind, bytes);
}

void multiplies(struct graph *g, struct product_shape p)
{
    if (!g->stopped)
        machine_multiply(g->machine, &p);
}

struct var op_unary(struct graph *g, struct node *n, struct var x, uint64_t elements,
                    uint32_t width)
{
    node_input(n, 0, x);
    struct var out = graph_output(g, n, elements, width);
    moves(g, var_bytes(x) + var_bytes(out));
    if (width > x.width)
        slower(g, MOVING_WIDER, var_bytes(x) + var_bytes(out));
    return out;
}

struct var node_view(const struct graph *g, const struct node *n, struct var x)
{
    x.node = n ? (int32_t)(n - g->nodes) : NO_NODE;
    return x;
}

struct var node_in_place(const struct graph *g, struct node *n, struct var x)
{
    node_input(n, 0, x);
    return n ? node_view(g, n, x) : x;
}

struct var either(struct var a, struct var b)
{
    return a.node != NO_NODE ? a : b;
}

void keep_last(const struct graph *g, struct node *n, struct storage *s)
{
    if (!n || !g->keeping)
        return;
    ASSERT(n->saved_count < NODE_SAVED);
    n->saved[n->saved_count++] = storage_share(s);
}

struct storage *take_working(struct graph *g, uint64_t bytes)
{
    return machine_take(g->machine, bytes, MEMORY_WORKING);
}

struct storage *make_working(struct graph *g, uint64_t bytes, uint64_t read)
{
    machine_move(g->machine, bytes + read);
    return take_working(g, bytes);
}

uint64_t gradient_bytes(const struct node *n)
{
    return n->gradient ? n->gradient->bytes : 0;
}

void gradient_like_input(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t kept = n->saved_count && n->saved[0] ? n->saved[0]->bytes : 0;
    out[0].gradient = make_working(g, n->input_bytes[0], gradient_bytes(n) + kept);
    if (n->input_bytes[0] > gradient_bytes(n))
        slower(g, MOVING_WIDER, n->input_bytes[0] + gradient_bytes(n));
}
