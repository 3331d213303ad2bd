// A decoder layer as most families have it (modeling_qwen3.py and those that share its shape):
// attention by whatever kernel, the MLP, and the norms around both.
#include "core/models/forward.h"

// ------------------------------------------------------------------ attention

// Where halves were joined on the way, the heads have to be laid out again.
static struct var ringed_attention(struct graph *g, struct heads h, struct ring *r)
{
    struct var mixed = unnamed(ring_attention(g, h.q, h.k, h.v, r));
    if (r->rank + 1 == r->ranks)
        return mixed;
    return copy(g, mixed);
}

static void hand_out(struct graph *g, struct var values, const struct layer_call *call)
{
    struct trainer *t = call->trainer;
    struct var seen = t->handed_out ? graph_expose(g, borrowed(values)) : (struct var){0};
    if (seen.storage)
        t->handed_out[call->layer] = seen;
}

// Repeated heads lie head by head already.
static void lay_heads_out(struct scope *f, struct heads *h, const struct model *m)
{
    h->q = local(f, copy(f->graph, h->q));
    if (m->heads != m->kv_heads)
        return;
    h->k = local(f, copy(f->graph, h->k));
    h->v = local(f, copy(f->graph, h->v));
}

// cache_utils.py, DynamicLayer.update: a copy of what was there and what is new, the values in the
// type of the keys that came first. A window keeps one token less than it is long.
static void join_tokens(struct graph *g, struct var *kept, struct var fresh, uint64_t before)
{
    uint32_t width = kept->width > fresh.width ? kept->width : fresh.width;
    struct var joined = taken(constant(g, before + fresh.elements, width));
    var_drop(g, kept);
    *kept = joined;
}

static void join_cache(struct scope *f, struct heads *h, const struct layer_call *call)
{
    struct cache *c = call->trainer->cache;
    const struct job *job = call->trainer->job;
    bool slides = job->model.layer[call->layer].sliding;
    uint64_t window = slides ? job->model.sliding_window : UINT64_MAX;
    uint64_t tokens = c->tokens < window ? c->tokens : window - 1;
    uint64_t fresh = job_sequence_tokens(job);
    struct var *keys = &c->keys[call->layer], *values = &c->values[call->layer];
    values->width = c->tokens ? values->width : h->k.width;
    join_tokens(f->graph, keys, h->k, h->k.elements / fresh * tokens);
    join_tokens(f->graph, values, h->v, h->v.elements / fresh * tokens);
    assign(f, &h->k, same(*keys));
    assign(f, &h->v, same(*values));
}

// The kernel's output lies as its queries do, which a join has brought into the heads' order; the
// efficient kernel's as the layer wants it. A mask excludes shared heads of keys and values: they
// are repeated.
static struct var fused_attention(struct graph *g, struct heads h, struct attention_shape shape,
                                  const struct layer_call *call)
{
    const struct job *job = call->trainer->job;
    uint64_t tokens = job_sequence_tokens(job);
    struct scope f = scope_in(g);
    bool masked = is_masked(call), apart = job_lays_heads_out(job);
    if (masked || job_repeats_heads(job)) {
        uint64_t elements = repeated_elements(&job->model, h.k);
        h.k = local(&f, repeat_heads(g, h.k, elements));
        h.v = local(&f, repeat_heads(g, h.v, elements));
    }
    if (apart)
        lay_heads_out(&f, &h, &job->model);
    if (masked) {
        struct var mask = arguments_of(call->trainer, call->layer)->mask;
        shape.mask_elements = job_rows(job) * tokens * tokens;
        shape.mask = mask.width == 2 ? mask.storage : NULL;
    }
    if (job_unpads(job))
        return returns(&f, unpadded_attention(g, h, &shape, call));
    struct var mixed = attend(g, h, &shape);
    bool across = (apart && !masked) || model_has(&job->model, FEATURE_ROTARY_PART);
    return returns(&f, across ? copy(g, mixed) : mixed);
}

// modeling_opt.py, modeling_phi.py and modeling_gpt_neox.py leave values out at random in the
// layer, when attention has returned; others inside.
static bool drops_outside(const struct model *m)
{
    return model_has(m, FEATURE_QUERIES_SCALED | FEATURE_PARALLEL) ||
           (model_has(m, FEATURE_SPLIT_PROJECTIONS) && !model_has(m, FEATURE_HEADS_LAST));
}

static struct var project_output(struct scope *f, struct var mixed,
                                 const struct layer_parameters *p)
{
    struct graph *g = f->graph;
    struct var out = linear(g, mixed, p->o, p->o_bias);
    if (!drops_outside(model_of(g)))
        return returns(f, dropped(g, out));
    return dropped(g, returns(f, out));
}

