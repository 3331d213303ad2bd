// The norms: by the root mean square, and the others. A norm's bias, where it has one, is the
// parameter behind its weight.
#include "core/models/forward.h"

// modeling_cohere.py, CohereLayerNorm: written out, in fp32. That of heads has a weight for each
// value of each head.
static struct var centered_norm(struct graph *g, struct var x, int weight)
{
    const struct parameter *p = &g->parameters[weight];
    uint64_t rows = x.elements / (p->columns > 1 ? p->columns : p->rows);
    struct scope f = scope_in(g);
    struct var hidden = local(&f, cast(g, x, 4));
    struct var middle = local(&f, mean(g, hidden, rows));
    struct var variance = local(&f, mean(g, power(g, subtract(g, hidden, middle)), rows));
    struct var apart = subtract(g, hidden, middle);
    assign(&f, &hidden, multiply(g, apart, rsqrt(g, add_constant(g, variance))));
    assign(&f, &hidden, multiply_wide_weight(g, weight, hidden));
    return returns(&f, cast(g, hidden, x.width));
}

// modeling_nemotron.py, NemotronLayerNorm1P: under autocast in bf16.
static struct var norm_plus_one(struct graph *g, struct var x, int weight)
{
    uint32_t width = g->autocast ? 2 : x.width;
    struct scope f = scope_in(g);
    struct var more = add_constant(g, op_parameter(g, weight));
    struct var input = local(&f, cast(g, x, width));
    struct var scale = local(&f, cast(g, more, width));
    struct var bias = local(&f, cast(g, op_parameter(g, weight + 1), width));
    return returns(&f, layer_norm(g, input, scale, bias));
}

// Autocast runs torch's in fp32.
static struct var plain_norm(struct graph *g, struct var x, int weight)
{
    struct var input = cast(g, x, g->autocast ? 4 : x.width);
    struct var bias = {NULL, NO_NODE, x.width, 0};
    if (!model_has(model_of(g), FEATURE_NORM_UNBIASED))
        bias = op_parameter(g, weight + 1);
    return layer_norm(g, input, op_parameter(g, weight), bias);
}

// Those that are not a root mean square.
static struct var other_norm(struct graph *g, struct var x, int weight)
{
    const struct model *m = model_of(g);
    if (model_has(m, FEATURE_NORM_CENTERED))
        return centered_norm(g, x, weight);
    return (model_has(m, FEATURE_NORM_PLUS_ONE) ? norm_plus_one : plain_norm)(g, x, weight);
}

static struct var norm_forward(struct graph *g, struct var x, int weight)
{
    const struct model *m = model_of(g);
    struct scope f = scope_in(g);
    struct var hidden = local(&f, cast(g, x, 4));
    uint64_t rows = x.elements / g->parameters[weight].rows;
    struct var variance = local(&f, mean(g, power(g, hidden), rows));
    assign(&f, &hidden, multiply(g, hidden, rsqrt(g, add_constant(g, variance))));
    if (model_has(m, FEATURE_NORM_FROM_ONE)) { // Gemma's, all in fp32
        forget(&f, &variance);
        struct var wide = cast(g, op_parameter(g, weight), 4);
        assign(&f, &hidden, multiply_row(g, hidden, add_constant(g, wide)));
        return returns(&f, cast(g, hidden, x.width));
    }
    if (model_has(m, FEATURE_NORM_WIDE)) // the product, not its factor, is cast
        return returns(&f, cast(g, multiply_weight(g, weight, hidden), x.width));
    return returns(&f, multiply_weight(g, weight, cast(g, hidden, x.width)));
}

// monkey_patch.py, _patch_rms_norm_module_for_gemma2: in_place=False; Gemma's is.
static struct var liger_norm(struct graph *g, struct var x, int weight)
{
    const struct trainer *t = g->owner;
    bool apart = model_has(&t->job->model, FEATURE_ATTENTION_CAP);
    return unnamed(op_liger_norm(g, x, weight, apart));
}

struct var rms_norm(struct graph *g, struct var x, int weight)
{
    bool other =
        model_has(model_of(g), FEATURE_NORM_CENTERED | FEATURE_LAYER_NORM | FEATURE_NORM_UNBIASED);
    graph_at_module(g, weight, &operation_multiply_weight, MOMENT_FORWARD);
    struct var out = runs_liger_layers(g) ? liger_norm(g, x, weight)
                     : other              ? other_norm(g, borrowed(x), weight)
                                          : norm_forward(g, borrowed(x), weight);
    graph_at_module(g, weight, &operation_multiply_weight, MOMENT_FORWARD_DONE);
    return after(g, out, x);
}

// The norms before and behind attention and MLP, where a family has them.
struct var norm_if_any(struct graph *g, struct var x, int norm)
{
    return norm < 0 ? same(x) : rms_norm(g, x, norm);
}
