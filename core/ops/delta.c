// Operators of gated delta nets. What a convolution takes as workspace is cuDNN's choice and left
// out; solving takes none here.
#include "core/ops/delta.h"

#include "core/ops/operation.h"

// ------------------------------------------------------------------ convolution

static void convolution_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = take_working(g, n->input_bytes[0]);
    if (n->inputs[1] != NO_NODE)
        out[1].gradient = machine_take(g->machine, n->input_bytes[1], MEMORY_GRADIENTS);
}

static const struct operation convolution = {KERNELS_LINEAR, convolution_backward};

struct var op_convolution(struct graph *g, struct var x, int parameter)
{
    const struct parameter *p = &g->parameters[parameter];
    bool casts = g->autocast && p->width != 2;
    struct var weight = casts ? cast_weight(g, parameter) : op_parameter(g, parameter);
    struct node *n = graph_add(g, &convolution);
    graph_keep(g, n, x.storage);
    graph_keep(g, n, casts ? weight.storage : NULL);
    struct var out = op_unary(g, n, x, x.elements + p->rows * (p->columns - 1), x.width);
    node_input(n, 1, weight);
    if (casts)
        var_drop(g, &weight);
    return out;
}

// ------------------------------------------------------------------ sums with a row

static void add_shift_backward(struct graph *g, struct node *n, struct outcome *out)
{
    (void)g;
    out[0].gradient = storage_share(n->gradient);
    if (n->inputs[1] == NO_NODE)
        return;
    out[1].gradient = storage_share(n->gradient);
    out[1].reduced_bytes = n->input_bytes[1];
}

static const struct operation add_shift = {KERNELS_ADD, add_shift_backward};

struct var op_add_shift(struct graph *g, struct var x, int parameter)
{
    struct node *n = graph_add(g, &add_shift);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    node_parameter(g, n, 1, parameter);
    return out;
}

// ------------------------------------------------------------------ differences

struct differences {
    uint64_t bytes;
};

// Each side's gradient is summed, one of them negated first.
static void differences_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = take_working(g, n->input_bytes[0]);
    struct storage *negated = take_working(g, NODE_DETAIL(n, struct differences)->bytes);
    machine_scratch(g->machine, n->input_bytes[0]);
    machine_drop(g->machine, negated);
}

static const struct operation differences = {KERNELS_SUBTRACT, differences_backward};

struct var op_differences(struct graph *g, struct var x, uint64_t group)
{
    struct node *n = graph_add_for(g, &differences, x);
    struct var out = op_unary(g, n, x, x.elements * group, x.width);
    if (n)
        NODE_DETAIL(n, struct differences)->bytes = var_bytes(out);
    return out;
}

// ------------------------------------------------------------------ triangular systems

// linalg_solve_triangular_backward: the right side's gradient is another solution, the systems' a
// product of which half is kept.
static void solve_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[1].gradient = take_working(g, n->input_bytes[1]);
    struct storage *whole = take_working(g, n->input_bytes[0]);
    out[0].gradient = take_working(g, n->input_bytes[0]);
    machine_drop(g->machine, whole);
}

static const struct operation solve = {KERNELS_PRODUCT, solve_backward};

struct var op_solve(struct graph *g, struct var systems, struct var b)
{
    struct node *n = graph_add(g, &solve);
    graph_keep(g, n, systems.storage);
    struct var out = op_unary(g, n, systems, b.elements, b.width);
    node_input(n, 1, b);
    graph_keep(g, n, out.storage);
    return out;
}
