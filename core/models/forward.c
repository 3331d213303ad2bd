// The models' forward pass, written as transformers 5.17 reads (modeling_qwen3.py and the families
// that share its shape): one operator a line, and every local variable dropped where Python drops
// it.
#include "core/models/losses.h"
#include "core/models/trainer.h"
#include "core/models/units.h"
#include "core/ops/ops.h"
#include "core/ops/scratch.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

// Gemma's: scaled by one more than the weight, all in fp32.
static struct var scale_from_one(struct graph *g, struct var normed, int weight, uint32_t width)
{
    struct var stored = op_parameter(g, weight), wide = op_cast(g, stored, 4);
    struct var factor = op_add_constant(g, wide);
    drop(g, wide);
    struct var scaled = op_multiply_row(g, normed, factor);
    drop(g, normed);
    drop(g, factor);
    struct var out = op_cast(g, scaled, width);
    drop(g, scaled);
    return out;
}

struct var rms_norm(struct graph *g, struct var x, int weight)
{
    const struct trainer *t = g->owner;
    uint64_t rows = x.elements / g->parameters[weight].rows;
    graph_at_module(g, weight, &operation_multiply_weight, MOMENT_FORWARD);
    struct var hidden = op_cast(g, x, 4);
    struct var squares = op_power(g, hidden);
    struct var variance = op_mean(g, squares, rows);
    drop(g, squares);
    struct var shifted = op_add_constant(g, variance);
    struct var scale = op_rsqrt(g, shifted);
    drop(g, shifted);
    struct var normed = op_multiply(g, hidden, scale);
    drop(g, scale);
    drop(g, hidden);
    if (model_has(&t->job->model, FEATURE_NORM_FROM_ONE)) {
        drop(g, variance);
        return scale_from_one(g, normed, weight, x.width);
    }
    bool wide = model_has(&t->job->model, FEATURE_NORM_WIDE); // the product, not its factor, cast
    struct var factor = wide ? var_share(normed) : op_cast(g, normed, x.width);
    struct var scaled = op_multiply_weight(g, weight, factor);
    struct var out = wide ? op_cast(g, scaled, x.width) : var_share(scaled);
    drop(g, scaled);
    drop(g, factor);
    drop(g, normed);
    drop(g, variance);
    graph_at_module(g, weight, &operation_multiply_weight, MOMENT_FORWARD_DONE);
    return out;
}

static struct var rotate(struct graph *g, struct var x, struct var cosine, struct var sine)
{
    struct var plain = op_multiply_constant(g, x, cosine);
    struct var first = op_first_half(g, x), second = op_second_half(g, x);
    struct var negative = op_negate(g, second);
    struct var turned = op_join(g, negative, first);
    drop(g, negative);
    drop(g, first);
    drop(g, second);
    struct var crossed = op_multiply_constant(g, turned, sine);
    drop(g, turned);
    struct var out = op_add(g, plain, crossed);
    drop(g, plain);
    drop(g, crossed);
    return out;
}

// Of two halves of each head: turned by the angles, and joined.
struct var rotate_pair(struct graph *g, struct var first, struct var second,
                       const struct layer_arguments *also)
{
    struct var plain = op_multiply_constant(g, first, also->cosine);
    struct var crossed = op_multiply_constant(g, second, also->sine);
    struct var one = op_subtract(g, plain, crossed);
    drop(g, plain);
    drop(g, crossed);
    plain = op_multiply_constant(g, second, also->cosine);
    crossed = op_multiply_constant(g, first, also->sine);
    struct var other = op_add(g, plain, crossed);
    drop(g, plain);
    drop(g, crossed);
    struct var out = op_join(g, one, other);
    drop(g, one);
    drop(g, other);
    return out;
}

// modeling_gpt_oss.py: the halves are told apart first.
static struct var rotate_halves(struct graph *g, struct var x, const struct layer_arguments *also)
{
    struct var both = op_chunks(g, var_share(x), 2);
    struct var first = op_chunk(g, both, x.elements / 2),
               second = op_chunk(g, both, x.elements / 2);
    struct var out = rotate_pair(g, first, second, also);
    drop(g, first);
    drop(g, second);
    drop(g, both);
    return out;
}

// Of each head a first part is turned, the rest joined to it, be there none.
struct parts {
    struct var turning, rest;
};

static struct parts parts_of(struct graph *g, struct var x, const struct model *m)
{
    uint64_t elements = x.elements / m->head_dim * m->rotary_dim;
    struct var turning = elements == x.elements ? var_share(x) : op_slice(g, x, elements);
    return (struct parts){turning, op_slice(g, x, x.elements - elements)};
}

