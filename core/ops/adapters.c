// Linear layers over four-bit weights, and layers with an adapter beside them, as peft 0.21 runs
// them (tuners/lora/layer.py and bnb.py) over bitsandbytes 0.50.
#include "core/base/num.h"
#include "core/ops/operation.h"

// bnb_4bit_compute_dtype, as users write it: bf16.
enum { COMPUTE_WIDTH = 2 };

uint64_t packed_scale_bytes(uint64_t elements)
{
    return 4 * u64_divide_up(elements, PACKED_BLOCK);
}

struct packed_linear {
    uint64_t weight_elements;
    uint64_t outputs;
    uint32_t weight_width; // that it was packed from, and is unpacked to
    bool single;
};

// bitsandbytes/autograd/_functions.py, MatMul4Bit: the scales, then the weight, then in bf16.
static void packed_linear_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct packed_linear *d = NODE_DETAIL(n, struct packed_linear);
    uint64_t elements = d->weight_elements;
    struct storage *scales = d->single ? NULL : take_working(g, packed_scale_bytes(elements));
    struct storage *weight = take_working(g, d->weight_width * elements);
    moves(g, d->weight_width * elements + elements / 2);
    machine_drop(g->machine, scales);
    if (d->weight_width != COMPUTE_WIDTH) {
        struct storage *narrow = take_working(g, COMPUTE_WIDTH * elements);
        moves(g, (d->weight_width + COMPUTE_WIDTH) * elements);
        machine_drop(g->machine, weight);
        weight = narrow;
    }
    uint64_t columns = elements / d->outputs, rows = n->input_bytes[0] / COMPUTE_WIDTH / columns;
    multiplies(g, (struct product_shape){rows, columns, d->outputs, 1, COMPUTE_WIDTH});
    out[0].gradient = take_working(g, n->input_bytes[0]);
    gemm_workspace(g);
    machine_drop(g->machine, weight);
}

static const struct operation packed_linear = {KERNELS_PACKED_LINEAR, packed_linear_backward, true};

// Of a linear layer: its outputs and inputs.
struct weight_shape {
    uint64_t rows, columns;
};

// More than 1536 rows: the scales and the weight are unpacked, then multiplied as any other
// (bitsandbytes/backends/cuda/ops.py; with fewer some cards have a kernel that needs no copy).
// Nothing is kept: the weight is unpacked again in the backward pass.
static struct var packed_product(struct graph *g, struct var x, int parameter,
                                 struct weight_shape shape, int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    uint64_t elements = shape.rows * shape.columns;
    struct node *n = graph_add_for(g, &packed_linear, x);
    struct var scales = {NULL, NO_NODE, 0, 0}, shifted = {NULL, NO_NODE, 0, 0};
    if (!p->single) {
        scales = graph_output(g, NULL, u64_divide_up(elements, PACKED_BLOCK), 4);
        shifted = graph_output(g, NULL, u64_divide_up(elements, PACKED_BLOCK), 4);
    }
    struct var weight = graph_output(g, NULL, elements, COMPUTE_WIDTH);
    uint64_t rows = x.elements / shape.columns;
    struct var out = graph_output(g, n, rows * shape.rows, x.width);
    node_input(n, 0, x);
    node_of_frozen(g, n, parameter);
    moves(g, var_bytes(weight) + elements / 2);
    multiplies(g, (struct product_shape){rows, shape.rows, shape.columns, 1, COMPUTE_WIDTH});
    if (n)
        *NODE_DETAIL(n, struct packed_linear) =
            (struct packed_linear){elements, shape.rows, p->width, p->single};
    if (!g->stopped && bias >= 0)
        fused_bias_workspace(g);
    else if (!g->stopped)
        gemm_workspace(g);
    var_drop(g, &shifted);
    var_drop(g, &scales);
    var_drop(g, &weight);
    return out;
}

// bitsandbytes/nn/modules.py, Linear4bit.forward: a bias is cast for good.
static void narrow_bias(struct graph *g, int bias)
{
    struct parameter *p = bias < 0 ? NULL : &g->parameters[bias];
    if (!p || p->width == COMPUTE_WIDTH || g->stopped)
        return;
    struct storage *cast =
        machine_take(g->machine, p->rows * p->columns * COMPUTE_WIDTH, MEMORY_PARAMETERS);
    machine_drop(g->machine, p->weight);
    p->weight = cast;
    p->width = COMPUTE_WIDTH;
}

