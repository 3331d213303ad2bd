// Multi-head latent attention as modeling_deepseek_v3.py reads: queries, keys and values come out
// of low-rank products; a part of each head has no position, and one rotated key is shared by all
// heads.
#include "core/models/forward.h"

// Two parts of one tensor, told apart; its gradient is joined from theirs.
struct split {
    struct var first, second;
};

// The first part has `first` of every `all` elements.
static struct split split(struct scope *f, struct var x, uint64_t first, uint64_t all)
{
    struct graph *g = f->graph;
    struct var whole = local(f, chunks(g, x, 2));
    struct split s;
    s.first = local(f, chunk(g, whole, x.elements / all * first));
    s.second = local(f, chunk(g, whole, x.elements / all * (all - first)));
    return s;
}

static struct var queries(struct graph *g, struct var x, const struct layer_parameters *p)
{
    if (p->q_a < 0)
        return relayout(g, linear(g, x, p->q, -1));
    struct var low = rms_norm(g, linear(g, x, p->q_a, p->q_a_bias), p->q_a_norm);
    return relayout(g, linear(g, low, p->q_b, -1));
}

// Every other element, from the first or the second on.
struct pairs {
    struct var even, odd;
};

static struct pairs pairs_of(struct scope *f, struct var x)
{
    struct pairs p;
    p.even = local(f, slice(f->graph, x, x.elements / 2));
    p.odd = local(f, slice(f->graph, x, x.elements / 2));
    return p;
}

// The rotated parts of queries and keys.
static struct split rotate_parts(struct graph *g, struct var q, struct var k,
                                 const struct layer_arguments *also)
{
    const struct trainer *t = g->owner;
    if (model_has(&t->job->model, FEATURE_ROTARY_COMPLEX)) {
        struct heads h = complex_turned(g, q, k, also);
        return (struct split){h.q, h.k};
    }
    struct scope f = scope_in(g);
    struct pairs q_pairs = pairs_of(&f, q), k_pairs = pairs_of(&f, k);
    struct split turned;
    turned.first = rotate_pair(g, q_pairs.even, q_pairs.odd, also);
    turned.second = rotate_pair(g, k_pairs.even, k_pairs.odd, also);
    ends(&f);
    return turned;
}

// Written into a new tensor part by part: the keys of each head, then the rotated one.
static struct var keys(struct graph *g, struct var own, struct var rotated, uint64_t heads)
{
    struct scope f = scope_in(g);
    struct var shared = local(&f, expand(g, rotated, heads * rotated.elements));
    struct var base = constant(g, own.elements + shared.elements, own.width);
    base = write_into(g, base, own);
    return returns(&f, write_into(g, base, shared));
}

struct var latent_attention(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct model *m = &t->job->model;
    const struct latent_attention *l = &m->latent;
    const struct layer_arguments *also = arguments_of(t, call->layer);
    uint64_t head_dim = l->nope_head_dim + l->rope_head_dim;
    struct attention_shape shape = {job_tokens(t->job), m->heads, m->heads, head_dim,
                                    .sequence = job_sequence_tokens(t->job)};
    struct scope f = scope_in(g);
    struct split q = split(&f, queries(g, x, p), l->nope_head_dim, head_dim);
    struct var both = linear(g, x, p->kv_a, p->kv_a_bias);
    struct split low = split(&f, both, l->kv_rank, l->kv_rank + l->rope_head_dim);
    struct var normed = local(&f, rms_norm(g, low.first, p->kv_a_norm));
    struct split turned = rotate_parts(g, q.second, low.second, also);
    turned.first = local(&f, turned.first);
    turned.second = local(&f, turned.second);
    struct heads h = {.q = local(&f, join(g, q.first, turned.first))};
    both = relayout(g, linear(g, normed, p->kv_b, -1));
    struct split kv = split(&f, both, l->nope_head_dim, l->nope_head_dim + l->value_head_dim);
    h.k = local(&f, keys(g, kv.first, turned.second, m->heads));
    h.v = kv.second;
    return returns(&f, linear(g, copy(g, attend(g, h, &shape)), p->o, p->o_bias));
}
