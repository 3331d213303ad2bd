// The models' forward pass, written as transformers 5.17 reads (modeling_qwen3.py and the families
// that share its shape): one operator a call, with Python's lifetimes (scope.h).
#include "core/models/forward.h"

#include "core/models/units.h"
#include "core/models/vision/vision.h"
#include "core/ops/scratch.h"

static const struct model *model_of(const struct graph *g)
{
    const struct trainer *t = g->owner;
    return &t->job->model;
}

static bool has_liger_layers(const struct graph *g)
{
    const struct trainer *t = g->owner;
    return t->job->layer_kernels == KERNELS_OF_LIGER;
}

// ------------------------------------------------------------------ norms

static struct var norm_forward(struct graph *g, struct var x, int weight)
{
    const struct model *m = model_of(g);
    struct scope f = scope_in(g);
    struct var hidden = local(&f, cast(g, x, 4));
    uint64_t rows = x.elements / g->parameters[weight].rows;
    struct var variance = local(&f, mean(g, power(g, hidden), rows));
    assign(&f, &hidden, multiply(g, hidden, rsqrt(g, add_constant(g, variance))));
    if (model_has(m, FEATURE_NORM_FROM_ONE)) { // Gemma's, all in fp32
        forget(&f, &variance);
        struct var wide = cast(g, op_parameter(g, weight), 4);
        assign(&f, &hidden, multiply_row(g, hidden, add_constant(g, wide)));
        return returns(&f, cast(g, hidden, x.width));
    }
    if (model_has(m, FEATURE_NORM_WIDE)) // the product, not its factor, is cast
        return returns(&f, cast(g, multiply_weight(g, weight, hidden), x.width));
    return returns(&f, multiply_weight(g, weight, cast(g, hidden, x.width)));
}

struct var rms_norm(struct graph *g, struct var x, int weight)
{
    bool other =
        model_has(model_of(g), FEATURE_NORM_CENTERED | FEATURE_LAYER_NORM | FEATURE_NORM_UNBIASED);
    graph_at_module(g, weight, &operation_multiply_weight, MOMENT_FORWARD);
    struct var out = has_liger_layers(g) ? unnamed(op_liger_norm(g, x, weight))
                     : other             ? other_norm(g, borrowed(x), weight)
                                         : norm_forward(g, borrowed(x), weight);
    graph_at_module(g, weight, &operation_multiply_weight, MOMENT_FORWARD_DONE);
    return after(g, out, x);
}

// The norms before and behind attention and MLP, where a family has them.
static struct var norm_if_any(struct graph *g, struct var x, int norm)
{
    return norm < 0 ? same(x) : rms_norm(g, x, norm);
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
static struct heads rotate_heads(struct scope *f, struct heads h, const struct layer_call *call)
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
    if (has_liger_layers(g)) {
        h.q = unnamed(op_liger_turn(g, h.q, also->cosine, also->sine));
        h.k = unnamed(op_liger_turn(g, h.k, also->cosine, also->sine));
        return h;
    }
    bool halves = model_has(m, FEATURE_ROTARY_HALVES);
    h.q = (halves ? rotate_halves : rotate)(g, h.q, also);
    h.k = (halves ? rotate_halves : rotate)(g, h.k, also);
    return h;
}

// ------------------------------------------------------------------ attention