static struct var rotate_part(struct graph *g, struct parts p, const struct layer_arguments *also)
{
    struct var turned = rotate(g, p.turning, also->cosine, also->sine);
    struct var rest = op_cast(g, p.rest, turned.width); // autocast joins in the wider type
    struct var out = op_join(g, turned, rest);
    drop(g, rest);
    drop(g, turned);
    return out;
}

static void drop_parts(struct graph *g, struct parts p)
{
    drop(g, p.turning);
    drop(g, p.rest);
}

static struct heads rotate_parts(struct graph *g, struct heads h, const struct model *m,
                                 const struct layer_arguments *also)
{
    struct parts q = parts_of(g, h.q, m), k = parts_of(g, h.k, m);
    struct heads out = {.q = rotate_part(g, q, also), .k = rotate_part(g, k, also), .v = h.v};
    drop_parts(g, q);
    drop_parts(g, k);
    return out;
}

static struct heads rotate_heads(struct graph *g, struct heads h, const struct layer_call *call)
{
    const struct model *m = &call->trainer->job->model;
    const struct layer_arguments *also = arguments_of(call->trainer, call->layer);
    struct heads out = h;
    if (m->layer[call->layer].unrotated) {
        out.q = var_share(h.q);
        out.k = var_share(h.k);
        return out;
    }
    if (model_has(m, FEATURE_ROTARY_PART))
        return rotate_parts(g, h, m, also);
    if (model_has(m, FEATURE_ROTARY_HALVES)) {
        out.q = rotate_halves(g, h.q, also);
        out.k = rotate_halves(g, h.k, also);
        return out;
    }
    out.q = rotate(g, h.q, also->cosine, also->sine);
    out.k = rotate(g, h.k, also->cosine, also->sine);
    if (!model_has(m, FEATURE_ROTARY_WIDE))
        return out;
    struct heads wide = out;
    out.q = op_cast(g, wide.q, h.q.width);
    out.k = op_cast(g, wide.k, h.k.width);
    drop(g, wide.q);
    drop(g, wide.k);
    return out;
}

// Turning puts gradients into another layout, unless there is only one head.
static struct var project(struct graph *g, struct var x, int weight, int bias, int norm)
{
    const struct trainer *t = g->owner;
    struct var y = op_linear(g, x, weight, bias);
    if (g->parameters[weight].rows > t->job->model.head_dim)
        y = op_relayout(g, y);
    if (norm < 0)
        return y;
    struct var normed = rms_norm(g, y, norm);
    drop(g, y);
    return normed;
}

// Views of one product.
static struct heads project_fused(struct graph *g, struct var x, const struct layer_parameters *p,
                                  const struct model *m)
{
    struct var all = op_linear(g, x, p->qkv, -1);
    uint64_t head = all.elements / (m->heads + 2 * m->kv_heads);
    struct heads h = {op_slice(g, all, m->heads * head), op_slice(g, all, m->kv_heads * head),
                      op_slice(g, all, m->kv_heads * head)};
    drop(g, all);
    h.q = op_relayout(g, h.q);
    h.k = op_relayout(g, h.k);
    return h;
}

// Norms over all heads come before these are told apart.
static struct heads project_normed(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct var q = op_linear(g, x, p->q, p->q_bias), k;
    struct heads h = {.q = rms_norm(g, q, p->q_norm)};
    drop(g, q);
    k = op_linear(g, x, p->k, p->k_bias);
    h.k = rms_norm(g, k, p->k_norm);
    drop(g, k);
    h.v = op_linear(g, x, p->v, p->v_bias);
    h.q = op_relayout(g, h.q);
    h.k = op_relayout(g, h.k);
    return h;
}

// All three projections first, then the norms.
static struct heads project_then_norm(struct graph *g, struct var x,
                                      const struct layer_parameters *p)
{
    struct var q = project(g, x, p->q, p->q_bias, -1), k = project(g, x, p->k, p->k_bias, -1);
    struct heads h = {.v = op_linear(g, x, p->v, p->v_bias)};
    h.q = rms_norm(g, q, p->q_norm);
    drop(g, q);
    h.k = rms_norm(g, k, p->k_norm);
    drop(g, k);
    return h;
}

