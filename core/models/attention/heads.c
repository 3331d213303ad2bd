// Queries, keys and values as attention gets them: projected, normed and turned by their positions,
// in the order and with the copies that each family's attention has (transformers 5.17).
#include "core/models/forward.h"

// ------------------------------------------------------------------ projections

// Turning puts gradients into another layout, unless there is only one head, or Liger does it.
static struct var project(struct graph *g, struct var x, int weight, int bias)
{
    struct var y = linear(g, x, weight, bias);
    bool several = g->parameters[weight].rows > model_of(g)->head_dim;
    return several && !runs_liger_layers(g) ? relayout(g, y) : y;
}

// Views of one product.
static struct heads project_fused(struct graph *g, struct var x, const struct layer_parameters *p)
{
    const struct model *m = model_of(g);
    struct scope f = scope_in(g);
    struct var all = local(&f, linear(g, x, p->qkv, p->qkv_bias));
    uint64_t head = all.elements / (m->heads + 2 * m->kv_heads);
    struct heads h;
    h.q = slice(g, all, m->heads * head);
    h.k = slice(g, all, m->kv_heads * head);
    h.v = slice(g, all, m->kv_heads * head);
    h.q = relayout(g, h.q);
    h.k = relayout(g, h.k);
    ends(&f);
    return h;
}

// Norms over all heads come before these are told apart.
static struct heads project_normed(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct heads h;
    h.q = rms_norm(g, linear(g, x, p->q, p->q_bias), p->q_norm);
    h.k = rms_norm(g, linear(g, x, p->k, p->k_bias), p->k_norm);
    h.v = linear(g, x, p->v, p->v_bias);
    h.q = relayout(g, h.q);
    h.k = relayout(g, h.k);
    return h;
}

bool is_masked(const struct layer_call *call)
{
    const struct job *job = call->trainer->job;
    if (job->ulysses > 1) // one is made, and left out (ulysses_sp.py, uattn_wrapper)
        return false;
    return job_masks_rows(job) || job_masks_always(job) ||
           (job->model.layer[call->layer].sliding && job_masks_windows(job));
}

// Whether what follows wants the values head by head, so that their gradient is laid out anew.
bool lays_values_out(const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct model *m = &t->job->model;
    uint64_t ulysses = t->job->ulysses;
    // DeepSpeed's comes as it should lie, but for one head or several sequences
    bool copied =
        ulysses > 1 && (!job_is_zero(t->job) || ulysses == m->kv_heads || job_rows(t->job) > 1);
    bool older = job_repeats_heads(t->job) && m->kv_heads > 1 &&
                 (m->heads != m->kv_heads || job_lays_heads_out(t->job));
    return copied || older || t->ring.ranks > 1 || job_attends_eagerly(t->job) ||
           (job_attention_kernel(t->job) == KERNEL_MATH && !is_masked(call)) ||
           (is_masked(call) && m->heads != m->kv_heads && m->kv_heads > 1);
}

static struct var project_values(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct var values = linear(g, x, p->v, p->v_bias);
    return lays_values_out(call) ? relayout(g, values) : values;
}

// All three projections first, then the norms.
static struct heads project_then_norm(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct heads h;
    h.q = project(g, x, p->q, p->q_bias);
    h.k = project(g, x, p->k, p->k_bias);
    h.v = project_values(g, x, call);
    h.q = rms_norm(g, h.q, p->q_norm);
    h.k = rms_norm(g, h.k, p->k_norm);
    return h;
}

// Qwen3-Next: a gate for every value of attention comes with the queries, and is copied out of
// them.
struct heads project_gated(struct graph *g, struct var x, const struct layer_parameters *p,
                           struct var *gate)
{
    struct scope f = scope_in(g);
    struct var both = local(&f, chunks(g, linear(g, x, p->q, p->q_bias), 2));
    struct var queries = local(&f, chunk(g, both, both.elements / 2));
    *gate = copy(g, chunk(g, both, both.elements / 2));
    struct heads h;
    h.q = rms_norm(g, relayout(g, same(queries)), p->q_norm);
    h.k = rms_norm(g, project(g, x, p->k, p->k_bias), p->k_norm);
    h.v = linear(g, x, p->v, p->v_bias);
    ends(&f);
    return h;
}

struct heads project_heads(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = model_of(g);
    if (model_has(m, FEATURE_SPLIT_PROJECTIONS))
        return project_split(g, x, p);
    if (model_has(m, FEATURE_FUSED_PROJECTIONS))
        return project_fused(g, x, p);
    if (model_has(m, FEATURE_QUERIES_SCALED))
        return project_scaled(g, x, p);
    if (model_has(m, FEATURE_PARTS_HELD) && !model_has(m, FEATURE_PARALLEL))
        return project_first(g, x, p);
    if (model_has(m, FEATURE_VISION_WINDOWS)) // modeling_qwen2_5_vl.py, likewise
        return project_first(g, x, p);
    if (model_has(m, FEATURE_QK_NORM_LATE))
        return project_then_norm(g, x, call);
    if (model_has(m, FEATURE_QK_NORM_WIDE))
        return project_normed(g, x, p);
    bool turned = !m->layer[call->layer].unrotated && !model_has(m, FEATURE_ROTARY_COMPLEX);
    bool later = model_has(m, FEATURE_QK_NORM_TURNED);
    struct heads h;
    h.q = (turned ? project : linear)(g, x, p->q, p->q_bias);
    h.q = norm_if_any(g, h.q, later ? -1 : p->q_norm);
    h.k = (turned ? project : linear)(g, x, p->k, p->k_bias);
    h.k = norm_if_any(g, h.k, later ? -1 : p->k_norm);
    h.v = linear(g, x, p->v, p->v_bias);
    return h;
}

