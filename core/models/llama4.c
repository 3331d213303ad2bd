// What is Llama 4's own, as modeling_llama4.py of transformers 5.17 reads: queries and keys that
// are turned before their heads are told apart and normed without a weight, and experts that all
// see all tokens, each weighed by its score, which for most is zero.
#include "core/models/forward.h"

// x * rsqrt(mean of squares), in fp32.
static struct var l2_norm(struct graph *g, struct var x)
{
    struct scope f = scope_in(g);
    struct var wide = local(&f, cast(g, x, 4));
    const struct model *m = &((const struct trainer *)g->owner)->job->model;
    struct var variance = mean(g, power(g, wide), x.elements / m->head_dim);
    struct var normed = multiply(g, wide, rsqrt(g, add_constant(g, variance)));
    return returns(&f, cast(g, normed, x.width));
}

// Queries of layers without positions are scaled by how far they are in the sequence.
static struct var tempered(struct graph *g, struct var q)
{
    const struct trainer *t = g->owner;
    struct scope f = scope_in(g);
    uint64_t tokens = job_sequence_tokens(t->job);
    local(&f, constant(g, tokens, 8));
    struct var scales = local(&f, constant(g, tokens, 4));
    return returns(&f, cast(g, multiply_constant(g, q, scales), q.width));
}

struct heads llama4_turned(struct graph *g, struct heads h, const struct layer_call *call)
{
    const struct model *m = &call->trainer->job->model;
    if (m->layer[call->layer].unrotated)
        return (struct heads){tempered(g, h.q), same(h.k), h.v};
    struct scope f = scope_in(g);
    struct heads turned = complex_turned(g, h.q, h.k, arguments_of(call->trainer, call->layer));
    turned.q = local(&f, turned.q);
    turned.k = local(&f, turned.k);
    if (model_has(m, FEATURE_L2_NORM)) {
        assign(&f, &turned.q, l2_norm(g, turned.q));
        assign(&f, &turned.k, l2_norm(g, turned.k));
    }
    turned.q = same(turned.q);
    turned.k = same(turned.k);
    ends(&f);
    turned.v = h.v;
    return turned;
}

// Scores of all experts for all tokens: zero but for the chosen ones'.
static struct var scores_of(struct scope *f, struct var x, const struct layer_call *call)
{
    struct graph *g = f->graph;
    const struct model *m = &call->trainer->job->model;
    uint64_t tokens = x.elements / m->hidden;
    struct scope own = scope_in(g);
    struct var logits = local(f, linear(g, x, call->trainer->layers[call->layer].router, -1));
    struct var indices;
    struct var best = local(&own, top(g, logits, tokens * m->experts.per_token, &indices));
    local(&own, indices);
    struct var scores = write_into(g, made_of(g, borrowed(logits)), best);
    scores = local(&own, scores);
    assign(&own, &scores, cast(g, sigmoid(g, cast(g, scores, 4)), x.width));
    return returns(&own, scores);
}

static struct var run_all(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = &call->trainer->job->model;
    uint64_t rows = x.elements / m->hidden, width = m->experts.intermediate;
    struct scope f = scope_in(g);
    struct var both =
        local(&f, product(g, x, op_parameter(g, p->gate_up), 2 * rows * width, m->hidden));
    struct var halves = local(&f, chunks(g, both, 2));
    struct var gate = local(&f, chunk(g, halves, rows * width));
    struct var up = local(&f, chunk(g, halves, rows * width));
    struct var inner = multiply(g, up, activation(g, gate));
    return returns(&f, product(g, inner, op_parameter(g, p->experts_down), x.elements, width));
}

struct var every_expert(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct layer_parameters shared = shared_mlp(p);
    uint64_t count = call->trainer->job->model.experts.count;
    struct scope f = scope_in(g);
    struct var scores = local(&f, scores_of(&f, x, call));
    struct var routed = local(&f, repeat(g, x, count * x.elements));
    assign(&f, &routed, multiply(g, routed, copy(g, scores)));
    struct var out = local(&f, run_all(g, routed, call));
    struct var sum = local(&f, mlp(g, x, &shared));
    assign(&f, &sum, add_in_place(g, sum, sum_groups(g, out, x.elements)));
    return returns(&f, sum);
}