static struct heads project_heads(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = &call->trainer->job->model;
    if (model_has(m, FEATURE_FUSED_PROJECTIONS))
        return project_fused(g, x, p, m);
    if (model_has(m, FEATURE_QK_NORM_WIDE))
        return project_normed(g, x, p);
    if (model_has(m, FEATURE_QK_NORM_LATE))
        return project_then_norm(g, x, p);
    bool turned = !m->layer[call->layer].unrotated;
    struct heads h;
    h.q = turned ? project(g, x, p->q, p->q_bias, p->q_norm) : op_linear(g, x, p->q, p->q_bias);
    h.k = turned ? project(g, x, p->k, p->k_bias, p->k_norm) : op_linear(g, x, p->k, p->k_bias);
    h.v = op_linear(g, x, p->v, p->v_bias);
    return h;
}

// Ulysses: every rank attends over all tokens with its share of the heads.
static struct var exchanged_attention(struct graph *g, struct var q, struct var k, struct var v,
                                      const struct attention_shape *shape)
{
    uint64_t kv_elements = shape->tokens * shape->kv_heads * shape->head_dim;
    struct var k_repeated = op_repeat(g, k, kv_elements);
    struct var q_mine = op_exchange_in(g, q);
    struct var k_mine = op_exchange_in(g, k_repeated);
    drop(g, k_repeated);
    struct var v_repeated = op_repeat(g, v, kv_elements);
    struct var v_mine = op_exchange_in(g, v_repeated);
    drop(g, v_repeated);
    struct var mixed = op_attention(g, q_mine, k_mine, v_mine, shape);
    struct var received;
    struct var out = op_exchange_out(g, mixed, &received);
    drop(g, q_mine);
    drop(g, k_mine);
    drop(g, v_mine);
    drop(g, received);
    return out;
}

// Where halves were joined on the way, the heads have to be laid out again.
static struct var ringed_attention(struct graph *g, struct var q, struct var k, struct var v,
                                   struct ring *r)
{
    struct var mixed = ring_attention(g, q, k, v, r);
    if (r->rank + 1 == r->ranks)
        return mixed;
    struct var out = op_copy(g, mixed);
    drop(g, mixed);
    return out;
}

static bool is_masked(const struct layer_call *call)
{
    const struct job *job = call->trainer->job;
    return job->model.layer[call->layer].sliding && job_masks_windows(job);
}

// The kernel's output lies as its queries do, which a join has brought into the heads' order. A
// mask excludes shared heads of keys and values: they are repeated.
static struct var fused_attention(struct graph *g, struct heads h, struct attention_shape shape,
                                  const struct layer_call *call)
{
    const struct job *job = call->trainer->job;
    const struct model *m = &job->model;
    uint64_t tokens = job_sequence_tokens(job);
    bool masked = is_masked(call);
    struct var k = masked ? repeat_heads(g, h.k, h.q.elements, m) : var_share(h.k);
    struct var v = masked ? repeat_heads(g, h.v, h.q.elements, m) : var_share(h.v);
    shape.mask_elements = masked ? job->batch * tokens * tokens : 0;
    struct var mixed = op_attention(g, h.q, k, v, &shape);
    struct var out = model_has(m, FEATURE_ROTARY_PART) ? op_copy(g, mixed) : var_share(mixed);
    drop(g, mixed);
    drop(g, k);
    drop(g, v);
    return out;
}

static struct var attention(struct graph *g, struct var x, const struct layer_call *call,
                            struct var *weights)
{
    struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct model *m = &t->job->model;
    bool eager = job_attends_eagerly(t->job);
    uint64_t ulysses = t->job->ulysses;
    uint64_t kv_heads = m->kv_heads > ulysses ? m->kv_heads : ulysses;
    struct attention_shape shape = {job_tokens(t->job), m->heads, kv_heads, m->head_dim};
    struct heads h = project_heads(g, x, call);
    if (ulysses > 1 || t->ring.ranks > 1 || eager ||
        (is_masked(call) && m->heads != m->kv_heads && m->kv_heads > 1))
        h.v = op_relayout(g, h.v);
    struct heads turned = rotate_heads(g, h, call);
    drop(g, h.q);
    drop(g, h.k);
    struct var mixed = ulysses > 1         ? exchanged_attention(g, turned.q, turned.k, h.v, &shape)
                       : t->ring.ranks > 1 ? ringed_attention(g, turned.q, turned.k, h.v, &t->ring)
                       : eager             ? eager_attention(g, turned, call, weights)
                                           : fused_attention(g, turned, shape, call);
    struct var out = op_linear(g, mixed, p->o, p->o_bias);
    drop(g, mixed);
    drop(g, turned.q);
    drop(g, turned.k);
    drop(g, h.v);
    return out;
}

