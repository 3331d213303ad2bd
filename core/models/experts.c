// The sparse block of Qwen3's mixtures of experts as transformers 5.17 runs it: a router
// (modeling_qwen3_moe.py) and all experts at once by grouped matrix products over rows sorted by
// expert (integrations/moe.py, grouped_mm_experts_forward).
//
// No size depends on how the router chose: every token goes to per_token experts of this rank,
// which has all of them, so there are tokens * per_token rows however they are spread, and the
// products take one buffer for all groups. The router's weights are assumed to be normed
// (norm_topk_prob), as in every released checkpoint, and rows to be more than the 4096 that torch
// sorts without cub.
#include "core/models/trainer.h"
#include "core/ops/ops.h"
#include "core/ops/scratch.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

static struct var constant(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, NULL, elements, width);
}

// A name in Python given another value; recomputation that stops there leaves it the old one.
static void rebind(struct graph *g, struct var *name, struct var value)
{
    if (g->stopped)
        value.storage = name->storage;
    else
        var_drop(g, name);
    *name = value;
}

static void scratch(struct graph *g, uint64_t bytes)
{
    if (!g->stopped)
        machine_scratch(g->machine, bytes);
}

// ------------------------------------------------------------------ the router

struct routing {
    uint64_t tokens, rows; // a row for each token and expert that it goes to
    struct var logits, weights, experts;
};

// DeepSeek-V3: sigmoid scores in fp32; groups of experts are chosen first, by scores that a
// balancing bias is added to; of this only what has a value for every expert is written here.
static struct routing route_by_groups(struct graph *g, struct var x, int router,
                                      const struct model *m)
{
    struct routing r = {.tokens = x.elements / m->hidden};
    r.rows = r.tokens * m->experts.per_token;
    r.logits = op_linear_cast(g, x, router, 4);
    struct var scores = op_sigmoid(g, r.logits), shifted = op_add_constant(g, scores);
    struct var allowed = constant(g, scores.elements, 4);
    struct var choice = constant(g, scores.elements, 4);
    drop(g, shifted);
    struct var best = op_top(g, scores, r.rows, &r.experts);
    struct var sum = op_sum_rows(g, best, r.tokens);
    best = op_divide(g, best, sum);
    drop(g, sum);
    r.weights = op_scale(g, best);
    drop(g, best);
    drop(g, allowed);
    drop(g, choice);
    drop(g, scores);
    return r;
}

static struct routing route(struct graph *g, struct var x, const struct layer_parameters *p,
                            const struct model *m)
{
    struct routing r = {.tokens = x.elements / m->hidden};
    r.rows = r.tokens * m->experts.per_token;
    r.logits = op_linear(g, x, p->router, p->router_bias);
    if (p->router_bias >= 0) { // gpt-oss norms after the choice
        struct var chosen = op_top(g, r.logits, r.rows, &r.experts);
        r.weights = op_softmax(g, chosen);
        drop(g, chosen);
        return r;
    }
    struct var wide = op_cast(g, r.logits, 4);
    struct var probabilities = op_softmax(g, wide);
    drop(g, wide);
    struct var best = op_top(g, probabilities, r.rows, &r.experts);
    struct var sum = op_sum_rows(g, best, r.tokens);
    best = op_divide(g, best, sum);
    drop(g, sum);
    r.weights = op_cast(g, best, model_has(m, FEATURE_ROUTER_WIDE) ? 4 : r.logits.width);
    drop(g, best);
    drop(g, probabilities);
    return r;
}

// ------------------------------------------------------------------ the experts

// Rows sorted by expert, and where each expert's end.
struct sorting {
    struct var experts, order;
    struct var states, weights; // of each row
    struct var narrow, counts, offsets, mask;
};

static struct sorting sort_by_expert(struct graph *g, struct var x, const struct routing *r,
                                     uint64_t experts)
{
    struct sorting s = {.experts = constant(g, r->rows, 8), .order = constant(g, r->rows, 8)};
    struct var range = constant(g, r->rows, 8);
    scratch(g, sort_scratch(r->rows, 64));
    drop(g, range);
    struct var tokens = constant(g, r->rows, 8); // each row's
    s.states = op_index_rows(g, x, r->tokens, tokens);
    drop(g, tokens);
    s.weights = op_index_rows(g, r->weights, r->rows, s.order);
    s.narrow = constant(g, r->rows, 4);
    s.counts = constant(g, experts, 4);
    s.offsets = constant(g, experts, 4);
    scratch(g, 1023); // a scan of one tile
    s.mask = constant(g, r->rows, 1);
    return s;
}

