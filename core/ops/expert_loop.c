// What transformers 4 runs for one expert after another (modeling_mixtral.py of 4.48.1): products
// by the frozen weights of one of them, and index_add_ into the rows of all.
#include "core/ops/operation.h"

// ------------------------------------------------------------------ products of one expert

struct part_product {
    uint32_t rows, columns, outputs, width;
};

static void part_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct part_product *d = NODE_DETAIL(n, struct part_product);
    out[0].gradient = take_working(g, n->input_bytes[0]);
    gemm_workspace(g);
    multiplies(g, (struct product_shape){d->rows, d->columns, d->outputs, 1, d->width});
}

static const struct operation part_product = {KERNELS_LINEAR, part_backward};

static struct var plain_part(struct graph *g, struct var x, int parameter, uint64_t columns,
                             uint64_t outputs)
{
    uint64_t rows = x.elements / columns;
    struct var weight = op_parameter(g, parameter);
    struct node *n = graph_add_for(g, &part_product, x);
    if (x.node != NO_NODE)
        graph_keep(g, n, weight.storage);
    struct var out = graph_output(g, n, rows * outputs, x.width);
    node_input(n, 0, x);
    if (n)
        *NODE_DETAIL(n, struct part_product) =
            (struct part_product){(uint32_t)rows, (uint32_t)columns, (uint32_t)outputs, x.width};
    if (g->stopped)
        return out;
    gemm_workspace(g);
    multiplies(g, (struct product_shape){rows, outputs, columns, 1, x.width});
    return out;
}

struct var op_part_product(struct graph *g, struct var x, int parameter, uint64_t columns,
                           uint64_t outputs)
{
    const struct parameter *p = &g->parameters[parameter];
    ASSERT(p->frozen);
    return (p->packed ? packed_part : plain_part)(g, x, parameter, columns, outputs);
}

// ------------------------------------------------------------------ index_add_

// What came goes on, and its rows are what was added gets.
static void add_to_rows_backward(struct graph *g, struct node *n, struct outcome *out)
{
    operation_pass.backward(g, n, out);
    if (n->inputs[1] == NO_NODE)
        return;
    machine_drop(g->machine, out[1].gradient);
    out[1] = (struct outcome){.gradient = make_working(g, n->input_bytes[1], n->input_bytes[1])};
}

static const struct operation add_to_rows = {KERNELS_INDEX, add_to_rows_backward};

struct var op_add_to_rows(struct graph *g, struct var base, struct var x, struct var numbers)
{
    struct node *n = graph_add_for(g, &add_to_rows, either(base, x));
    graph_keep(g, n, numbers.storage);
    node_input(n, 1, x);
    moves(g, 3 * var_bytes(x));
    return node_in_place(g, n, base);
}
