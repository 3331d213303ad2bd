// Matrix products: linear layers as torch and DeepSpeed run them, under autocast too, products of
// two tensors, and the grouped products of experts.
#include "core/ops/operation.h"

// ------------------------------------------------------------------ linear layers

struct linear {
    struct reduction bias; // its gradient's
};

static void input_gradient(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[0] == NO_NODE)
        return;
    out[0].gradient = take_working(g, n->input_bytes[0]);
    out[0].view = true;
    gemm_workspace(g);
}

static void weight_gradient(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[1] == NO_NODE)
        return;
    out[1].gradient = machine_take(g->machine, n->input_bytes[1], MEMORY_GRADIENTS);
    out[1].view = true; // transposed
    gemm_workspace(g);
}

// MmBackward0 begins with the weight, AddmmBackward0, which has a bias, with the input.
static void torch_backward(struct graph *g, struct node *n, struct outcome *out)
{
    bool biased = n->inputs[2] != NO_NODE;
    if (biased)
        input_gradient(g, n, out);
    weight_gradient(g, n, out);
    if (!biased)
        input_gradient(g, n, out);
}

// DeepSpeed's linear layer (deepspeed/runtime/zero/linear.py): the input's gradient first, neither
// transposed.
static void zero_backward(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[0] != NO_NODE)
        out[0].gradient = take_working(g, n->input_bytes[0]);
    gemm_workspace(g);
    if (n->inputs[1] != NO_NODE)
        out[1].gradient = machine_take(g->machine, n->input_bytes[1], MEMORY_GRADIENTS);
}

static void linear_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct linear *d = NODE_DETAIL(n, struct linear);
    int products = (n->inputs[0] != NO_NODE) + (n->inputs[1] != NO_NODE);
    (g->module ? zero_backward : torch_backward)(g, n, out);
    if (n->inputs[2] != NO_NODE) {
        out[2].gradient = machine_take(g->machine, n->input_bytes[2], MEMORY_GRADIENTS);
        reduction_scratch(g, &d->bias);
    }
    g->machine->flops += 2 * (uint64_t)products * d->bias.outputs * d->bias.inputs_per_output;
}

const struct operation operation_linear = {KERNELS_LINEAR, linear_backward};

static struct var linear_on(struct graph *g, struct var x, struct var weight, int parameter,
                            int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    uint64_t rows = x.elements / p->columns;
    struct node *n =
        p->frozen ? graph_add_for(g, &operation_linear, x) : graph_add(g, &operation_linear);
    struct var out = {0};
    if (g->module) // keeps its inputs after it has run
        out = graph_output(g, n, rows * p->rows, x.width);
    if (!p->frozen || g->module)
        graph_keep(g, n, x.storage);
    if (x.node != NO_NODE)
        graph_keep(g, n, weight.storage);
    if (!g->module)
        out = graph_output(g, n, rows * p->rows, x.width);
    node_input(n, 0, x);
    node_input(n, 1, weight);
    if (bias >= 0)
        node_input(n, 2, (struct var){NULL, gradient_of(g, bias), x.width, p->rows});
    if (n)
        NODE_DETAIL(n, struct linear)->bias = (struct reduction){p->rows, rows};
    node_of_frozen(g, n, parameter);
    if (!g->stopped && bias >= 0 && !g->module)
        fused_bias_workspace(g);
    else if (!g->stopped)
        gemm_workspace(g);
    count_work(g, 2 * rows * p->rows * p->columns, var_bytes(x) + var_bytes(out));
    return out;
}

// A weight in bf16 under autocast: a node of its own, cached until the context ends. One that is
// frozen is cast for each use (ATen/autocast_mode.cpp caches what requires a gradient).
static const struct operation cast_of_weight = {KERNELS_CAST, gradient_like_input};

static struct var cast_weight(struct graph *g, int parameter)
{
    struct parameter *p = &g->parameters[parameter];
    struct node *n = p->frozen ? NULL : graph_add(g, &cast_of_weight);
    struct var out = op_parameter(g, parameter);
    node_input(n, 0, out);
    out = node_view(g, n, out);
    out.width = 2;
    if (p->cast && !g->stopped)
        out.storage = storage_share(p->cast);
    else if (!g->stopped)
        out.storage = machine_take(g->machine, var_bytes(out), MEMORY_PARAMETERS);
    if (g->stopped || p->frozen || p->cast)
        return out;
    p->cast = out.storage;
    graph_hold_cast(g, storage_share(out.storage));
    return out;
}

