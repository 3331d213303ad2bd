// Multi-head latent attention as modeling_deepseek_v3.py reads: queries, keys and values come out
// of low-rank products; a part of each head has no position, and one rotated key is shared by all
// heads.
#include "core/models/trainer.h"
#include "core/ops/ops.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

// Two parts of one tensor, told apart; its gradient is joined from theirs.
struct split {
    struct var whole, first, second;
};

// Takes x over. The first part has `first` of every `all` elements.
static struct split split(struct graph *g, struct var x, uint64_t first, uint64_t all)
{
    struct split s = {.whole = op_chunks(g, x, 2)};
    s.first = op_chunk(g, s.whole, x.elements / all * first);
    s.second = op_chunk(g, s.whole, x.elements / all * (all - first));
    return s;
}

static void drop_split(struct graph *g, struct split *s)
{
    var_drop(g, &s->first);
    var_drop(g, &s->second);
    var_drop(g, &s->whole);
}

// Every other element, from the first or the second on.
struct pairs {
    struct var even, odd;
};

static struct pairs pairs_of(struct graph *g, struct var x)
{
    return (struct pairs){op_slice(g, x, x.elements / 2), op_slice(g, x, x.elements / 2)};
}

static struct var turned(struct graph *g, struct pairs p, const struct layer_arguments *also)
{
    struct var out = rotate_pair(g, p.even, p.odd, also);
    drop(g, p.even);
    drop(g, p.odd);
    return out;
}

static struct var queries(struct graph *g, struct var x, const struct layer_parameters *p)
{
    if (p->q_a < 0)
        return op_relayout(g, op_linear(g, x, p->q, -1));
    struct var low = op_linear(g, x, p->q_a, p->q_a_bias), normed = rms_norm(g, low, p->q_a_norm);
    drop(g, low);
    struct var out = op_relayout(g, op_linear(g, normed, p->q_b, -1));
    drop(g, normed);
    return out;
}

// Written into a new tensor part by part: the keys of each head, then the rotated one.
static struct var keys(struct graph *g, struct var own, struct var rotated, uint64_t heads)
{
    struct var shared = op_expand(g, rotated, heads * rotated.elements);
    struct var base = graph_output(g, NULL, own.elements + shared.elements, own.width);
    base = op_write(g, base, own);
    base = op_write(g, base, shared);
    drop(g, shared);
    return base;
}

struct var latent_attention(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct model *m = &t->job->model;
    const struct latent_attention *l = &m->latent;
    const struct layer_arguments *also = arguments_of(t, call->layer);
    uint64_t head_dim = l->nope_head_dim + l->rope_head_dim;
    struct attention_shape shape = {job_tokens(t->job), m->heads, m->heads, head_dim, 0};
    struct split q = split(g, queries(g, x, p), l->nope_head_dim, head_dim);
    struct split low =
        split(g, op_linear(g, x, p->kv_a, p->kv_a_bias), l->kv_rank, l->kv_rank + l->rope_head_dim);
    struct var normed = rms_norm(g, low.first, p->kv_a_norm);
    struct pairs q_pairs = pairs_of(g, q.second), k_pairs = pairs_of(g, low.second);
    struct var q_turned = turned(g, q_pairs, also), k_turned = turned(g, k_pairs, also);
    struct var query = op_join(g, q.first, q_turned);
    struct var both = op_relayout(g, op_linear(g, normed, p->kv_b, -1));
    struct split kv = split(g, both, l->nope_head_dim, l->nope_head_dim + l->value_head_dim);
    struct var key = keys(g, kv.first, k_turned, m->heads);
    struct var mixed = op_attention(g, query, key, kv.second, &shape), copy = op_copy(g, mixed);
    drop(g, mixed);
    struct var out = op_linear(g, copy, p->o, p->o_bias);
    struct var *const locals[] = {&copy, &query, &key, &normed, &q_turned, &k_turned};
    for (ptrdiff_t i = 0; i < COUNT_OF(locals); i++)
        var_drop(g, locals[i]);
    drop_split(g, &q);
    drop_split(g, &low);
    drop_split(g, &kv);
    return out;
}