static void drop_sorting(struct graph *g, struct sorting *s)
{
    struct var *const locals[] = {&s->experts, &s->order,  &s->states,  &s->weights,
                                  &s->narrow,  &s->counts, &s->offsets, &s->mask};
    for (ptrdiff_t i = 0; i < COUNT_OF(locals); i++)
        var_drop(g, locals[i]);
}

// Takes x over.
static struct var gated(struct graph *g, struct var x)
{
    struct var both = op_chunks(g, x, 2);
    struct var gate = op_chunk(g, both, x.elements / 2), up = op_chunk(g, both, x.elements / 2);
    struct var active = op_activation(g, gate);
    struct var out = op_multiply(g, active, up);
    drop(g, active);
    drop(g, gate);
    drop(g, up);
    drop(g, both);
    return out;
}

// gpt-oss's: both halves clamped. Takes x over.
static struct var gated_clamped(struct graph *g, struct var x)
{
    struct var gate_part = op_slice(g, x, x.elements / 2), up_part = op_slice(g, x, x.elements / 2);
    struct var gate = op_clamp(g, gate_part, 1);
    drop(g, gate_part);
    struct var up = op_clamp(g, up_part, 2);
    drop(g, up_part);
    struct var scaled = op_scale(g, gate), sigmoid = op_sigmoid(g, scaled);
    drop(g, scaled);
    struct var active = op_multiply(g, gate, sigmoid);
    drop(g, sigmoid);
    struct var raised = op_add_constant(g, up), out = op_multiply(g, raised, active);
    drop(g, raised);
    drop(g, gate);
    drop(g, up);
    drop(g, active);
    drop(g, x);
    return out;
}

// The bias of each row's expert, if experts have any.
static struct var bias_of_rows(struct graph *g, int parameter, struct var experts, uint64_t count)
{
    if (parameter < 0)
        return (struct var){NULL, NO_NODE, 0, 0};
    return op_index_rows(g, op_parameter(g, parameter), count, experts);
}

// Takes x over.
static struct var add_bias(struct graph *g, struct var x, struct var bias)
{
    return bias.elements ? op_add_in_place(g, x, bias) : x;
}

// Back into the tokens' order.
static struct var inverse_of(struct graph *g, struct var order)
{
    struct var inverse = constant(g, order.elements, 8), range = constant(g, order.elements, 8);
    drop(g, range);
    return inverse;
}

static struct var run_experts(struct graph *g, struct var x, const struct routing *r,
                              const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = &call->trainer->job->model;
    struct sorting s = sort_by_expert(g, x, r, m->experts.count);
    struct var bias = bias_of_rows(g, p->gate_up_bias, s.experts, m->experts.count);
    s.states = op_mask(g, s.states, s.mask);
    struct var both = op_grouped_product(g, s.states, p->gate_up, m->hidden, s.offsets);
    both = op_masked(g, add_bias(g, both, bias), s.mask);
    struct var inner = p->gate_up_bias < 0 ? gated(g, both) : gated_clamped(g, both);
    rebind(g, &bias, bias_of_rows(g, p->experts_down_bias, s.experts, m->experts.count));
    struct var down =
        op_grouped_product(g, inner, p->experts_down, m->experts.intermediate, s.offsets);
    drop(g, inner);
    down = add_bias(g, down, bias);
    down = op_masked(g, down, s.mask);
    struct var weighted = op_multiply(g, down, s.weights);
    struct var inverse = inverse_of(g, s.order);
    rebind(g, &weighted, op_index_rows(g, weighted, r->rows, inverse));
    struct var sum = op_sum_groups(g, weighted, x.elements), out = op_cast(g, sum, x.width);
    drop(g, sum);
    drop_sorting(g, &s);
    drop(g, bias);
    drop(g, down);
    drop(g, weighted);
    drop(g, inverse);
    return out;
}

struct var experts_forward(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct model *m = &t->job->model;
    struct routing r = model_has(m, FEATURE_ROUTER_BALANCE) ? route_by_groups(g, x, p->router, m)
                                                            : route(g, x, p, m);
    struct var out = run_experts(g, x, &r, call);
    drop(g, r.logits);
    drop(g, r.weights);
    drop(g, r.experts);
    return out;
}