static struct var plain_linear(struct graph *g, struct var x, int parameter, int bias)
{
    struct var weight = op_parameter(g, parameter);
    weight.width = x.width; // of its gradient
    graph_at_module(g, parameter, &operation_linear, MOMENT_FORWARD);
    // What is recomputed keeps a gathered weight itself, not the parameter it belongs to.
    if (g->module && g->frame)
        weight.storage = g->parameters[parameter].weight;
    struct var out = linear_on(g, x, weight, parameter, bias);
    graph_at_module(g, parameter, &operation_linear, MOMENT_FORWARD_DONE);
    return out;
}

static struct var autocast_linear(struct graph *g, struct var x, int parameter, int bias)
{
    bool is_narrow = g->parameters[parameter].width == 2;
    struct var weight = is_narrow ? op_parameter(g, parameter) : cast_weight(g, parameter);
    struct var narrow = op_cast(g, x, 2);
    struct var out = linear_on(g, narrow, weight, parameter, bias);
    var_drop(g, &narrow);
    var_drop(g, &weight);
    return out;
}

struct var op_linear(struct graph *g, struct var x, int parameter, int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    bool casts = g->autocast && (p->width != 2 || x.width != 2);
    struct var out = p->packed ? op_packed_linear(g, x, parameter, bias)
                     : casts   ? autocast_linear(g, x, parameter, bias)
                               : plain_linear(g, x, parameter, bias);
    return p->adapter && !g->without_adapters ? op_adapter(g, x, out, parameter, bias) : out;
}

struct var op_linear_cast(struct graph *g, struct var x, int parameter, uint32_t width)
{
    struct var wide = op_cast(g, x, width), weight = op_cast(g, op_parameter(g, parameter), width);
    struct var out = linear_on(g, wide, weight, parameter, -1);
    var_drop(g, &wide);
    var_drop(g, &weight);
    return out;
}

// ------------------------------------------------------------------ products of two tensors

struct product {
    uint64_t flops;
};

// BmmBackward0 (derivatives.yaml): each factor's gradient is a product with the other.
static void product_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[1].gradient = take_working(g, n->input_bytes[1]);
    gemm_workspace(g);
    out[0].gradient = take_working(g, n->input_bytes[0]);
    g->machine->flops += 2 * NODE_DETAIL(n, struct product)->flops;
}

static const struct operation product = {KERNELS_PRODUCT, product_backward};

struct var op_product(struct graph *g, struct var a, struct var b, uint64_t elements,
                      uint64_t depth)
{
    struct node *n = graph_add_for(g, &product, either(a, b));
    uint64_t flops = 2 * elements * depth;
    // The second goes first, but where both were recomputed, and are local to the backward.
    graph_keep(g, n, g->frame ? a.storage : b.storage);
    graph_keep(g, n, g->frame ? b.storage : a.storage);
    struct var out = graph_output(g, n, elements, a.width);
    node_input(n, 0, a);
    node_input(n, 1, b);
    if (n)
        NODE_DETAIL(n, struct product)->flops = flops;
    if (!g->stopped)
        gemm_workspace(g);
    count_work(g, flops, var_bytes(a) + var_bytes(b) + var_bytes(out));
    return out;
}

// ------------------------------------------------------------------ grouped products

struct grouped_product {
    uint64_t groups; // that scratch is needed for
    uint64_t flops;
};

static void grouped_product_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct grouped_product *d = NODE_DETAIL(n, struct grouped_product);
    out[1].gradient = machine_take(g->machine, n->input_bytes[1], MEMORY_GRADIENTS);
    out[1].view = true; // transposed
    grouped_scratch(g, d->groups);
    out[0].gradient = take_working(g, n->input_bytes[0]);
    grouped_scratch(g, d->groups);
    g->machine->flops += 2 * d->flops;
}

static const struct operation grouped_product = {KERNELS_GROUPED_PRODUCT, grouped_product_backward};

struct var op_grouped_product(struct graph *g, struct var x, int parameter, uint64_t columns,
                              struct var offsets)
{
    const struct parameter *p = &g->parameters[parameter];
    uint64_t rows = x.elements / columns, flops = 2 * rows * p->columns;
    uint64_t groups = x.width == 2 ? p->rows : 0; // in fp32 one by one, without scratch
    struct node *n = graph_add(g, &grouped_product);
    graph_keep(g, n, x.storage);
    graph_keep(g, n, NULL); // the weight
    graph_keep(g, n, offsets.storage);
    struct var out = op_unary(g, n, x, rows * (p->columns / columns), x.width);
    node_parameter(g, n, 1, parameter);
    if (n)
        *NODE_DETAIL(n, struct grouped_product) = (struct grouped_product){groups, flops};
    if (g->stopped)
        return out;
    grouped_scratch(g, groups);
    g->machine->flops += flops;
    return out;
}
