// liger_kernel 0.8.5's kernels for a layer (ops/rms_norm.py, rope.py and swiglu.py), which
// use_liger_kernel puts into a model: a norm keeps its input and one number a row and makes its
// gradient in place, but for Gemma 2's (in_place=False); positions turn heads in place, both ways;
// the gated product keeps its two factors and writes their gradients over them.
#include "core/ops/operation.h"

// ------------------------------------------------------------------ norms

struct liger_norm {
    uint64_t columns;
    bool apart; // its gradient is a tensor of its own
};

// Each multiprocessor sums up a row for the weight's gradient.
static void norm_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct machine *m = g->machine;
    uint64_t columns = NODE_DETAIL(n, struct liger_norm)->columns;
    bool apart = NODE_DETAIL(n, struct liger_norm)->apart, trained = n->inputs[1] != NO_NODE;
    struct storage *rows = trained ? take_working(g, 4 * g->multiprocessors * columns) : NULL;
    out[0].gradient = apart ? take_working(g, gradient_bytes(n)) : storage_share(n->gradient);
    out[0].view = true;              // dX.view(*shape)
    moves(g, 3 * gradient_bytes(n)); // the gradient in place, and the input
    slower(g, MOVING_FUSED, 3 * gradient_bytes(n));
    if (!trained)
        return;
    out[1].gradient = machine_take(m, 4 * columns, MEMORY_GRADIENTS);
    if (n->input_bytes[1] != 4 * columns)
        out[1].cast_bytes = n->input_bytes[1];
    machine_drop(m, rows);
}

static const struct operation liger_norm = {KERNELS_LIGER_NORM, norm_backward};

struct var op_liger_norm(struct graph *g, struct var x, int weight, bool apart)
{
    const struct parameter *p = &g->parameters[weight];
    struct node *n = p->frozen ? graph_add_for(g, &liger_norm, x) : graph_add(g, &liger_norm);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    struct var scales = graph_output(g, NULL, x.elements / p->rows, 4);
    node_parameter(g, n, 1, weight);
    if (n)
        *NODE_DETAIL(n, struct liger_norm) = (struct liger_norm){p->rows, apart};
    graph_keep(g, n, x.storage);
    graph_keep(g, n, NULL); // the weight
    graph_keep(g, n, scales.storage);
    var_drop(g, &scales);
    return out;
}

// ------------------------------------------------------------------ positions

static void turn_backward(struct graph *g, struct node *n, struct outcome *out)
{
    operation_pass.backward(g, n, out);
    moves(g, 2 * n->input_bytes[0]);
    slower(g, MOVING_FUSED, 2 * n->input_bytes[0]);
    out[0].view = n->gradient_is_view;
}

static const struct operation liger_turn = {KERNELS_LIGER_TURN, turn_backward};

struct var op_liger_turn(struct graph *g, struct var x, struct var cosine, struct var sine)
{
    struct node *n = graph_add_for(g, &liger_turn, x);
    node_input(n, 0, x);
    moves(g, 2 * var_bytes(x));
    slower(g, MOVING_FUSED, 2 * var_bytes(x));
    graph_keep(g, n, cosine.storage);
    graph_keep(g, n, sine.storage);
    return node_view(g, n, var_share(x));
}

// ------------------------------------------------------------------ the gated product

static void gate_backward(struct graph *g, struct node *n, struct outcome *out)
{
    moves(g, 5 * n->input_bytes[0]); // three read, two written
    slower(g, MOVING_FUSED, 5 * n->input_bytes[0]);
    for (int i = 0; i < 2; i++)
        out[i].gradient = storage_share(n->saved[i]);
}

static const struct operation liger_gate = {KERNELS_LIGER_GATE, gate_backward};

struct var op_liger_gate(struct graph *g, struct var gate, struct var up)
{
    struct node *n = graph_add_for(g, &liger_gate, either(gate, up));
    struct var out = op_unary(g, n, gate, gate.elements, gate.width);
    reads_too(g, up);
    node_input(n, 1, up);
    graph_keep(g, n, gate.storage);
    graph_keep(g, n, up.storage);
    return out;
}
