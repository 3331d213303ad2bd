// DoRA, as peft 0.21 runs it (tuners/lora/dora.py, DoraLinearLayer.forward, and variants.py):
// beside the product of two thin matrices a magnitude for each output, divided by the norm of the
// weight with its change. That change is made whole in every forward pass, by the adapter's own
// layers over a unit matrix; norm and change have no part in the backward pass, but what the
// function calls its own is there until it returns, and with the change what it was made from, if
// that is for a backward pass. Dropout is 0, so that the base's result is used
// again. The order is that of peft 0.21 over torch 2.11 on a CPU, seen operator by operator.
#include "core/ops/operation.h"

// What the function has names for.
struct whole {
    struct var unit, low, change; // the unit matrix and what is made of it
    struct var weight;            // in the input's type, where that is another
    struct var norm;              // a value for each output
};

static struct var plain(struct graph *g, uint64_t elements, uint32_t width)
{
    return op_constant(g, elements, width);
}

static void replace(struct graph *g, struct var *v, uint64_t elements, uint32_t width)
{
    struct var next = plain(g, elements, width);
    var_drop(g, v);
    *v = next;
}

// get_lora_weight: lora_B(lora_A(eye)), under autocast of the unit matrix in bf16.
static void make_change(struct graph *g, struct whole *w, const struct parameter *p, uint32_t width)
{
    const struct parameter *thin = &g->parameters[p->adapter];
    uint32_t computes = g->autocast ? 2 : thin->width;
    struct var unit = plain(g, p->columns * p->columns, thin->width);
    bool casts = computes != thin->width;
    graph_at_module(g, p->adapter, &operation_linear, MOMENT_FORWARD);
    w->unit = casts ? plain(g, p->columns * p->columns, computes) : var_share(unit);
    w->low = plain(g, p->columns * thin->rows, computes);
    graph_at_module(g, p->adapter, &operation_linear, MOMENT_FORWARD_DONE);
    graph_at_module(g, p->adapter + 1, &operation_linear, MOMENT_FORWARD);
    w->change = plain(g, p->rows * p->columns, computes);
    graph_at_module(g, p->adapter + 1, &operation_linear, MOMENT_FORWARD_DONE);
    var_drop(g, &unit);
    if (!g->recording || !g->keeping) { // no graph holds what they were made from
        var_drop(g, &w->low);
        var_drop(g, &w->unit);
    }
    if (computes != width)
        replace(g, &w->change, p->rows * p->columns, width);
    multiplies(g, (struct product_shape){p->columns, thin->rows, p->columns, 1, computes});
    multiplies(g, (struct product_shape){p->columns, p->rows, thin->rows, 1, computes});
}

// dequantize_module_weight, then to(x.dtype).
static void make_weight(struct graph *g, struct whole *w, const struct parameter *p, uint32_t width)
{
    uint64_t elements = p->rows * p->columns;
    if (p->packed && p->single)
        w->weight = plain(g, elements, p->width);
    else if (p->packed) {
        struct var scales = plain(g, packed_scale_bytes(elements) / 4, 4);
        w->weight = plain(g, elements, p->width);
        var_drop(g, &scales);
    }
    if (p->width != width)
        replace(g, &w->weight, elements, width);
}

// get_weight_norm
static void make_norm(struct graph *g, struct whole *w, const struct parameter *p, uint32_t width)
{
    struct var scaled = plain(g, p->rows * p->columns, width);
    struct var sum = plain(g, p->rows * p->columns, width);
    var_drop(g, &scaled);
    w->norm = plain(g, p->rows, width);
    var_drop(g, &sum);
}

static void drop_whole(struct graph *g, struct whole *w)
{
    struct var *const all[] = {&w->change, &w->low, &w->unit, &w->weight, &w->norm};
    for (ptrdiff_t i = 0; i < COUNT_OF(all); i++)
        var_drop(g, all[i]);
}

// (scale - 1) * base + scale * lora_B(lora_A(x)) * scaling
static struct var scaled_parts(struct graph *g, struct var base, struct var thin, struct var scale)
{
    struct var less = op_add_constant(g, scale);
    struct var first = op_multiply_row(g, base, less);
    var_drop(g, &less);
    struct var second = op_multiply_row(g, thin, scale);
    struct var product = op_scale(g, second);
    var_drop(g, &second);
    struct var sum = op_add(g, first, product);
    var_drop(g, &first);
    var_drop(g, &product);
    return sum;
}

// The layer's backward pass begins at what it gives.
static struct var at_its_end(struct graph *g, struct var x, int magnitude)
{
    struct node *n = graph_add_for(g, &operation_pass, x);
    if (n)
        n->frozen_module = magnitude + 1;
    return node_in_place(g, n, x);
}

struct var op_dora(struct graph *g, struct var x, struct var result, int parameter, int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    struct whole w = {0};
    graph_at_module(g, p->magnitude, &operation_multiply_weight, MOMENT_FORWARD);
    make_change(g, &w, p, x.width);
    graph_at_module(g, parameter, &operation_linear, MOMENT_READ);
    make_weight(g, &w, p, x.width);
    make_norm(g, &w, p, x.width);
    struct var scale = op_scale(g, op_parameter(g, p->magnitude)); // divided by the norm
    struct var low = op_linear(g, x, p->adapter, -1);
    struct var thin = op_linear(g, low, p->adapter + 1, -1);
    var_drop(g, &low);
    struct var base = bias < 0 ? var_share(result) : op_add_constant(g, result);
    struct var more = scaled_parts(g, base, thin, scale);
    if (g->module)
        more = at_its_end(g, more, p->magnitude);
    drop_whole(g, &w);
    graph_at_module(g, p->magnitude, &operation_multiply_weight, MOMENT_FORWARD_DONE);
    var_drop(g, &scale);
    var_drop(g, &thin);
    var_drop(g, &base);
    struct var out = op_add(g, result, more);
    var_drop(g, &more);
    var_drop(g, &result);
    return out;
}
