// The routers' balancing loss as transformers 5.17 computes it (modeling_mixtral.py and its kin,
// load_balancing_loss_func): layer by layer, of the logits that the routers handed out, how often
// each expert was chosen and how likely. Sizes do not depend on the choice.
#include "core/losses/router.h"

#include "core/models/calls.h"

// What is counted over the layers.
struct balance {
    struct scope *scope;
    uint64_t tokens, experts, choices;
    bool masked;           // by the batch's attention mask, which packed rows do not have
    struct var mask;       // of each token
    struct var often;      // each expert was chosen, so far
    struct var likely;     // sums of chances, so far
    struct var chances;    // of the layer
    struct var best, whom; // a token's best ones
    struct var total;
};

static struct var times_chosen(struct graph *g, const struct balance *b)
{
    if (!b->masked) { // bincount, cast
        struct var counts = constant(g, b->experts, 8);
        return after(g, constant(g, b->experts, 4), counts);
    }
    struct var counts = constant(g, b->experts, 4);
    struct var repeated = constant(g, b->choices, 4);
    var_drop(g, &repeated);
    return counts;
}

static struct var chances_summed(struct graph *g, const struct balance *b)
{
    struct var wide = cast(g, b->chances, 4);
    return sum_rows(g, b->masked ? multiply_constant(g, wide, b->mask) : wide, b->experts);
}

static void count_layer(struct balance *b, struct var logits)
{
    struct graph *g = b->scope->graph;
    struct var narrow = borrowed(logits);
    assign(b->scope, &b->chances, softmax(g, cast(g, narrow, g->autocast ? 4 : narrow.width)));
    struct var best = constant(g, b->choices, b->chances.width);
    struct var whom = constant(g, b->choices, 8);
    assign(b->scope, &b->best, best);
    assign(b->scope, &b->whom, whom);
    assign(b->scope, &b->often, add(g, b->often, times_chosen(g, b)));
    assign(b->scope, &b->likely, add(g, chances_summed(g, b), b->likely));
    if (b->masked)
        assign(b->scope, &b->total, constant(g, 1, 4));
}

static struct var product_of_means(struct balance *b)
{
    struct graph *g = b->scope->graph;
    struct var often = local(b->scope, made_of(g, b->often));
    struct var likely = local(b->scope, multiply_constant(g, b->likely, b->total));
    return scale(g, sum_rows(g, multiply_constant(g, likely, often), 1));
}

static struct var balanced(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    struct scope f = scope_in(g);
    struct balance b = {.scope = &f,
                        .tokens = job_tokens(p),
                        .experts = p->model.experts.count,
                        .choices = job_tokens(p) * p->model.experts.per_token,
                        .masked = p->batching != BATCHING_PACKED};
    b.often = local(&f, constant(g, b.experts, 4));
    b.likely = local(&f, constant(g, b.experts, 4));
    b.mask = local(&f, b.masked ? constant(g, b.tokens, 4) : (struct var){NULL, NO_NODE, 4, 0});
    b.chances = local(&f, (struct var){NULL, NO_NODE, 4, 0});
    b.best = local(&f, (struct var){NULL, NO_NODE, 4, 0});
    b.whom = local(&f, (struct var){NULL, NO_NODE, 8, 0});
    b.total = local(&f, (struct var){NULL, NO_NODE, 4, 1});
    for (uint64_t i = 0; i < p->model.layers; i++)
        if (p->model.layer[i].experts)
            count_layer(&b, t->router_logits[i]);
    return returns(&f, product_of_means(&b));
}

struct var router_loss(struct trainer *t)
{
    struct graph *g = &t->graph;
    if (!t->router_logits)
        return (struct var){NULL, NO_NODE, 4, 0};
    struct var loss = balanced(t);
    for (uint64_t i = 0; i < t->job->model.layers; i++)
        var_drop(g, &t->router_logits[i]);
    t->router_logits = NULL;
    return loss;
}

struct var with_router_loss(struct trainer *t, struct var loss, struct var routers)
{
    struct graph *g = &t->graph;
    if (!routers.elements)
        return same(loss);
    return scalar(g, loss, scale(g, routers));
}