// The same: out of the input's type and back into it.
struct var op_packed_linear(struct graph *g, struct var x, int parameter, int bias)
{
    graph_at_module(g, parameter, &operation_linear, MOMENT_FORWARD);
    struct var narrow = op_cast(g, x, COMPUTE_WIDTH);
    narrow_bias(g, bias);
    const struct parameter *p = &g->parameters[parameter];
    struct weight_shape whole = {p->rows, p->columns};
    struct var product = packed_product(g, narrow, parameter, whole, bias);
    struct var out = op_cast(g, product, x.width);
    graph_at_module(g, parameter, &operation_linear, MOMENT_FORWARD_DONE);
    var_drop(g, &product);
    var_drop(g, &narrow);
    return out;
}

struct var packed_part(struct graph *g, struct var x, int parameter, uint64_t columns,
                       uint64_t outputs)
{
    struct var narrow = op_cast(g, x, COMPUTE_WIDTH);
    struct weight_shape part = {outputs, columns};
    struct var product = packed_product(g, narrow, parameter, part, -1);
    struct var out = op_cast(g, product, x.width);
    var_drop(g, &product);
    var_drop(g, &narrow);
    return out;
}

static struct var factor(struct graph *g, struct var x, int parameter)
{
    graph_at_adapter(g, parameter, false);
    struct var out = op_linear(g, x, parameter, -1);
    graph_at_adapter(g, parameter, true);
    return out;
}

// lora_B(lora_A(dropout(x))) * scaling. What was made as wide as the adapter at rest autocast makes
// as narrow as it is when gathered.
static struct var thin_product(struct graph *g, struct var x, int adapter)
{
    struct var in = op_cast(g, x, g->adapter_rest ? g->parameters[adapter].width : x.width);
    if (g->adapters_drop) {
        struct var kept = op_dropout(g, in);
        var_drop(g, &in);
        in = kept;
    }
    struct var low = factor(g, in, adapter);
    var_drop(g, &in);
    struct var high = factor(g, low, adapter + 1);
    var_drop(g, &low);
    struct var out = op_scale(g, high);
    var_drop(g, &high);
    return out;
}

// peft clones what bitsandbytes returns.
static struct var packed_dora(struct graph *g, struct var x, struct var result, int parameter,
                              int bias)
{
    int adapter = g->parameters[parameter].adapter;
    struct var copy = op_copy(g, result);
    var_drop(g, &result);
    struct var in = op_cast(g, x, g->autocast ? x.width : g->parameters[adapter].width);
    struct var sum = op_dora(g, in, copy, parameter, bias);
    struct var out = op_cast(g, sum, g->autocast ? sum.width : result.width);
    var_drop(g, &sum);
    var_drop(g, &in);
    return out;
}

static struct var packed_adapter(struct graph *g, struct var x, struct var result, int adapter)
{
    struct var copy = op_copy(g, result);
    var_drop(g, &result);
    struct var delta = thin_product(g, x, adapter);
    struct var sum = op_add(g, copy, delta);
    var_drop(g, &copy);
    var_drop(g, &delta);
    return sum;
}

static struct var plain_adapter(struct graph *g, struct var x, struct var result, int adapter)
{
    struct var delta = thin_product(g, x, adapter);
    struct var sum = op_add(g, result, delta);
    var_drop(g, &delta);
    var_drop(g, &result);
    return sum;
}

struct var op_adapter(struct graph *g, struct var x, struct var result, int parameter, int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    int adapter = p->adapter;
    if (p->packed && p->magnitude)
        return packed_dora(g, x, result, parameter, bias);
    if (p->packed)
        return packed_adapter(g, x, result, adapter);
    struct var in = op_cast(g, x, g->adapter_rest ? g->adapter_rest : g->parameters[adapter].width);
    struct var sum = p->magnitude ? op_dora(g, in, result, parameter, bias)
                                  : plain_adapter(g, in, result, adapter);
    struct var out = op_cast(g, sum, result.width);
    var_drop(g, &sum);
    var_drop(g, &in);
    return out;
}