// Turning puts gradients into another layout, unless there is only one head, or Liger does it.
static struct var project(struct graph *g, struct var x, int weight, int bias)
{
    struct var y = linear(g, x, weight, bias);
    bool several = g->parameters[weight].rows > model_of(g)->head_dim;
    return several && !has_liger_layers(g) ? relayout(g, y) : y;
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

static bool is_masked(const struct layer_call *call)
{
    const struct job *job = call->trainer->job;
    return job_masks_rows(job) || job_masks_always(job) ||
           (job->model.layer[call->layer].sliding && job_masks_windows(job));
}

// Whether what follows wants the values head by head, so that their gradient is laid out anew.
static bool lays_values_out(const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct model *m = &t->job->model;
    uint64_t ulysses = t->job->ulysses;
    // DeepSpeed's comes as it should lie, but for one head
    bool copied = ulysses > 1 && (!job_is_zero(t->job) || ulysses == m->kv_heads);
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
static struct heads project_gated(struct graph *g, struct var x, const struct layer_parameters *p,
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

// modeling_qwen2_5_vl.py: all three projections, then the heads are told apart.
static struct heads project_apart(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct heads h;
    h.q = linear(g, x, p->q, p->q_bias);
    h.k = linear(g, x, p->k, p->k_bias);
    h.v = linear(g, x, p->v, p->v_bias);
    h.q = relayout(g, h.q);
    h.k = relayout(g, h.k);
    return h;
}

static struct heads project_heads(struct graph *g, struct var x, const struct layer_call *call)
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
    if (model_has(m, FEATURE_VISION_WINDOWS))
        return project_apart(g, x, p);
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
static void finish_heads(struct scope *f, struct heads *h, const struct layer_call *call)
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
        h.k = local(&f, repeat_heads(g, h.k, h.q.elements));
        h.v = local(&f, repeat_heads(g, h.v, h.q.elements));
    }
    if (apart)
        lay_heads_out(&f, &h, &job->model);
    if (masked) {
        struct var mask = arguments_of(call->trainer, call->layer)->mask;
        shape.mask_elements = job_rows(job) * tokens * tokens;
        shape.mask = mask.width == 2 ? mask.storage : NULL;
    }
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
    if (has_liger_layers(g)) {
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

static void decoder_layer(struct graph *g, struct var *out, struct var in, void *what)
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

// ------------------------------------------------------------------ what layers are given

// Those of context parallel come with the batch.
static struct var positions_of(struct trainer *t, uint64_t tokens)
{
    struct graph *g = &t->graph;
    if (t->ring.ranks > 1)
        return same(ring_positions(&t->ring));
    return made_of(g, constant(g, tokens, 8));
}

// Cosine and sine of the rotary embedding: computed in fp32, kept in the compute type.
static void rotary(struct trainer *t, uint64_t tokens, struct layer_arguments *to)
{
    struct graph *g = &t->graph;
    const struct model *m = &t->job->model;
    if (model_has(m, FEATURE_ROTARY_COMPLEX)) {
        complex_rotary(t, tokens, to);
        return;
    }
    bool halves = model_has(m, FEATURE_ROTARY_HALVES);
    uint64_t values = tokens * m->rotary_dim / (halves ? 2 : 1);
    uint32_t width = model_has(m, FEATURE_ROTARY_WIDE) ? 4 : t->width;
    struct scope f = scope_in(g);
    local(&f, constant(g, tokens, 4)); // positions
    struct var angles = local(&f, constant(g, tokens * m->rotary_dim / 2, 4));
    gemm_workspace(g); // the angles are a matrix product
    local(&f, halves ? angles : constant(g, values, 4));
    struct var cosine = local(&f, made_of(g, constant(g, values, 4)));
    struct var sine = local(&f, made_of(g, constant(g, values, 4)));
    to->cosine = taken(width == 4 ? cosine : constant(g, values, width));
    to->sine = taken(width == 4 ? sine : constant(g, values, width));
    ends(&f);
}

// Everything that layers are given besides their input.
static struct var make_arguments(struct trainer *t)
{
    // without padding, sequences follow each other in one row
    uint64_t tokens =
        t->job->loss == LOSS_POLICY ? job_tokens(t->job) : job_sequence_tokens(t->job);
    struct layer_arguments *full = &t->arguments[LAYER_FULL];
    struct layer_arguments *sliding = &t->arguments[LAYER_SLIDING];
    struct var positions =
        taken(has_pictures(t) && has_grids(t) ? picture_positions(t) : positions_of(t, tokens));
    if (model_has(&t->job->model, FEATURE_SCORES_BIASED))
        full->cosine = taken(biases_of_keys(t));
    make_masks(t);
    if (model_has(&t->job->model, FEATURE_NO_ROTARY))
        return positions;
    if (has_grids(t))
        rotary_of_grids(t, full);
    else
        rotary(t, tokens, full);
    if (model_has(&t->job->model, FEATURE_LOCAL_ROTARY)) {
        rotary(t, tokens, sliding);
    } else {
        sliding->cosine = var_share(full->cosine);
        sliding->sine = var_share(full->sine);
    }
    return positions;
}

static struct var embed(struct trainer *t)
{
    struct graph *g = &t->graph;
    bool scales = model_has(&t->job->model, FEATURE_EMBEDDING_SCALE); // within the embedding
    struct var plain = unnamed(op_embedding(g, t->embedding, t->ids));
    if (!scales)
        plain = op_leaf(g, plain, t->embedding);
    if (model_has(&t->job->model, FEATURE_ALIBI))
        return rms_norm(g, plain, t->embedding + 1);
    if (model_has(&t->job->model, FEATURE_MULTIPLIERS))
        return scale(g, plain);
    if (!scales)
        return plain;
    struct var factor = {NULL, NO_NODE, t->width, 1}; // a buffer, cast where it has another type
    if (job_is_mixed(t->job))
        factor = constant(g, 1, t->width);
    return op_leaf(g, multiply_constant(g, plain, factor), t->embedding);
}

// ------------------------------------------------------------------ the model

typedef void layer_forward(struct graph *g, struct var *out, struct var in, void *what);

// The first row that fits.
static layer_forward *layer_of(const struct model *m)
{
    static const struct {
        feature_set has;
        layer_forward *layer;
    } rows[] = {
        {FEATURE_HEADS_AMONG, falcon_layer},  {FEATURE_SCORES_BIASED, mpt_layer},
        {FEATURE_QUERIES_SCALED, opt_layer},  {FEATURE_PARALLEL, parallel_layer},
        {FEATURE_PARTS_HELD, stablelm_layer}, {FEATURE_HEADS_LAST, gpt_layer},
        {FEATURE_ALIBI, bloom_layer},
    };
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (model_has(m, rows[i].has))
            return rows[i].layer;
    return decoder_layer;
}

// Without a graph nothing is recomputed.
static struct var layers_of(struct trainer *t, struct var embedded)
{
    struct graph *g = &t->graph;
    bool checkpointing = t->job->checkpointing && g->recording;
    layer_forward *layer = layer_of(&t->job->model);
    struct scope f = scope_in(g);
    struct var hidden = local(&f, embedded), output = local(&f, (struct var){NULL, NO_NODE, 0, 0});
    g->checkpoints_on_host = t->job->checkpoint_offload;
    for (int i = 0; i < (int)t->job->model.layers; i++) {
        struct var next;
        const struct layer_arguments *also = arguments_of(t, i);
        g->shared_arguments[ARGUMENT_COSINE] = also->cosine;
        g->shared_arguments[ARGUMENT_SINE] = also->sine;
        g->shared_arguments[ARGUMENT_MASK] = also->mask;
        g->kind = checkpointing || !g->recording ? MEMORY_WORKING : MEMORY_SAVED;
        unit_enter(t, i);
        assign(&f, &hidden, unit_mark(t, hidden, i, true));
        if (checkpointing)
            next = graph_checkpoint(g, hidden, layer, &t->calls[i]);
        else
            layer(g, &next, hidden, &t->calls[i]);
        unit_leave(t, i);
        assign(&f, &hidden, unit_mark(t, unnamed(next), i, false));
        if (model_has(&t->job->model, FEATURE_VISION_QWEN3))
            assign(&f, &output, hidden); // layer_outputs
        assign(&f, &hidden, with_deeper_features(t, hidden, i));
    }
    g->checkpoints_on_host = false;
    return returns(&f, hidden);
}

// TRL asks for the routers' logits of what is trained.
static void ask_for_router_logits(struct trainer *t)
{
    bool asked = job_adds_router_loss(t->job) && t->graph.recording;
    t->router_logits =
        asked ? NEW(t->machine->arena, struct var, (ptrdiff_t)t->job->model.layers) : NULL;
}

// For past_key_values, which the output has until the loss is known.
static void make_room_for_keys(struct trainer *t)
{
    bool handed = job_is_old_bigcode(t->job) && t->job->checkpointing && t->graph.recording;
    t->handed_out =
        handed ? NEW(t->machine->arena, struct var, (ptrdiff_t)t->job->model.layers) : NULL;
}

static void drop_handed_out(struct trainer *t)
{
    for (int i = 0; t->handed_out && i < (int)t->job->model.layers; i++)
        var_drop(&t->graph, &t->handed_out[i]);
    t->handed_out = NULL;
}

// With learned positions, whose rows keep their name as the embedding does, and what is left out at
// random.
static struct var embedded_in_place(struct scope *f, struct var *embedded, struct var positions)
{
    struct graph *g = f->graph;
    const struct trainer *t = g->owner;
    if (t->positions < 0)
        return t->job->model.dropouts.embedding ? dropout(g, *embedded) : same(*embedded);
    struct var rows = local(f, learned_positions(g, positions));
    if (model_has(&t->job->model, FEATURE_WORDS_PROJECTED))
        assign(f, embedded, linear(g, *embedded, t->positions + 2, -1));
    struct var sum = add(g, *embedded, expand(g, rows, embedded->elements));
    return t->job->model.dropouts.embedding ? dropout(g, sum) : sum;
}

static void drop_angles(struct trainer *t)
{
    for (int i = 0; i < LAYER_KINDS; i++) {
        var_drop(&t->graph, &t->arguments[i].cosine);
        var_drop(&t->graph, &t->arguments[i].sine);
    }
    t->graph.shared_arguments[ARGUMENT_COSINE].storage = NULL;
    t->graph.shared_arguments[ARGUMENT_SINE].storage = NULL;
}

struct output model_forward(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    int root = unit_number(t, PART_NORMS), embedding = unit_number(t, PART_EMBEDDING);
    g->recording = g->keeping = !t->is_reference && !t->without_graph;
    ask_for_router_logits(t);
    make_room_for_keys(t);
    g->kind = MEMORY_WORKING;
    hold_pictures(t);
    unit_enter(t, root);
    unit_enter(t, embedding);
    struct var embedded = local(&f, unit_mark(t, embed(t), embedding, false));
    unit_leave(t, embedding);
    assign(&f, &embedded, with_pictures(t, embedded));
    struct var positions = make_arguments(t);
    g->shared_arguments[ARGUMENT_POSITIONS] = positions;
    struct var first = embedded_in_place(&f, &embedded, positions);
    struct var hidden = local(&f, layers_of(t, first));
    if (g->recording)
        machine_phase(t->machine, PHASE_LOSS);
    int tail = unit_of_tail(t);
    unit_enter(t, tail);
    assign(&f, &hidden, unit_mark(t, hidden, tail, true));
    if (t->norm_count)
        assign(&f, &hidden, rms_norm(g, hidden, t->final_norm));
    if (model_has(&t->job->model, FEATURE_WORDS_PROJECTED))
        assign(&f, &hidden, linear(g, hidden, t->positions + 1, -1));
    var_drop(g, &t->layer_weights);
    drop_masks(t);
    drop_pictures(t);
    struct output out = {returns(&f, hidden), positions};
    if (model_has(&t->job->model,
                  FEATURE_ROTARY_PAIRS | FEATURE_SCORES_BIASED | FEATURE_KEYS_BIASED))
        drop_angles(t); // no layer keeps them
    return out;
}

void model_let_go(struct trainer *t, struct output o)
{
    var_drop(&t->graph, &o.positions);
    let_pictures_go(t);
    drop_angles(t);
    drop_handed_out(t);
}
