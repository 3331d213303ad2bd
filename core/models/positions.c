// Positions of families that turn queries and keys in ways of their own, each as its
// apply_rotary_pos_emb reads in transformers 5.17.
#include "core/models/forward.h"

// modeling_glm.py: neighbours share an angle, so that the first half of the angles is repeated, in
// every layer.
static struct layer_arguments angles_of(struct scope *f, const struct layer_arguments *also)
{
    const struct trainer *t = f->graph->owner;
    struct layer_arguments angles = *also;
    if (!model_has(&t->job->model, FEATURE_ROTARY_PAIRS))
        return angles;
    angles.cosine = local(f, made_like(f->graph, also->cosine));
    angles.sine = local(f, made_like(f->graph, also->sine));
    return angles;
}

// modeling_cohere.py: heads become fp32 first. In modeling_ernie4_5.py what has been turned by a
// quarter becomes it by itself.
static struct var turn_wide(struct graph *g, struct var x, const struct layer_arguments *angles)
{
    struct var plain = multiply_constant(g, cast(g, x, 4), angles->cosine);
    struct var across = cast(g, rotate_half(g, x), 4);
    return add(g, plain, multiply_constant(g, across, angles->sine));
}

struct heads rotate_cast(struct graph *g, struct heads h, const struct layer_arguments *also)
{
    const struct trainer *t = g->owner;
    bool first = !model_has(&t->job->model, FEATURE_ROTARY_WIDE);
    struct scope f = scope_in(g);
    struct var q = local(&f, first ? cast(g, h.q, 4) : h.q);
    struct var k = local(&f, first ? cast(g, h.k, 4) : h.k);
    struct layer_arguments angles = angles_of(&f, also);
    struct var q_turned = local(&f, turn_wide(g, q, &angles));
    struct var k_turned = local(&f, turn_wide(g, k, &angles));
    h.q = cast(g, q_turned, h.q.width);
    h.k = cast(g, k_turned, h.k.width);
    ends(&f);
    return h;
}

// The first part of each head is turned, of queries and keys, then the rest is joined to it. What
// was turned goes with its name: at once (modeling_glm.py, modeling_gpt_neox.py), at the end of the
// function (modeling_nemotron.py), or at that of attention, whose names they are (modeling_phi.py).
struct heads rotate_parts_late(struct scope *attention, struct heads h,
                               const struct layer_arguments *also)
{
    struct graph *g = attention->graph;
    const struct trainer *t = g->owner;
    const struct model *m = &t->job->model;
    struct scope f = scope_in(g);
    struct scope *names = model_has(m, FEATURE_PARTS_HELD) ? attention : &f;
    struct layer_arguments angles = angles_of(&f, also);
    struct parts q = parts_of(names, h.q, m), k = parts_of(names, h.k, m);
    assign(names, &q.turning, rotate(g, q.turning, &angles));
    assign(names, &k.turning, rotate(g, k.turning, &angles));
    bool named = model_has(m, FEATURE_PARTS_HELD | FEATURE_PARTS_NAMED);
    h.q = join_rest(g, q.turning, q.rest);
    if (!named)
        forget(&f, &q.turning);
    h.k = join_rest(g, k.turning, k.rest);
    if (!named)
        forget(&f, &k.turning);
    ends(&f);
    return h;
}

// modeling_ministral3.py, get_llama_4_attn_scale: a number for each position, made of its number.
struct var scale_queries(struct graph *g, struct var q, uint64_t positions)
{
    struct scope f = scope_in(g);
    struct var quotient = made_of(g, constant(g, positions, 4));
    struct var logarithm = made_of(g, made_of(g, quotient));
    struct var factor = local(&f, made_of(g, made_of(g, logarithm)));
    return returns(&f, multiply_constant(g, q, cast(g, factor, q.width)));
}