// What comes behind the positions.
void finish_heads(struct scope *f, struct heads *h, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = model_of(f->graph);
    if (model_has(m, FEATURE_QK_NORM_TURNED)) {
        assign(f, &h->q, rms_norm(f->graph, h->q, p->q_norm));
        assign(f, &h->k, rms_norm(f->graph, h->k, p->k_norm));
    }
    if (model_has(m, FEATURE_QUERY_SCALE))
        assign(f, &h->q, scale_queries(f->graph, h->q, job_sequence_tokens(call->trainer->job)));
}

// ------------------------------------------------------------------ positions

struct var rotate_half(struct graph *g, struct var x)
{
    struct scope f = scope_in(g);
    struct var first = local(&f, first_half(g, x)), second = local(&f, second_half(g, x));
    return returns(&f, join(g, negate(g, second), first));
}

struct var rotate(struct graph *g, struct var x, const struct layer_arguments *also)
{
    struct var plain = multiply_constant(g, x, also->cosine);
    return add(g, plain, multiply_constant(g, rotate_half(g, x), also->sine));
}

// Of two halves of each head: turned by the angles, and joined.
struct var rotate_pair(struct graph *g, struct var first, struct var second,
                       const struct layer_arguments *also)
{
    struct var plain = multiply_constant(g, first, also->cosine);
    struct var one = subtract(g, plain, multiply_constant(g, second, also->sine));
    plain = multiply_constant(g, second, also->cosine);
    return join(g, one, add(g, plain, multiply_constant(g, first, also->sine)));
}

// modeling_gpt_oss.py: the halves are told apart first.
static struct var rotate_halves(struct graph *g, struct var x, const struct layer_arguments *also)
{
    struct scope f = scope_in(g);
    struct var both = local(&f, chunks(g, x, 2));
    struct var first = local(&f, chunk(g, both, x.elements / 2));
    struct var second = local(&f, chunk(g, both, x.elements / 2));
    return returns(&f, rotate_pair(g, first, second, also));
}

struct parts parts_of(struct scope *f, struct var x, const struct model *m)
{
    uint64_t elements = x.elements / m->head_dim * m->rotary_dim;
    struct parts p;
    p.turning = local(f, elements == x.elements ? x : slice(f->graph, x, elements));
    p.rest = local(f, slice(f->graph, x, x.elements - elements));
    return p;
}

struct var join_rest(struct graph *g, struct var turned, struct var rest)
{
    return join(g, turned, cast(g, rest, turned.width)); // autocast joins in the wider type
}

static struct heads rotate_parts(struct graph *g, struct heads h,
                                 const struct layer_arguments *also)
{
    const struct model *m = model_of(g);
    struct scope f = scope_in(g);
    struct parts q = parts_of(&f, h.q, m), k = parts_of(&f, h.k, m);
    h.q = join_rest(g, rotate(g, q.turning, also), q.rest);
    h.k = join_rest(g, rotate(g, k.turning, also), k.rest);
    ends(&f);
    return h;
}

// OLMo's positions are in fp32, and so is what they make of the heads.
static struct heads rotate_wide(struct graph *g, struct heads h, const struct layer_arguments *also)
{
    struct scope f = scope_in(g);
    struct var q = local(&f, rotate(g, h.q, also)), k = local(&f, rotate(g, h.k, also));
    h.q = cast(g, q, h.q.width);
    h.k = cast(g, k, h.k.width);
    ends(&f);
    return h;
}

// Queries and keys with their positions.
struct heads rotate_heads(struct scope *f, struct heads h, const struct layer_call *call)
{
    struct graph *g = f->graph;
    const struct model *m = model_of(g);
    const struct layer_arguments *also = arguments_of(call->trainer, call->layer);
    if (model_has(m, FEATURE_ROTARY_COMPLEX))
        return llama4_turned(g, h, call);
    if (m->layer[call->layer].unrotated)
        return (struct heads){same(h.q), same(h.k), h.v};
    if (model_has(m, FEATURE_PARTS_LATE))
        return rotate_parts_late(f, h, also);
    if (model_has(m, FEATURE_ROTARY_PART))
        return rotate_parts(g, h, also);
    if (model_has(m, FEATURE_ROTARY_CAST))
        return rotate_cast(g, h, also);
    if (model_has(m, FEATURE_ROTARY_WIDE))
        return rotate_wide(g, h, also);
    if (runs_liger_layers(g)) {
        h.q = unnamed(op_liger_turn(g, h.q, also->cosine, also->sine));
        h.k = unnamed(op_liger_turn(g, h.k, also->cosine, also->sine));
        return h;
    }
    bool halves = model_has(m, FEATURE_ROTARY_HALVES);
    h.q = (halves ? rotate_halves : rotate)(g, h.q, also);
    h.k = (halves ? rotate_halves : rotate)(g, h.k, also);
    return h;
}
