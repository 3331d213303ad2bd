// The routers, each as its modeling file of transformers 5.17 reads. Qwen3's chances are assumed to
// be normed (norm_topk_prob), as in every released checkpoint.
#include "core/models/experts/routers.h"

// The chosen experts' chances, which come to one for each token.
static struct var normed_choice(struct scope *f, struct var chances, struct routing *r)
{
    struct graph *g = f->graph;
    struct var best = local(f, top(g, chances, r->rows, &r->experts));
    assign(f, &best, divide(g, best, sum_rows(g, best, r->tokens)));
    return best;
}

// DeepSeek-V3: sigmoid scores in fp32; groups of experts are chosen first, by scores that a
// balancing bias is added to; of this only what has a value for every expert is written here.
static void route_by_groups(struct graph *g, struct var x, int router, struct routing *r)
{
    const struct model *m = &((const struct trainer *)g->owner)->job->model;
    struct scope f = scope_in(g);
    r->logits = linear_cast(g, x, router, 4);
    struct var scores = local(&f, sigmoid(g, borrowed(r->logits)));
    struct var shifted = local(&f, add_constant(g, scores));
    if (model_has(m, FEATURE_ROUTER_GROUPS))
        local(&f, constant(g, scores.elements, 4)); // which are allowed, else a view
    local(&f, constant(g, scores.elements, 4));     // their scores
    forget(&f, &shifted);
    r->weights = scale(g, normed_choice(&f, scores, r));
    ends(&f);
}

// MiniMax-M2: the same without groups, of logits in the model's type.
static void route_by_scores(struct graph *g, struct var x, int router, struct routing *r)
{
    struct scope f = scope_in(g);
    r->logits = linear(g, x, router, -1);
    struct var scores = local(&f, sigmoid(g, cast(g, borrowed(r->logits), 4)));
    local(&f, made_of(g, borrowed(scores))); // with the balancing bias
    local(&f, constant(g, r->rows, 4));      // the best of them
    r->weights = same(normed_choice(&f, scores, r));
    ends(&f);
}

// DeepSeek-V2: chances in fp32; those of groups that are not chosen become zeros.
static void route_by_softmax(struct graph *g, struct var x, const struct layer_parameters *p,
                             struct routing *r)
{
    const struct trainer *t = g->owner;
    struct scope f = scope_in(g);
    r->logits = linear_cast(g, x, p->router, 4);
    struct var scores = local(&f, softmax(g, borrowed(r->logits)));
    if (model_has(&t->job->model, FEATURE_ROUTER_GROUPS)) {
        local(&f, constant(g, scores.elements, 4)); // which are allowed
        struct var not_allowed = local(&f, constant(g, scores.elements, 1));
        assign(&f, &scores, masked(g, scores, not_allowed));
    }
    struct var best = local(&f, top(g, scores, r->rows, &r->experts));
    r->weights = scale(g, best);
    ends(&f);
}

// Ernie 4.5: chosen by chances with a balancing bias, and normed by a sum that is clamped.
static void route_by_statics(struct graph *g, struct var x, int router, struct routing *r)
{
    struct scope f = scope_in(g);
    r->logits = linear_cast(g, x, router, 4);
    struct var chances = local(&f, softmax(g, borrowed(r->logits)));
    struct var shifted = made_of(g, borrowed(chances));
    local(&f, after(g, constant(g, r->rows, 4), shifted)); // the best of them
    struct var best = local(&f, top(g, chances, r->rows, &r->experts));
    forget(&f, &chances);
    struct var whole = made_of(g, sum_rows(g, best, r->tokens));
    assign(&f, &best, multiply(g, best, whole));
    r->weights = cast(g, best, x.width);
    ends(&f);
}

// Granite: fp32 logits are chosen from, and normed then.
static void route_then_norm(struct graph *g, struct var x, int router, struct routing *r)
{
    struct scope f = scope_in(g);
    r->logits = cast(g, linear(g, x, router, -1), 4);
    struct var best = local(&f, top(g, borrowed(r->logits), r->rows, &r->experts));
    r->weights = cast(g, softmax(g, best), x.width);
    ends(&f);
}

// Qwen's and Mixtral's. gpt-oss norms after the choice.
static void route_by_chances(struct graph *g, struct var x, const struct layer_parameters *p,
                             struct routing *r)
{
    const struct trainer *t = g->owner;
    const struct model *m = &t->job->model;
    struct scope f = scope_in(g);
    r->logits = linear(g, x, p->router, p->router_bias);
    if (p->router_bias >= 0) {
        r->weights = softmax(g, top(g, borrowed(r->logits), r->rows, &r->experts));
        return;
    }
    struct var chances = local(&f, softmax(g, cast(g, borrowed(r->logits), 4)));
    struct var best = model_has(m, FEATURE_ROUTER_PLAIN)
                          ? local(&f, top(g, chances, r->rows, &r->experts))
                          : normed_choice(&f, chances, r);
    r->weights = cast(g, best, model_has(m, FEATURE_ROUTER_WIDE) ? 4 : r->logits.width);
    ends(&f);
}

struct routing route(struct graph *g, struct var x, const struct layer_parameters *p,
                     const struct model *m)
{
    struct routing r = {.tokens = x.elements / m->hidden};
    r.rows = r.tokens * m->experts.per_token;
    if (model_has(m, FEATURE_ROUTER_BALANCE))
        route_by_groups(g, x, p->router, &r);
    else if (model_has(m, FEATURE_ROUTER_SIGMOID))
        route_by_scores(g, x, p->router, &r);
    else if (model_has(m, FEATURE_ROUTER_SOFTMAX))
        route_by_softmax(g, x, p, &r);
    else if (model_has(m, FEATURE_ROUTER_STATICS))
        route_by_statics(g, x, p->router, &r);
    else if (model_has(m, FEATURE_ROUTER_LAST))
        route_then_norm(g, x, p->router, &r);
    else
        route_by_chances(g, x, p, &r);
    return r;
}
