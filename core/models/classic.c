// Attention of families that know no fused kernel, each with names of its own that keep what others
// let go: BLOOM (modeling_bloom.py), MPT (modeling_mpt.py) and GPT-J (modeling_gptj.py).
#include "core/models/forward.h"

// Sequences and heads become one dimension, which takes a copy where there are several.
static struct var one_dimension(struct graph *g, struct var x)
{
    const struct trainer *t = g->owner;
    return job_rows(t->job) > 1 ? copy(g, x) : same(x);
}

static uint64_t pairs_of(const struct trainer *t, struct var q)
{
    return q.elements / t->job->model.head_dim * job_sequence_tokens(t->job);
}

// In bf16, where autocast multiplies.
static struct var narrow(struct graph *g, struct var x)
{
    return cast(g, x, g->autocast ? 2 : x.width);
}

// What the weights make of the values.
static struct var mixed_values(struct graph *g, struct var weights, struct var v)
{
    const struct trainer *t = g->owner;
    struct var low = narrow(g, weights);
    struct var flat = one_dimension(g, v);
    return product(g, low, flat, v.elements, job_sequence_tokens(t->job));
}

// As the output projection reads it.
static struct var merged_heads(struct graph *g, struct var mixed)
{
    const struct trainer *t = g->owner;
    return copy(g, job_rows(t->job) > 1 ? relayout(g, mixed) : mixed);
}

static struct var maybe_dropped(struct graph *g, struct var weights)
{
    const struct trainer *t = g->owner;
    return t->job->model.dropouts.attention ? dropout(g, weights) : same(weights);
}

// ------------------------------------------------------------------ BLOOM

// Scores begin with a bias a head and key, and are multiplied by a number, in one product. The
// residual is added inside.
struct var bloom_attention(struct graph *g, struct pair in, const struct layer_call *call,
                           struct var *weights)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    struct var mask = arguments_of(t, call->layer)->mask;
    struct scope f = scope_in(g);
    struct var all = local(&f, linear(g, in.normed, p->qkv, p->qkv_bias));
    struct var q = local(&f, slice(g, all, all.elements / 3));
    struct var k = local(&f, slice(g, all, all.elements / 3));
    struct var v = local(&f, slice(g, all, all.elements / 3));
    assign(&f, &q, one_dimension(g, q));
    assign(&f, &k, one_dimension(g, k));
    assign(&f, &v, one_dimension(g, v));
    struct var q_factor = relayout(g, q), k_factor = relayout(g, k); // multiplied on their way back
    struct var scores =
        local(&f, product(g, q_factor, k_factor, pairs_of(t, q), t->job->model.head_dim));
    struct var masked = local(&f, add_mask(g, scores, mask));
    struct var chances = local(&f, cast(g, softmax(g, cast(g, masked, 4)), q.width));
    assign(&f, &chances, maybe_dropped(g, chances));
    struct var context = product(g, narrow(g, chances), v, v.elements, job_sequence_tokens(t->job));
    context = local(&f, context);
    assign(&f, &context, copy(g, job_rows(t->job) > 1 ? relayout(g, context) : context));
    *weights = same(chances);
    struct var out = dropped(g, linear(g, context, p->o, p->o_bias));
    return returns(&f, add(g, in.residual, out));
}

// ------------------------------------------------------------------ MPT

// build_mpt_alibi_tensor: for every position there can be.
struct var biases_of_keys(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct model *m = &t->job->model;
    struct var places = constant(g, m->max_position, 4);
    return after(g, constant(g, m->heads * m->max_position, 4), places);
}

