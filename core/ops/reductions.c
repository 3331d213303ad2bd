// Operators over rows: one value or a few of each, or all of them normed.
#include "core/ops/operation.h"

static const struct operation mean_of_rows = {KERNELS_MEAN, gradient_like_input};

struct var op_mean(struct graph *g, struct var x, uint64_t rows)
{
    return op_unary(g, graph_add_for(g, &mean_of_rows, x), x, rows, x.width);
}

// The gradient is the same for all of a row: expanded, not copied.
struct var op_sum_rows(struct graph *g, struct var x, uint64_t rows)
{
    return op_unary(g, graph_add_for(g, &operation_pass, x), x, rows, x.width);
}

// The gradient is expanded, and copied to be viewed as rows.
static const struct operation sum_groups = {KERNELS_SUM_GROUPS, gradient_like_input};

struct var op_sum_groups(struct graph *g, struct var x, uint64_t elements)
{
    return op_unary(g, graph_add_for(g, &sum_groups, x), x, elements, x.width);
}

static const struct operation max_of_rows = {KERNELS_MAX, gradient_like_input};

struct var op_max(struct graph *g, struct var x, uint64_t rows)
{
    struct node *n = graph_add_for(g, &max_of_rows, x);
    struct var out = op_unary(g, n, x, rows, x.width), indices = graph_output(g, NULL, rows, 8);
    graph_keep(g, n, indices.storage);
    var_drop(g, &indices);
    return out;
}

static const struct operation top_of_rows = {KERNELS_TOP, gradient_like_input};

struct var op_top(struct graph *g, struct var x, uint64_t elements, struct var *indices)
{
    struct node *n = graph_add_for(g, &top_of_rows, x);
    struct var out = op_unary(g, n, x, elements, x.width);
    *indices = graph_output(g, NULL, elements, 8);
    graph_keep(g, n, indices->storage);
    return out;
}

// _softmax_backward_data multiplies gradient and output first.
static void softmax_backward(struct graph *g, struct node *n, struct outcome *out)
{
    gradient_like_input(g, n, out);
    moves(g, 3 * n->input_bytes[0]); // gradient times output
    machine_scratch(g->machine, n->input_bytes[0]);
}

static const struct operation softmax = {KERNELS_SOFTMAX, softmax_backward};

struct var op_softmax(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &softmax, x);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    graph_keep(g, n, out.storage);
    return out;
}
