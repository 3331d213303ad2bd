// Matrix products: linear layers as torch and DeepSpeed run them, under autocast too, products of
// two tensors, and the grouped products of experts.
#include "core/base/num.h"
#include "core/ops/operation.h"

// ------------------------------------------------------------------ linear layers

struct linear {
    struct reduction bias; // its gradient's: outputs, and rows that are summed
    uint32_t columns;      // of the input
    uint16_t width;
    bool flat; // which is a matrix: nothing has to be reshaped
};

static struct product_shape for_input(const struct linear *d)
{
    return (struct product_shape){d->bias.inputs_per_output, d->columns, d->bias.outputs, 1,
                                  d->width};
}

static struct product_shape for_weight(const struct linear *d)
{
    return (struct product_shape){d->bias.outputs, d->columns, d->bias.inputs_per_output, 1,
                                  d->width};
}

static void input_gradient(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[0] == NO_NODE)
        return;
    out[0].gradient = take_working(g, n->input_bytes[0]);
    out[0].view = !NODE_DETAIL(n, struct linear)->flat;
    gemm_workspace(g);
    multiplies(g, for_input(NODE_DETAIL(n, struct linear)));
}

static void weight_gradient(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[1] == NO_NODE)
        return;
    out[1].gradient = machine_take(g->machine, n->input_bytes[1], MEMORY_GRADIENTS);
    out[1].view = true; // transposed
    gemm_workspace(g);
    multiplies(g, for_weight(NODE_DETAIL(n, struct linear)));
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
    const struct linear *d = NODE_DETAIL(n, struct linear);
    if (n->inputs[0] != NO_NODE) {
        out[0].gradient = take_working(g, n->input_bytes[0]);
        multiplies(g, for_input(d));
    }
    gemm_workspace(g);
    if (n->inputs[1] != NO_NODE) {
        out[1].gradient = machine_take(g->machine, n->input_bytes[1], MEMORY_GRADIENTS);
        multiplies(g, for_weight(d));
    }
}

static void linear_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct linear *d = NODE_DETAIL(n, struct linear);
    (g->module ? zero_backward : torch_backward)(g, n, out);
    if (n->inputs[2] != NO_NODE) {
        if (!g->module) // AddmmBackward0 has returned: its bias is summed in validate_outputs
            graph_forget_recomputed(g, n);
        out[2].gradient = machine_take(g->machine, n->input_bytes[2], MEMORY_GRADIENTS);
        reduction_scratch(g, &d->bias);
        machine_move(g->machine, gradient_bytes(n));
    }
}

const struct operation operation_linear = {KERNELS_LINEAR, linear_backward, true};

struct kept_factors {
    bool input, weight, is_own; // the parameter itself
};

// MmBackward0 keeps its second matrix first, a weight turned round.
static void keep_offloaded(struct graph *g, struct node *n, struct var x, struct var weight,
                           struct kept_factors kept)
{
    bool stays = kept.is_own && g->offload.knows_weights;
    struct storage *turned = NULL;
    if (kept.weight)
        turned = graph_packed(g, weight.storage, stays ? LAID_AS_WEIGHT : LAID_AS_VIEW);
    if (kept.input)
        graph_keep_packed(n, graph_packed(g, x.storage, LAID_OUT));
    if (kept.weight)
        graph_keep_packed(n, turned);
}

static void keep_factors(struct graph *g, struct node *n, struct var x, struct var weight,
                         struct kept_factors kept)
{
    if (n && graph_offloads(g)) {
        keep_offloaded(g, n, x, weight, kept);
        return;
    }
    if (kept.input)
        graph_keep(g, n, x.storage);
    if (kept.weight)
        graph_keep(g, n, weight.storage);
}

static struct var linear_on(struct graph *g, struct var x, struct var weight, int parameter,
                            int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    uint64_t rows = x.elements / p->columns;
    bool trains = !p->frozen || weight.node != NO_NODE;
    struct node *n =
        trains ? graph_add(g, &operation_linear) : graph_add_for(g, &operation_linear, x);
    struct var out = {0};
    if (g->module) // keeps its inputs after it has run
        out = graph_output(g, n, rows * p->rows, x.width);
    keep_factors(
        g, n, x, weight,
        (struct kept_factors){trains || g->module, x.node != NO_NODE, weight.storage == p->weight});
    if (!g->module)
        out = graph_output(g, n, rows * p->rows, x.width);
    node_input(n, 0, x);
    node_input(n, 1, weight);
    if (bias >= 0)
        node_input(n, 2, (struct var){NULL, gradient_of(g, bias), x.width, p->rows});
    if (n)
        *NODE_DETAIL(n, struct linear) =
            (struct linear){{p->rows, rows}, (uint32_t)p->columns, (uint16_t)x.width, g->flat};
    node_of_frozen(g, n, parameter);
    bool by_cublas = !g->stopped && !g->convolves;
    if (by_cublas && bias >= 0 && !g->module)
        fused_bias_workspace(g);
    else if (by_cublas)
        gemm_workspace(g);
    multiplies(g, (struct product_shape){rows, p->rows, p->columns, 1, x.width});
    return out;
}