// Gate and up as halves of one product.
static struct var fused_mlp(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct var both = op_chunks(g, op_linear(g, x, p->gate_up, -1), 2);
    struct var gate = op_chunk(g, both, both.elements / 2);
    struct var up = op_chunk(g, both, both.elements / 2);
    struct var active = op_activation(g, gate);
    struct var product = op_multiply(g, up, active);
    drop(g, active);
    drop(g, up);
    drop(g, both);
    struct var out = op_linear(g, product, p->down, -1);
    drop(g, product);
    drop(g, gate);
    return out;
}

static struct var mlp(struct graph *g, struct var x, const struct layer_parameters *p)
{
    if (p->gate < 0)
        return fused_mlp(g, x, p);
    struct var gate = op_linear(g, x, p->gate, p->gate_bias);
    struct var active = op_activation(g, gate);
    drop(g, gate);
    struct var up = op_linear(g, x, p->up, p->up_bias);
    struct var product = op_multiply(g, active, up);
    drop(g, active);
    drop(g, up);
    struct var out = op_linear(g, product, p->down, p->down_bias);
    drop(g, product);
    return out;
}

// An expert that sees every token. Takes the others' sum over.
static struct var add_shared_expert(struct graph *g, struct var sum, struct var x,
                                    const struct layer_parameters *p)
{
    struct layer_parameters shared = {
        .gate = p->shared_gate, .up = p->shared_up, .down = p->shared_down};
    shared.gate_bias = shared.up_bias = shared.down_bias = -1;
    struct var own = mlp(g, x, &shared), out = op_add(g, sum, own);
    drop(g, own);
    drop(g, sum);
    return out;
}

static struct var normed_before(struct graph *g, struct var x, int norm)
{
    return norm < 0 ? var_share(x) : rms_norm(g, x, norm);
}

// A norm behind attention or MLP, where a family has one. Takes x over.
static struct var normed_after(struct graph *g, struct var x, int norm)
{
    if (norm < 0)
        return x;
    struct var normed = rms_norm(g, x, norm);
    drop(g, x);
    return normed;
}

static void decoder_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct var weights = {NULL, NO_NODE, 0, 0}; // of attention, in a local variable to the end
    struct var x = normed_before(g, in, p->input_norm);
    struct var attended =
        p->kv_a >= 0 ? latent_attention(g, x, call) : attention(g, x, call, &weights);
    drop(g, x);
    attended = normed_after(g, attended, p->after_attention_norm);
    struct var middle = op_add(g, in, attended);
    drop(g, attended);
    x = normed_before(g, middle, p->before_mlp_norm);
    struct var fed = p->router >= 0 ? experts_forward(g, x, call) : mlp(g, x, p);
    if (p->router >= 0 && p->shared_gate >= 0)
        fed = add_shared_expert(g, fed, x, p);
    drop(g, x);
    if (p->sinks >= 0)
        var_drop(g, &weights); // the router's take their name
    fed = normed_after(g, fed, p->after_mlp_norm);
    enum memory_kind kind = g->kind;
    if (g->frame && !g->keeping)
        g->kind = MEMORY_CHECKPOINTS; // the next layer's input
    *out = op_add(g, middle, fed);
    g->kind = kind;
    drop(g, fed);
    drop(g, middle);
    drop(g, weights);
}

static struct var constant(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, NULL, elements, width);
}

// Those of context parallel come with the batch.
static struct var positions_of(struct trainer *t, uint64_t tokens)
{
    if (t->ring.ranks > 1)
        return var_share(ring_positions(&t->ring));
    struct graph *g = &t->graph;
    struct var range = constant(g, tokens, 8), positions = constant(g, tokens, 8);
    drop(g, range);
    return positions;
}

// Cosine and sine of the rotary embedding: computed in fp32, kept in the compute type.
static void rotary(struct trainer *t, uint64_t tokens, struct layer_arguments *to)
{
    struct graph *g = &t->graph;
    const struct model *m = &t->job->model;
    bool halves = model_has(m, FEATURE_ROTARY_HALVES);
    uint64_t values = tokens * m->rotary_dim / (halves ? 2 : 1);
    uint32_t width = model_has(m, FEATURE_ROTARY_WIDE) ? 4 : t->width;
    struct var floats = constant(g, tokens, 4);
    struct var angles = constant(g, tokens * m->rotary_dim / 2, 4);
    gemm_workspace(g); // the angles are a matrix product
    struct var both = halves ? var_share(angles) : constant(g, values, 4);
    struct var wide[2];
    for (int i = 0; i < 2; i++) {
        struct var plain = constant(g, values, 4);
        wide[i] = constant(g, values, 4);
        drop(g, plain);
    }
    struct var *const kept[] = {&to->cosine, &to->sine};
    for (int i = 0; i < 2; i++) { // a cast only where the compute type is not fp32
        *kept[i] = width == 4 ? var_share(wide[i]) : constant(g, values, width);
    }
    drop(g, floats);
    drop(g, angles);
    drop(g, both);
    drop(g, wide[0]);
    drop(g, wide[1]);
}

