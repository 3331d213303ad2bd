// What models with vision compute beyond the others: sums over images, means of patches, lists of
// tensors made one, and rows that a mask puts into a tensor.
#include "core/ops/operation.h"

// ------------------------------------------------------------------ sums and means

// The same row of tensors for each of several: its gradient is summed over them.
static void add_row_backward(struct graph *g, struct node *n, struct outcome *out)
{
    operation_pass.backward(g, n, out);
    if (n->input_bytes[1] != n->input_bytes[0])
        out[1].reduced_bytes = n->input_bytes[1];
}

static const struct operation sum_with_row = {KERNELS_ADD_ROW, add_row_backward};

struct var op_add_row(struct graph *g, struct var x, struct var row)
{
    struct node *n = graph_add_for(g, &sum_with_row, either(x, row));
    struct var out = op_unary(g, n, x, x.elements, x.width);
    node_input(n, 1, row);
    return out;
}

static const struct operation pool = {KERNELS_POOL, gradient_like_input};

struct var op_pool(struct graph *g, struct var x, uint64_t elements)
{
    struct node *n = graph_add_for(g, &pool, x);
    graph_keep(g, n, x.storage);
    return op_unary(g, n, x, elements, x.width);
}

// ------------------------------------------------------------------ a list of tensors

struct var op_join_all(struct graph *g, const struct var *parts, uint64_t count)
{
    uint64_t elements = 0;
    for (uint64_t i = 0; i < count; i++)
        elements += parts[i].elements;
    struct var out = graph_output(g, NULL, elements, parts[0].width);
    for (uint64_t i = 0; i < count; i++) { // each gets a view of the gradient
        struct node *n = graph_add_for(g, &operation_pass, either(out, parts[i]));
        node_input(n, 0, out);
        node_input(n, 1, parts[i]);
        out = node_view(g, n, out);
    }
    moves(g, 2 * var_bytes(out));
    return out;
}

// ------------------------------------------------------------------ rows that a mask fills

// A mask has a value for each row; what nonzero finds in it has a number for each of its
// dimensions: two of rows, three of single values.
enum { ROW_PLACE = 2 * 8, VALUE_PLACE = 3 * 8 };

struct filled {
    uint32_t width;
};

// masked_fill of a copy, then indexing by the mask of all values (FunctionsManual.cpp,
// masked_scatter_backward).
static void fill_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct machine *m = g->machine;
    uint64_t width = NODE_DETAIL(n, struct filled)->width, values = n->input_bytes[1] / width;
    if (n->inputs[0] != NO_NODE)
        out[0].gradient = take_working(g, n->input_bytes[0]);
    if (n->inputs[1] != NO_NODE) {
        struct storage *mask = take_working(g, n->input_bytes[0] / width);
        struct storage *places = take_working(g, values * VALUE_PLACE);
        machine_drop(m, mask);
        out[1].gradient = take_working(g, n->input_bytes[1]);
        machine_drop(m, places);
    }
}

static const struct operation fill = {KERNELS_FILL_ROWS, fill_backward};

// ATen/native/cuda/IndexKernel.cpp, masked_scatter_: a copy to write to, the number of each value
// of the mask, and the mask itself for every value.
struct var op_fill_rows(struct graph *g, struct var x, struct var mask, struct var rows)
{
    struct node *n = graph_add_for(g, &fill, either(x, rows));
    graph_keep(g, n, mask.storage);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    node_input(n, 1, rows);
    if (n)
        NODE_DETAIL(n, struct filled)->width = x.width;
    struct var numbers = graph_output(g, NULL, x.elements, 8);
    struct var each = graph_output(g, NULL, x.elements, 1);
    machine_scratch(g->machine, scan_scratch(x.elements));
    var_drop(g, &each);
    var_drop(g, &numbers);
    return out;
}

struct put {
    uint64_t rows;
};

// IndexPutBackward0 (derivatives.yaml): a copy of the gradient with zeros there, then its rows.
static void put_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct machine *m = g->machine;
    uint64_t places_bytes = NODE_DETAIL(n, struct put)->rows * ROW_PLACE;
    if (n->inputs[0] != NO_NODE) {
        struct storage *zeros = take_working(g, n->input_bytes[1]);
        out[0].gradient = take_working(g, n->input_bytes[0]);
        machine_scratch(m, places_bytes);
        machine_drop(m, zeros);
    }
    if (n->inputs[1] != NO_NODE) {
        struct storage *places = take_working(g, places_bytes);
        out[1].gradient = take_working(g, n->input_bytes[1]);
        machine_drop(m, places);
    }
}

static const struct operation put = {KERNELS_PUT_ROWS, put_backward};

struct var op_put_rows(struct graph *g, struct var x, struct var mask, struct var rows)
{
    struct node *n = graph_add_for(g, &put, either(x, rows));
    uint64_t count = rows.elements / (x.elements / mask.elements);
    graph_keep(g, n, mask.storage);
    node_input(n, 1, rows);
    if (n)
        NODE_DETAIL(n, struct put)->rows = count;
    machine_scratch(g->machine, count * ROW_PLACE);
    return node_in_place(g, n, x);
}