// A weight in bf16 under autocast: a node of its own, cached until the context ends. One that is
// frozen is cast for each use (ATen/autocast_mode.cpp caches what requires a gradient).
static const struct operation cast_of_weight = {KERNELS_CAST, gradient_like_input};

struct var cast_weight(struct graph *g, int parameter)
{
    struct parameter *p = &g->parameters[parameter];
    // of those that are cut a DTensor's local tensor
    bool passes = p->frozen || p->is_view || (p->cut && !g->recording);
    struct node *n = p->frozen ? NULL : graph_add(g, &cast_of_weight);
    struct var out = op_parameter(g, parameter);
    node_input(n, 0, out);
    out = node_view(g, n, out);
    out.width = 2;
    if (p->cast && !g->stopped)
        out.storage = storage_share(p->cast);
    else if (!g->stopped)
        out.storage = machine_take(g->machine, var_bytes(out), MEMORY_PARAMETERS);
    if (out.storage)
        out.storage->width = 2;
    if (!p->cast)
        moves(g, out.elements * p->width + var_bytes(out));
    if (g->stopped || passes || p->cast)
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
    // What is recomputed keeps a gathered weight itself, not the parameter it belongs to, but for a
    // frozen one (torch/utils/checkpoint.py, _recomputation_hook: what asks for a gradient is
    // detached).
    if (g->module && g->frame && !g->parameters[parameter].frozen)
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

static struct var uncut_linear(struct graph *g, struct var x, int parameter, int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    if (p->packed)
        return op_packed_linear(g, x, parameter, bias);
    bool casts = g->autocast && (p->width != 2 || x.width != 2);
    return (casts ? autocast_linear : plain_linear)(g, x, parameter, bias);
}

static struct var base_linear(struct graph *g, struct var x, int parameter, int bias)
{
    enum tensor_cut cut = g->parameters[parameter].cut;
    if (cut == CUT_NONE)
        return uncut_linear(g, x, parameter, bias);
    if (!g->stopped && g->recording)
        machine_host(g->machine, machine_rates(g->machine)->cut_call);
    if (cut == CUT_INPUTS)
        return op_summed(g, uncut_linear(g, x, parameter, bias));
    struct var in = op_shared(g, x), out = uncut_linear(g, in, parameter, bias);
    var_drop(g, &in);
    return cut == CUT_WORDS ? op_side_by_side(g, out) : out;
}

// DeepSpeed has a node at the input of each module (runtime/zero/parameter_offload.py,
// PostBackwardFunctionModule): gradients of a weight's input and its adapter's meet there first.
static struct var module_input(struct graph *g, struct var x)
{
    if (!g->module)
        return var_share(x);
    struct node *n = graph_add_for(g, &operation_pass, x);
    node_input(n, 0, x);
    return node_view(g, n, var_share(x));
}

// What autocast casts is no parameter: for each use.
static struct var folded_linear(struct graph *g, struct var x, int parameter)
{
    struct var whole = op_weight(g, parameter);
    struct var weight = op_cast(g, whole, g->autocast ? 2 : whole.width);
    struct var in = op_cast(g, x, weight.width);
    struct var out = linear_on(g, in, weight, parameter, -1);
    var_drop(g, &in);
    var_drop(g, &weight);
    var_drop(g, &whole);
    return out;
}

struct var op_linear(struct graph *g, struct var x, int parameter, int bias)
{
    if (g->parameters[parameter].folded)
        return folded_linear(g, x, parameter);
    if (!g->parameters[parameter].adapter || g->without_adapters)
        return base_linear(g, x, parameter, bias);
    struct var in = module_input(g, x);
    struct var out = op_adapter(g, in, base_linear(g, in, parameter, bias), parameter, bias);
    var_drop(g, &in);
    return out;
}

struct var op_linear_cast(struct graph *g, struct var x, int parameter, uint32_t width)
{
    graph_at_module(g, parameter, &operation_linear, MOMENT_FORWARD);
    struct var wide = op_cast(g, x, width), whole = op_weight(g, parameter);
    struct var weight = op_cast(g, whole, width);
    struct var out = linear_on(g, wide, weight, parameter, -1);
    var_drop(g, &wide);
    var_drop(g, &weight);
    var_drop(g, &whole);
    graph_at_module(g, parameter, &operation_linear, MOMENT_FORWARD_DONE);
    return out;
}

// ------------------------------------------------------------------ products of two tensors

struct product {
    uint32_t rows, columns, depth, count, width;
};

// BmmBackward0 (derivatives.yaml): each factor's gradient is a product with the other.
static void product_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct product *d = NODE_DETAIL(n, struct product);
    gemm_workspace(g);
    if (n->inputs[1] != NO_NODE) {
        out[1].gradient = take_working(g, n->input_bytes[1]);
        multiplies(g, (struct product_shape){d->depth, d->columns, d->rows, d->count, d->width});
    }
    if (n->inputs[0] != NO_NODE) {
        out[0].gradient = take_working(g, n->input_bytes[0]);
        multiplies(g, (struct product_shape){d->rows, d->depth, d->columns, d->count, d->width});
    }
}