// Everything that layers are given besides their input.
static struct var make_arguments(struct trainer *t)
{
    // without padding, sequences follow each other in one row
    uint64_t tokens =
        t->job->loss == LOSS_POLICY ? job_tokens(t->job) : job_sequence_tokens(t->job);
    struct layer_arguments *full = &t->arguments[LAYER_FULL];
    struct layer_arguments *sliding = &t->arguments[LAYER_SLIDING];
    struct var positions = positions_of(t, tokens);
    make_masks(t);
    rotary(t, tokens, full);
    if (model_has(&t->job->model, FEATURE_LOCAL_ROTARY)) {
        rotary(t, tokens, sliding);
    } else {
        sliding->cosine = var_share(full->cosine);
        sliding->sine = var_share(full->sine);
    }
    return positions;
}

static void drop_arguments(struct trainer *t, struct var positions)
{
    drop(&t->graph, positions);
    for (int i = 0; i < LAYER_KINDS; i++) {
        var_drop(&t->graph, &t->arguments[i].cosine);
        var_drop(&t->graph, &t->arguments[i].sine);
    }
}

static struct var embed(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct var plain = op_embedding(g, t->embedding, t->ids);
    if (!model_has(&t->job->model, FEATURE_EMBEDDING_SCALE))
        return plain;
    struct var scale = {NULL, NO_NODE, t->width, 1}; // a buffer, cast where it has another type
    if (t->job->precision == PRECISION_MIXED)
        scale = constant(g, 1, t->width);
    struct var scaled = op_multiply_constant(g, plain, scale);
    drop(g, scale);
    drop(g, plain);
    return scaled;
}

// ------------------------------------------------------------------ the model

// Without a graph nothing is recomputed.
static struct var layers_of(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    bool checkpointing = t->job->checkpointing && g->recording;
    g->checkpoints_on_host = t->job->checkpoint_offload;
    for (int i = 0; i < (int)t->job->model.layers; i++) {
        struct var next;
        const struct layer_arguments *also = arguments_of(t, i);
        g->shared_arguments[ARGUMENT_COSINE] = also->cosine;
        g->shared_arguments[ARGUMENT_SINE] = also->sine;
        g->shared_arguments[ARGUMENT_MASK] = also->mask;
        g->kind = checkpointing || !g->recording ? MEMORY_WORKING : MEMORY_SAVED;
        unit_enter(t, i);
        hidden = unit_mark(t, hidden, i, true);
        if (checkpointing)
            next = graph_checkpoint(g, hidden, decoder_layer, &t->calls[i]);
        else
            decoder_layer(g, &next, hidden, &t->calls[i]);
        unit_leave(t, i);
        drop(g, hidden);
        hidden = unit_mark(t, next, i, false);
    }
    g->checkpoints_on_host = false;
    return hidden;
}

struct var trainer_forward(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct job *job = t->job;
    bool policy = job->loss == LOSS_POLICY; // the model ends before its loss
    int root = unit_number(t, PART_NORMS), embedding = unit_number(t, PART_EMBEDDING);
    g->recording = g->keeping = !t->is_reference;
    g->kind = MEMORY_WORKING;
    unit_enter(t, root);
    unit_enter(t, embedding);
    struct var hidden = unit_mark(t, embed(t), embedding, false);
    unit_leave(t, embedding);
    struct var embedded = var_share(hidden); // a local variable of the model's forward
    struct var positions = make_arguments(t);
    g->shared_arguments[ARGUMENT_POSITIONS] = positions;
    hidden = layers_of(t, hidden);
    if (!t->is_reference)
        machine_phase(t->machine, PHASE_LOSS);
    int tail = unit_of_tail(t);
    unit_enter(t, tail);
    hidden = unit_mark(t, hidden, tail, true);
    struct var last = rms_norm(g, hidden, t->final_norm);
    drop(g, hidden);
    drop_masks(t);
    drop(g, embedded);
    if (policy) {
        drop_arguments(t, positions);
        return loss_of_policy(t, last);
    }
    struct var loss = loss_of(t, last);
    drop(g, last);
    drop_arguments(t, positions);
    graph_end_autocast(g);
    return unit_mark(t, loss, root, false);
}