struct var attention(struct graph *g, struct var x, const struct layer_call *call,
                     struct var *weights)
{
    if (model_has(model_of(g), FEATURE_WIDE_SCORES))
        return gptj_attention(g, x, call, weights);
    struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct model *m = &t->job->model;
    bool eager = job_attends_eagerly(t->job);
    bool math = job_attention_kernel(t->job) == KERNEL_MATH && !is_masked(call);
    uint64_t ulysses = t->job->ulysses;
    uint64_t kv_heads = m->kv_heads > ulysses ? m->kv_heads : ulysses;
    struct attention_shape shape = {job_tokens(t->job),
                                    m->heads,
                                    kv_heads,
                                    m->head_dim,
                                    .sequence = job_sequence_tokens(t->job) * ulysses,
                                    .spread = ulysses};
    struct scope f = scope_in(g);
    struct var gate = {NULL, NO_NODE, 0, 0};
    bool gated = model_has(m, FEATURE_GATED_ATTENTION);
    struct heads h = gated ? project_gated(g, x, p, &gate) : project_heads(g, x, call);
    hand_out(g, h.v, call);
    gate = local(&f, gate);
    if (lays_values_out(call) && !model_has(m, FEATURE_QK_NORM_LATE))
        h.v = relayout(g, h.v);
    h.q = local(&f, h.q);
    h.k = local(&f, h.k);
    h.v = local(&f, h.v);
    struct heads turned = rotate_heads(&f, h, call);
    assign(&f, &h.q, turned.q);
    assign(&f, &h.k, turned.k);
    finish_heads(&f, &h, call);
    if (t->cache)
        join_cache(&f, &h, call);
    struct var mixed = ulysses > 1         ? ulysses_attention(g, h, &shape, t->job)
                       : t->ring.ranks > 1 ? ringed_attention(g, h, &t->ring)
                       : eager             ? eager_attention(g, h, call, weights)
                       : math              ? copy(g, math_attention(g, h, call))
                                           : fused_attention(g, h, shape, call);
    if (gated)
        mixed = multiply(g, mixed, sigmoid(g, gate));
    return project_output(&f, mixed, p);
}

// ------------------------------------------------------------------ the layer

// Gate and up as halves of one product.
static struct var fused_mlp(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct scope f = scope_in(g);
    struct var up = local(&f, chunks(g, linear(g, x, p->gate_up, -1), 2));
    struct var gate = local(&f, chunk(g, up, up.elements / 2));
    assign(&f, &up, chunk(g, up, up.elements / 2));
    assign(&f, &up, multiply(g, up, activation(g, gate)));
    return returns(&f, linear(g, up, p->down, -1));
}

static struct var gated_mlp(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct var active = activation(g, linear(g, x, p->gate, p->gate_bias));
    struct var both = multiply(g, active, linear(g, x, p->up, p->up_bias));
    return linear(g, both, p->down, p->down_bias);
}

struct var mlp(struct graph *g, struct var x, const struct layer_parameters *p)
{
    if (p->gate < 0)
        return (p->gate_up < 0 ? plain_mlp : fused_mlp)(g, x, p);
    if (runs_liger_layers(g)) {
        struct var gate = linear(g, x, p->gate, p->gate_bias);
        struct var gated = liger_gate(g, gate, linear(g, x, p->up, p->up_bias));
        return linear(g, gated, p->down, p->down_bias);
    }
    return gated_mlp(g, x, p);
}

static void mlp_of_piece(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    *out = taken(gated_mlp(g, borrowed(in), &call->trainer->layers[call->layer]));
}

// Where Liger's layers are, this is left as it was (model/liger_factory.py: swiglu=False).
static struct var tiled_mlp(struct graph *g, struct var x, const struct layer_call *call)
{
    struct trainer *t = call->trainer;
    uint64_t elements = job_tile_tokens(t->job) * t->job->model.hidden;
    return after(g, graph_tiled(g, x, elements, mlp_of_piece, &t->calls[call->layer]), x);
}

struct var feed_forward(struct scope *layer, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct graph *g = layer->graph;
    if (call->trainer->job->tiled_mlp)
        return tiled_mlp(g, x, call);
    return p->router < 0 ? dropped(g, mlp(g, x, p)) : sparse_block(layer, x, call);
}

// Granite's residual_multiplier.
static struct var multiplied(struct graph *g, struct var x)
{
    return model_has(model_of(g), FEATURE_MULTIPLIERS) ? scale(g, x) : same(x);
}

// The next layer's input, where that is recomputed.
struct var add_last(struct graph *g, struct var residual, struct var hidden)
{
    enum memory_kind kind = g->kind;
    if (g->frame && !g->keeping)
        g->kind = MEMORY_CHECKPOINTS;
    struct var out = add(g, residual, hidden);
    g->kind = kind;
    return out;
}

void decoder_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct scope f = scope_in(g);
    struct var weights = {NULL, NO_NODE, 0, 0}; // of attention
    struct var hidden = local(&f, norm_if_any(g, in, p->input_norm));
    assign(&f, &hidden,
           p->kv_a >= 0         ? latent_attention(g, hidden, call)
           : p->delta_conv >= 0 ? delta_net(g, hidden, call)
                                : attention(g, hidden, call, &weights));
    weights = local(&f, weights);
    assign(&f, &hidden, norm_if_any(g, hidden, p->after_attention_norm));
    assign(&f, &hidden, add(g, in, multiplied(g, hidden)));
    struct var residual = local(&f, hidden);
    assign(&f, &hidden, norm_if_any(g, hidden, p->before_mlp_norm));
    assign(&f, &hidden, feed_forward(&f, hidden, call));
    if (p->sinks >= 0)
        forget(&f, &weights); // the router's take their name
    assign(&f, &hidden, norm_if_any(g, hidden, p->after_mlp_norm));
    assign(&f, &hidden, add_last(g, residual, multiplied(g, hidden)));
    *out = taken(returns(&f, hidden));
}
