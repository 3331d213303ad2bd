// Falcon (modeling_falcon.py): heads are picked out of one product in which keys and values lie
// among or behind their queries, attention is given a mask whatever there is, and the MLP's output
// takes up attention's.
#include "core/models/forward.h"

// FalconLinear: the bias is added by itself.
static struct var plain_linear(struct graph *g, struct var x, int weight, int bias)
{
    struct var y = linear(g, x, weight, -1);
    return bias < 0 ? y : add_row(g, y, op_parameter(g, bias));
}

static struct var picked(struct graph *g, struct var all, uint64_t elements)
{
    return copy(g, slice(g, all, elements));
}

// _split_heads of the new architecture: keys and values for each group of queries, repeated for
// every one of them; the queries of all groups are brought together.
static struct heads grouped_heads(struct graph *g, struct var all)
{
    const struct trainer *t = g->owner;
    const struct model *m = &t->job->model;
    uint64_t head = all.elements / (m->heads + 2 * m->kv_heads);
    struct scope f = scope_in(g);
    struct var q = local(&f, slice(g, all, m->heads * head));
    struct var k = local(&f, picked(g, all, m->kv_heads * head));
    struct var v = local(&f, picked(g, all, m->kv_heads * head));
    struct heads h;
    h.q = copy(g, q);
    h.k = repeat(g, k, m->heads * head);
    h.v = repeat(g, v, m->heads * head);
    ends(&f);
    return h;
}

static struct heads split_heads(struct graph *g, struct var all)
{
    const struct trainer *t = g->owner;
    const struct model *m = &t->job->model;
    bool one = m->kv_heads == 1 && m->heads > 1;
    if (m->heads != m->kv_heads && !one)
        return grouped_heads(g, all);
    uint64_t head = all.elements / (m->heads + 2 * m->kv_heads);
    struct heads h;
    h.q = slice(g, all, m->heads * head);
    h.k = (one ? picked : slice)(g, all, m->kv_heads * head);
    h.v = (one ? picked : slice)(g, all, m->kv_heads * head);
    return h;
}

static struct var falcon_attention(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct model *m = &t->job->model;
    const struct layer_arguments *also = arguments_of(t, call->layer);
    uint64_t tokens = job_sequence_tokens(t->job);
    struct attention_shape shape = {.tokens = job_tokens(t->job),
                                    .heads = m->heads,
                                    .kv_heads = m->heads,
                                    .head_dim = m->head_dim,
                                    .mask_elements = job_rows(t->job) * tokens * tokens,
                                    .sequence = tokens};
    struct scope f = scope_in(g);
    struct var all = local(&f, plain_linear(g, x, p->qkv, p->qkv_bias));
    struct heads h = split_heads(g, all);
    h.q = local(&f, h.q);
    h.k = local(&f, h.k);
    h.v = local(&f, h.v);
    if (model_has(m, FEATURE_KEYS_BIASED)) {
        shape.mask_elements *= m->heads;
        struct var mask = g->frame ? g->frame->also[ARGUMENT_MASK] : also->mask;
        shape.mask = mask.width == 2 ? mask.storage : NULL;
    } else {
        struct heads turned = h;
        turned.q = rotate(g, h.q, also);
        turned.k = rotate(g, h.k, also);
        assign(&f, &h.q, turned.q);
        assign(&f, &h.k, turned.k);
    }
    bool math = h.k.elements != h.q.elements; // kernels want as many heads of keys
    struct var mixed = math ? copy(g, math_attention(g, h, call)) : attend(g, h, &shape);
    mixed = local(&f, mixed);
    return returns(&f, plain_linear(g, mixed, p->o, p->o_bias));
}

static struct var falcon_mlp(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct scope f = scope_in(g);
    struct var hidden = local(&f, activation(g, plain_linear(g, x, p->up, p->up_bias)));
    assign(&f, &hidden, plain_linear(g, hidden, p->down, p->down_bias));
    return returns(&f, hidden);
}

void falcon_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = &call->trainer->job->model;
    bool parallel = model_has(m, FEATURE_PARALLEL);
    struct scope f = scope_in(g);
    struct var residual = local(&f, in), normed = local(&f, rms_norm(g, in, p->input_norm));
    struct var second = local(&f, (struct var){NULL, NO_NODE, 0, 0});
    if (parallel && p->before_mlp_norm >= 0)
        assign(&f, &second, rms_norm(g, in, p->before_mlp_norm));
    struct var attended = local(&f, falcon_attention(g, normed, call));
    if (!parallel) {
        assign(&f, &residual, add(g, in, attended));
        assign(&f, &second, rms_norm(g, residual, p->before_mlp_norm));
    }
    struct var fed = local(&f, falcon_mlp(g, p->before_mlp_norm < 0 ? normed : second, p));
    if (parallel)
        assign(&f, &fed, add_in_place(g, fed, attended));
    struct var sum = local(&f, add_last(g, residual, fed));
    *out = taken(returns(&f, sum));
}
