// The norms that are not a root mean square. A norm's bias, where it has one, is the parameter
// behind its weight.
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
    const struct trainer *t = g->owner;
    struct var input = cast(g, x, g->autocast ? 4 : x.width);
    struct var bias = {NULL, NO_NODE, x.width, 0};
    if (!model_has(&t->job->model, FEATURE_NORM_UNBIASED))
        bias = op_parameter(g, weight + 1);
    return layer_norm(g, input, op_parameter(g, weight), bias);
}

struct var other_norm(struct graph *g, struct var x, int weight)
{
    const struct trainer *t = g->owner;
    const struct model *m = &t->job->model;
    if (model_has(m, FEATURE_NORM_CENTERED))
        return centered_norm(g, x, weight);
    return (model_has(m, FEATURE_NORM_PLUS_ONE) ? norm_plus_one : plain_norm)(g, x, weight);
}