static const struct operation product = {KERNELS_PRODUCT, product_backward};

struct var op_product(struct graph *g, struct var a, struct var b, uint64_t elements,
                      uint64_t depth)
{
    struct node *n = graph_add_for(g, &product, either(a, b));
    uint64_t rows = a.elements / depth, columns = b.elements / depth; // of all products
    uint64_t count = u64_divide_up(rows * columns, elements);
    // A factor is kept for the other's gradient. The second goes first, but where both were
    // recomputed, and are local to the backward.
    struct storage *for_a = a.node != NO_NODE ? b.storage : NULL;
    struct storage *for_b = b.node != NO_NODE ? a.storage : NULL;
    graph_keep(g, n, g->frame ? for_b : for_a);
    graph_keep(g, n, g->frame ? for_a : for_b);
    struct var out = graph_output(g, n, elements, a.width);
    node_input(n, 0, a);
    node_input(n, 1, b);
    if (n)
        *NODE_DETAIL(n, struct product) =
            (struct product){(uint32_t)(rows / count), (uint32_t)(columns / count), (uint32_t)depth,
                             (uint32_t)count, a.width};
    if (!g->stopped)
        gemm_workspace(g);
    multiplies(g, (struct product_shape){rows / count, columns / count, depth, count, a.width});
    return out;
}

// ------------------------------------------------------------------ grouped products

struct grouped_product {
    uint32_t groups, with_scratch; // experts; that scratch is needed for
    uint32_t rows, columns, outputs, width;
};

// Rows are as many for each expert: in bf16 one kernel has all of them.
static struct product_shape for_experts(const struct grouped_product *d, struct product_shape one)
{
    bool together = d->width == 2;
    one.width = d->width;
    one.grouped = together;
    one.count = together ? d->groups : 1;
    one.more = together ? 0 : d->groups - 1;
    return one;
}

static uint64_t rows_of_one(const struct grouped_product *d)
{
    return u64_divide_up(d->rows, d->groups);
}

static void grouped_product_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct grouped_product *d = NODE_DETAIL(n, struct grouped_product);
    if (n->inputs[1] != NO_NODE) {
        out[1].gradient = machine_take(g->machine, n->input_bytes[1], MEMORY_GRADIENTS);
        out[1].view = true; // transposed
        grouped_scratch(g, d->with_scratch);
        multiplies(g,
                   for_experts(d, (struct product_shape){d->outputs, d->columns, rows_of_one(d)}));
    }
    out[0].gradient = take_working(g, n->input_bytes[0]);
    grouped_scratch(g, d->with_scratch);
    multiplies(g, for_experts(d, (struct product_shape){rows_of_one(d), d->columns, d->outputs}));
}

static const struct operation grouped_product = {KERNELS_GROUPED_PRODUCT, grouped_product_backward};

struct var op_grouped_product(struct graph *g, struct var x, int parameter, uint64_t columns,
                              struct var offsets)
{
    const struct parameter *p = &g->parameters[parameter];
    uint64_t rows = x.elements / columns, outputs = p->columns / columns;
    const struct grouped_product d = {
        (uint32_t)p->rows, x.width == 2 ? (uint32_t)p->rows : 0, // in fp32 one by one
        (uint32_t)rows,    (uint32_t)columns,
        (uint32_t)outputs, x.width};
    struct var weight = op_weight(g, parameter);
    bool trains = !p->frozen || weight.node != NO_NODE;
    struct node *n =
        trains ? graph_add(g, &grouped_product) : graph_add_for(g, &grouped_product, x);
    if (trains)
        graph_keep(g, n, x.storage);
    graph_keep(g, n, weight.storage);
    graph_keep(g, n, offsets.storage);
    struct var out = graph_output(g, n, rows * outputs, x.width);
    node_input(n, 0, x);
    node_input(n, 1, weight);
    var_drop(g, &weight);
    if (n)
        *NODE_DETAIL(n, struct grouped_product) = d;
    if (g->stopped)
        return out;
    grouped_scratch(g, d.with_scratch);
    multiplies(g, for_experts(&d, (struct product_shape){rows_of_one(&d), outputs, columns}));
    return out;
}