// Scores become fp32 with their biases, and are masked in a tensor of their own.
struct var mpt_attention(struct graph *g, struct var x, const struct layer_call *call,
                         struct var *weights)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct layer_arguments *also = arguments_of(t, call->layer);
    struct scope f = scope_in(g);
    struct var all = local(&f, chunks(g, linear(g, x, p->qkv, p->qkv_bias), 3));
    struct var q = local(&f, relayout(g, chunk(g, all, all.elements / 3)));
    struct var k = local(&f, chunk(g, all, all.elements / 3)); // whose gradient lies as it should
    struct var v = local(&f, relayout(g, chunk(g, all, all.elements / 3)));
    struct var q_flat = one_dimension(g, q), k_flat = one_dimension(g, k);
    struct var scores = product(g, q_flat, k_flat, pairs_of(t, q), t->job->model.head_dim);
    scores = local(&f, scale(g, scores));
    assign(&f, &scores, add_mask(g, scores, also->cosine));
    assign(&f, &scores, masked(g, scores, also->mask));
    struct var chances = local(&f, cast(g, softmax(g, cast(g, scores, 4)), q.width));
    struct var context = local(&f, merged_heads(g, mixed_values(g, chances, v)));
    *weights = same(chances);
    return returns(&f, linear(g, context, p->o, p->o_bias));
}

// ------------------------------------------------------------------ GPT-J

// Sines and cosines of all positions are a buffer of each layer, of which those in use are picked.
static struct layer_arguments picked_angles(struct scope *f, uint32_t width)
{
    struct graph *g = f->graph;
    const struct trainer *t = g->owner;
    const struct model *m = &t->job->model;
    uint64_t tokens = job_sequence_tokens(t->job);
    struct var every = local(f, constant(g, m->max_position * m->rotary_dim, 4));
    local(f, constant(g, tokens * m->rotary_dim, 8)); // whose numbers
    struct var wide = after(g, constant(g, tokens * m->rotary_dim, 4), borrowed(every));
    struct var both = local(f, cast(g, wide, width));
    both.elements /= 2;
    return (struct layer_arguments){.cosine = both, .sine = both};
}

// apply_rotary_pos_emb: each angle is repeated for its two neighbours, of queries and of keys.
static struct var turn_pairs(struct graph *g, struct var x, const struct layer_arguments *angles)
{
    struct scope f = scope_in(g);
    struct layer_arguments twice = *angles;
    twice.sine = local(&f, constant(g, 2 * angles->sine.elements, angles->sine.width));
    twice.cosine = local(&f, constant(g, 2 * angles->cosine.elements, angles->cosine.width));
    return returns(&f, rotate(g, x, &twice));
}

// _attn: scores in fp32.
static struct var wide_attention(struct graph *g, struct heads h, struct var mask,
                                 struct var *weights)
{
    const struct trainer *t = g->owner;
    struct scope f = scope_in(g);
    struct var q = local(&f, cast(g, h.q, 4)), k = local(&f, cast(g, h.k, 4));
    struct var q_flat = one_dimension(g, narrow(g, q)), k_flat = one_dimension(g, narrow(g, k));
    struct var scores =
        local(&f, product(g, q_flat, k_flat, pairs_of(t, q), t->job->model.head_dim));
    assign(&f, &scores, scale(g, scores));
    assign(&f, &scores, add_mask(g, scores, mask));
    assign(&f, &scores, softmax(g, scores));
    assign(&f, &scores, cast(g, scores, h.v.width));
    assign(&f, &scores, maybe_dropped(g, scores));
    *weights = same(scores);
    return returns(&f, mixed_values(g, scores, h.v));
}

struct var gptj_attention(struct graph *g, struct var x, const struct layer_call *call,
                          struct var *weights)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct model *m = &t->job->model;
    struct scope f = scope_in(g);
    struct heads h;
    h.q = local(&f, linear(g, x, p->q, p->q_bias));
    h.k = local(&f, linear(g, x, p->k, p->k_bias));
    h.v = local(&f, relayout(g, linear(g, x, p->v, p->v_bias)));
    struct layer_arguments angles = picked_angles(&f, h.k.width);
    struct parts k = parts_of(&f, h.k, m), q = parts_of(&f, h.q, m);
    assign(&f, &k.turning, turn_pairs(g, k.turning, &angles));
    assign(&f, &q.turning, turn_pairs(g, q.turning, &angles));
    assign(&f, &h.k, join_rest(g, k.turning, k.rest));
    assign(&f, &h.q, join_rest(g, q.turning, q.rest));
    struct var mask = arguments_of(t, call->layer)->mask;
    struct var mixed = local(&f, wide_attention(g, h, mask, weights));
    assign(&f, &mixed, merged_heads(g, mixed));
    return returns(&f, dropped(g, linear(g, mixed, p->o, p->o_bias)));
}
