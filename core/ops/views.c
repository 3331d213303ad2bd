// Parts of tensors, tensors made of others, and other layouts of one.
#include "core/ops/operation.h"

// ------------------------------------------------------------------ parts

struct part {
    uint64_t moved_bytes; // where its gradient is copied
};

// The gradient of the whole is made of zeros and of the part's.
static void slice_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = make_working(g, n->input_bytes[0], 0);
    moves(g, NODE_DETAIL(n, struct part)->moved_bytes);
    slower(g, MOVING_TURNED, NODE_DETAIL(n, struct part)->moved_bytes);
}

static const struct operation slice = {KERNELS_SLICE, slice_backward};

struct var op_slice(struct graph *g, struct var x, uint64_t elements)
{
    struct node *n = graph_add_for(g, &slice, x);
    node_input(n, 0, x);
    struct var part = node_view(g, n, var_share(x));
    part.elements = elements;
    if (n)
        NODE_DETAIL(n, struct part)->moved_bytes = 2 * var_bytes(part);
    return part;
}

struct var op_first_half(struct graph *g, struct var x)
{
    return op_slice(g, x, x.elements / 2);
}

struct var op_second_half(struct graph *g, struct var x)
{
    return op_slice(g, x, x.elements / 2);
}

// Each input gets a view of the gradient.
struct var op_join(struct graph *g, struct var a, struct var b)
{
    struct node *n = graph_add_for(g, &operation_pass, either(a, b));
    struct var out = op_unary(g, n, a, a.elements + b.elements, a.width);
    reads_too(g, b);
    slower(g, MOVING_JOINED, 2 * var_bytes(out));
    node_input(n, 1, b);
    return out;
}

// CopySlices (torch/csrc/autograd/functions/tensor.cpp): the gradient is copied, the part taken out
// of the copy, and zeros put there for what the tensor was before, if that needs a gradient.
static void write_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *whole = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    out[1].gradient = make_working(g, n->input_bytes[1], n->input_bytes[1]);
    if (n->inputs[0] == NO_NODE) {
        machine_drop(g->machine, whole);
        return;
    }
    machine_scratch(g->machine, n->input_bytes[1]);
    out[0].gradient = whole;
}

static const struct operation write_part = {KERNELS_WRITE, write_backward};

struct var op_write(struct graph *g, struct var base, struct var x)
{
    struct node *n = graph_add_for(g, &write_part, either(base, x));
    node_input(n, 1, x);
    moves(g, 2 * var_bytes(x));
    return node_in_place(g, n, base);
}

// ------------------------------------------------------------------ repetition

// The gradients of all copies are summed.
static const struct operation repeat = {KERNELS_CAST, gradient_like_input};

struct var op_expand(struct graph *g, struct var x, uint64_t elements)
{
    struct node *n = graph_add_for(g, &repeat, x);
    node_input(n, 0, x);
    struct var out = node_view(g, n, var_share(x));
    out.elements = elements;
    return out;
}

struct var op_repeat(struct graph *g, struct var x, uint64_t elements)
{
    if (elements == x.elements)
        return var_share(x);
    struct var out = op_unary(g, graph_add_for(g, &repeat, x), x, elements, x.width);
    slower(g, MOVING_TURNED, var_bytes(x) + var_bytes(out));
    return out;
}

// ------------------------------------------------------------------ layout

struct var op_copy(struct graph *g, struct var x)
{
    return op_unary(g, graph_add_for(g, &operation_pass, x), x, x.elements, x.width);
}

static const struct operation relayout = {KERNELS_COPY_LAYOUT, gradient_like_input};

struct var op_relayout(struct graph *g, struct var x)
{
    return node_in_place(g, graph_add_for(g, &relayout, x), x);
}

// It has no kernels; an addition's are there before any.
static void reshape_backward(struct graph *g, struct node *n, struct outcome *out)
{
    operation_pass.backward(g, n, out);
    out[0].view = true;
}

static const struct operation reshape = {KERNELS_ADD, reshape_backward};

struct var op_reshape(struct graph *g, struct var x)
{
    return node_in_place(g, graph_add_for(g, &reshape, x), x);
}

// ------------------------------------------------------------------ units

struct boundary {
    int unit;
    bool is_input; // where the gradient leaves it
};

static void boundary_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct boundary *d = NODE_DETAIL(n, struct boundary);
    if (g->boundary)
        g->boundary(g, d->unit, d->is_input);
    operation_pass.backward(g, n, out);
    out[0].view = n->gradient_is_view;
}

static const struct operation boundary = {KERNELS_BOUNDARY, boundary_backward};

struct var op_boundary(struct graph *g, struct var x, int unit, bool input)
{
    struct node *n = graph_add_for(g, &boundary, x);
    if (n)
        *NODE_DETAIL(n, struct boundary) = (struct boundary){unit, input};
    return node_in_place(g, n, x);
}
