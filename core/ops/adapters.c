// Linear layers over four-bit weights, and layers with an adapter beside them, as peft 0.21 runs
// them (tuners/lora/layer.py and bnb.py) over bitsandbytes 0.50.
#include "core/base/num.h"
#include "core/ops/operation.h"

uint64_t packed_scale_bytes(uint64_t elements)
{
    return 4 * u64_divide_up(elements, PACKED_BLOCK);
}

struct packed_linear {
    uint64_t weight_elements;
};

// bitsandbytes/autograd/_functions.py, MatMul4Bit: the scales, then the weight in bf16.
static void packed_linear_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t elements = NODE_DETAIL(n, struct packed_linear)->weight_elements;
    struct storage *scales = take_working(g, packed_scale_bytes(elements));
    struct storage *weight = take_working(g, 2 * elements);
    machine_drop(g->machine, scales);
    out[0].gradient = take_working(g, n->input_bytes[0]);
    gemm_workspace(g);
    machine_drop(g->machine, weight);
}

static const struct operation packed_linear = {KERNELS_PACKED_LINEAR, packed_linear_backward};

// More than 1536 rows: the scales and the weight are unpacked, then multiplied as any other
// (bitsandbytes/backends/cuda/ops.py; with fewer some cards have a kernel that needs no copy).
// Nothing is kept: the weight is unpacked again in the backward pass.
struct var op_packed_linear(struct graph *g, struct var x, int parameter, int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    uint64_t elements = p->rows * p->columns;
    struct node *n = graph_add_for(g, &packed_linear, x);
    struct var scales = graph_output(g, NULL, u64_divide_up(elements, PACKED_BLOCK), 4);
    struct var shifted = graph_output(g, NULL, u64_divide_up(elements, PACKED_BLOCK), 4);
    struct var weight = graph_output(g, NULL, elements, 2);
    struct var out = op_unary(g, n, x, x.elements / p->columns * p->rows, x.width);
    if (n)
        NODE_DETAIL(n, struct packed_linear)->weight_elements = elements;
    if (!g->stopped && bias >= 0)
        fused_bias_workspace(g);
    else if (!g->stopped)
        gemm_workspace(g);
    var_drop(g, &shifted);
    var_drop(g, &scales);
    var_drop(g, &weight);
    return out;
}

// lora_B(lora_A(x)) * scaling
static struct var thin_product(struct graph *g, struct var x, int adapter)
{
    struct var low = op_linear(g, x, adapter, -1);
    struct var high = op_linear(g, low, adapter + 1, -1);
    var_drop(g, &low);
    struct var out = op_scale(g, high);
    var_drop(g, &high);
    return out;
}

// peft clones what bitsandbytes returns.
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

struct var op_adapter(struct graph *g, struct var x, struct var result, int parameter)
{
    int adapter = g->parameters[parameter].adapter;
    if (g->parameters[parameter].packed)
        return packed_adapter(g, x, result, adapter);
    struct var in = op_cast(g, x, g->parameters[adapter].width);
    struct var delta = thin_product(g, in, adapter);
    struct var sum = op_add(g, result, delta);
    var_drop(g, &delta);
    var_drop(g, &result);
    struct var out = op_cast(g, sum, result.width);
    var_drop(g, &sum);
    var_drop(g, &in);
    return out;
}
