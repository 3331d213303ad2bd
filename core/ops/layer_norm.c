// torch's fused layer norm (ATen/native/cuda/layer_norm_kernel.cu, torch 2.11): its input is kept,
// and a mean and a deviation a row in fp32. Weight and bias may be made of a parameter, or be none.
#include "core/base/num.h"
#include "core/ops/operation.h"

struct layer_norm {
    uint64_t rows, columns;
    bool apart;
};

// Very many rows of few columns are first summed in parts, of 32 rows and more, then altogether.
static uint64_t parts_of_rows(const struct graph *g, const struct layer_norm *d)
{
    enum { COLUMNS = 32, ROWS = 32, MANY_ROWS = 64 * 1024, MOST_BLOCKS = 32 * 1024 };
    uint64_t across = u64_divide_up(d->columns, COLUMNS);
    if (d->rows <= MANY_ROWS || d->columns / COLUMNS >= g->multiprocessors / 2)
        return 0;
    return u64_least(MOST_BLOCKS / across, u64_divide_up(d->rows, ROWS));
}

static void layer_norm_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct layer_norm *d = NODE_DETAIL(n, struct layer_norm);
    struct storage *parts[NODE_INPUTS] = {NULL};
    uint64_t count = parts_of_rows(g, d);
    moves(g, 3 * n->input_bytes[0]); // the input's gradient; then the others', in one kernel
    if (n->inputs[1] != NO_NODE || n->inputs[2] != NO_NODE)
        moves(g, 2 * n->input_bytes[0]);
    struct storage *together = take_working(g, d->apart ? n->input_bytes[0] : 0);
    for (int i = 0; i < NODE_INPUTS; i++)
        if (n->inputs[i] != NO_NODE)
            out[i].gradient =
                machine_take(g->machine, n->input_bytes[i], i ? MEMORY_GRADIENTS : MEMORY_WORKING);
    for (int i = 1; i < NODE_INPUTS && count; i++)
        parts[i] = take_working(g, count * n->input_bytes[i]);
    for (int i = 1; i < NODE_INPUTS; i++)
        machine_drop(g->machine, parts[i]);
    machine_drop(g->machine, together);
}

const struct operation operation_layer_norm = {KERNELS_LAYER_NORM, layer_norm_backward};

struct var op_layer_norm_apart(struct graph *g, struct var x, struct var weight, struct var bias)
{
    struct var together = graph_output(g, NULL, x.elements, x.width);
    struct var out = op_layer_norm(g, x, weight, bias);
    if (out.node != NO_NODE)
        NODE_DETAIL(&g->nodes[out.node], struct layer_norm)->apart = true;
    var_drop(g, &together);
    return out;
}

struct var op_layer_norm(struct graph *g, struct var x, struct var weight, struct var bias)
{
    struct node *n = graph_add_for(g, &operation_layer_norm, either(either(x, weight), bias));
    uint64_t columns = weight.elements, rows = x.elements / columns;
    graph_keep(g, n, x.storage);
    graph_keep(g, n, weight.storage);
    graph_keep(g, n, bias.storage);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    struct var mean = graph_output(g, NULL, rows, 4), deviation = graph_output(g, NULL, rows, 4);
    graph_keep(g, n, mean.storage);
    graph_keep(g, n, deviation.storage);
    var_drop(g, &mean);
    var_drop(g, &deviation);
    node_input(n, 1, weight);
    node_input(n, 2, bias);
    if (n)
        *NODE_DETAIL(n, struct layer_norm) = (struct layer_norm){rows, columns, false};
    return out;
}
