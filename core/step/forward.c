// The models' forward pass, written as transformers 5.17 reads (modeling_qwen3.py and the families
// that share its shape): one operator a line, and every local variable dropped where Python drops
// it.
#include "core/step/backward.h"
#include "core/step/ops.h"
#include "core/step/trainer.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

static struct var rms_norm(struct graph *g, struct var x, int weight)
{
    uint64_t rows = x.elements / g->parameters[weight].rows;
    graph_at_module(g, weight, OPERATION_MULTIPLY_WEIGHT, MOMENT_FORWARD);
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
    struct var low = op_cast(g, normed, x.width);
    struct var out = op_multiply_weight(g, weight, low);
    drop(g, low);
    drop(g, normed);
    drop(g, variance);
    graph_at_module(g, weight, OPERATION_MULTIPLY_WEIGHT, MOMENT_FORWARD_DONE);
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

static struct var project(struct graph *g, struct var x, int weight, int bias, int norm)
{
    struct var y = op_relayout(g, op_linear(g, x, weight, bias));
    if (norm < 0)
        return y;
    struct var normed = rms_norm(g, y, norm);
    drop(g, y);
    return normed;
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

static struct var attention(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    const struct model *m = &t->plan->model;
    uint64_t ulysses = t->plan->ulysses;
    uint64_t kv_heads = m->kv_heads > ulysses ? m->kv_heads : ulysses;
    struct attention_shape shape = {plan_tokens(t->plan), m->heads, kv_heads, m->head_dim};
    struct var q = project(g, x, p->q, p->q_bias, p->q_norm);
    struct var k = project(g, x, p->k, p->k_bias, p->k_norm);
    struct var v = op_linear(g, x, p->v, p->v_bias);
    if (ulysses > 1)
        v = op_relayout(g, v);
    struct var q_turned = rotate(g, q, t->cosine, t->sine);
    struct var k_turned = rotate(g, k, t->cosine, t->sine);
    drop(g, q);
    drop(g, k);
    struct var mixed = ulysses > 1 ? exchanged_attention(g, q_turned, k_turned, v, &shape)
                                   : op_attention(g, q_turned, k_turned, v, &shape);
    struct var out = op_linear(g, mixed, p->o, -1);
    drop(g, mixed);
    drop(g, q_turned);
    drop(g, k_turned);
    drop(g, v);
    return out;
}

static struct var mlp(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct var gate = op_linear(g, x, p->gate, -1);
    struct var active = op_activation(g, gate);
    drop(g, gate);
    struct var up = op_linear(g, x, p->up, -1);
    struct var product = op_multiply(g, active, up);
    drop(g, active);
    drop(g, up);
    struct var out = op_linear(g, product, p->down, -1);
    drop(g, product);
    return out;
}

static void decoder_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct var x = rms_norm(g, in, p->input_norm);
    struct var attended = attention(g, x, call);
    drop(g, x);
    struct var middle = op_add(g, in, attended);
    drop(g, attended);
    x = rms_norm(g, middle, p->post_attention_norm);
    struct var fed = p->router >= 0 ? experts_forward(g, x, call) : mlp(g, x, p);
    drop(g, x);
    enum memory_kind kind = g->kind;
    if (g->frame && !g->keeping)
        g->kind = MEMORY_CHECKPOINTS; // the next layer's input
    *out = op_add(g, middle, fed);
    g->kind = kind;
    drop(g, fed);
    drop(g, middle);
}

static struct var constant(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, NULL, elements, width);
}

// Positions, and cosine and sine of the rotary embedding: computed in fp32, kept in the compute
// type.
static struct var rotary(struct trainer *t, uint64_t tokens)
{
    struct graph *g = &t->graph;
    const struct model *m = &t->plan->model;
    struct var range = constant(g, tokens, 8), positions = constant(g, tokens, 8);
    drop(g, range);
    struct var floats = constant(g, tokens, 4);
    struct var angles = constant(g, tokens * m->head_dim / 2, 4);
    gemm_workspace(g); // the angles are a matrix product
    struct var both = constant(g, tokens * m->head_dim, 4);
    struct var wide[2];
    for (int i = 0; i < 2; i++) {
        struct var plain = constant(g, tokens * m->head_dim, 4);
        wide[i] = constant(g, tokens * m->head_dim, 4);
        drop(g, plain);
    }
    struct var *const kept[] = {&t->cosine, &t->sine};
    for (int i = 0; i < 2; i++) { // a cast only where the compute type is not fp32
        *kept[i] = t->width == 4 ? var_share(wide[i]) : constant(g, tokens * m->head_dim, t->width);
    }
    drop(g, floats);
    drop(g, angles);
    drop(g, both);
    drop(g, wide[0]);
    drop(g, wide[1]);
    return positions;
}

// ------------------------------------------------------------------ sharded units

static void enter(struct trainer *t, int unit)
{
    if (t->sharding && unit >= 0)
        t->sharding->before_forward(t, unit);
}

static void leave(struct trainer *t, int unit)
{
    if (t->sharding && unit >= 0)
        t->sharding->after_forward(t, unit);
}

static int unit_of(const struct trainer *t, enum part part)
{
    return t->sharding ? t->sharding->unit_of(t, part) : -1;
}

static struct var mark(struct trainer *t, struct var x, int unit, bool input)
{
    return t->sharding && unit >= 0 ? op_boundary(&t->graph, x, unit, input) : x;
}

// ------------------------------------------------------------------ losses

// Labels are padded by one and shifted; several sequences make that a copy.
static struct var shifted_labels(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct plan *p = t->plan;
    struct var padded = constant(g, p->batch * (plan_sequence_tokens(p) + 1), 8);
    if (p->batch == 1)
        return padded;
    struct var copy = constant(g, plan_tokens(p), 8);
    drop(g, padded);
    return copy;
}

static struct var full_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    int head = unit_of(t, PART_HEAD);
    g->kind = MEMORY_LOGITS;
    enter(t, head);
    struct var in = mark(t, var_share(hidden), head, true);
    struct var logits = mark(t, op_linear(g, in, t->head, -1), head, false);
    drop(g, in);
    leave(t, head);
    struct var wide = op_cast(g, logits, 4);
    struct var labels = shifted_labels(t);
    struct var loss = op_cross_entropy(g, wide, labels, plan_tokens(t->plan));
    drop(g, wide);
    leave(t, unit_of(t, PART_NORMS));
    drop(g, logits);
    drop(g, labels);
    g->kind = MEMORY_WORKING;
    return loss;
}

// One chunk: logits, in fp32, and the sum of their losses.
static void chunk_loss(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct trainer *t = what;
    struct var logits = op_linear(g, in, t->head, -1);
    struct var wide = op_cast(g, logits, 4);
    drop(g, logits);
    struct var labels = {NULL, NO_NODE, 8, 0}; // a view of all labels
    *out = op_cross_entropy(g, wide, labels, in.elements);
    drop(g, wide);
}

// The head over chunks of tokens, each under checkpoint, the losses added up.
static struct var chunked_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    const struct plan *p = t->plan;
    int head = unit_of(t, PART_HEAD);
    uint64_t left = plan_tokens(p), width = p->model.hidden;
    int count = (int)((left + p->loss_chunk - 1) / p->loss_chunk);
    g->kind = MEMORY_LOGITS;
    enter(t, head);
    struct var whole = op_chunks(g, mark(t, var_share(hidden), head, true), count);
    struct var total = {NULL, NO_NODE, 4, 1};
    for (int i = 0; i < count; i++) {
        uint64_t tokens = left < p->loss_chunk ? left : p->loss_chunk;
        struct var chunk = op_chunk(g, whole, tokens * width);
        struct var loss = graph_checkpoint(g, chunk, chunk_loss, t);
        drop(g, chunk);
        struct var sum = op_scalar(g, loss, total);
        drop(g, loss);
        drop(g, total);
        total = sum;
        left -= tokens;
    }
    drop(g, whole);
    struct var mean = op_add_constant(g, total);
    drop(g, total);
    mean = mark(t, mean, head, false);
    leave(t, head);
    leave(t, unit_of(t, PART_NORMS));
    g->kind = MEMORY_WORKING;
    return mean;
}

// No head at all: the mean of the last hidden state.
static struct var hidden_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct var wide = op_cast(g, hidden, 4);
    struct var mean = op_mean(g, wide, 1);
    drop(g, wide);
    leave(t, unit_of(t, PART_NORMS));
    return mean;
}

static struct var loss_of(struct trainer *t, struct var hidden)
{
    switch (t->plan->loss) {
    case LOSS_FULL:
        return full_loss(t, hidden);
    case LOSS_CHUNKED:
        return chunked_loss(t, hidden);
    case LOSS_NONE:
        return hidden_loss(t, hidden);
    }
    __builtin_trap();
}

struct var trainer_forward(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct plan *plan = t->plan;
    int root = unit_of(t, PART_NORMS), embedding = unit_of(t, PART_EMBEDDING);
    g->recording = g->keeping = true;
    g->kind = MEMORY_WORKING;
    enter(t, root);
    enter(t, embedding);
    struct var hidden = mark(t, op_embedding(g, t->embedding, t->ids), embedding, false);
    leave(t, embedding);
    struct var positions = rotary(t, plan_sequence_tokens(plan));
    g->shared_arguments[0] = positions;
    g->shared_arguments[1] = t->cosine;
    g->shared_arguments[2] = t->sine;
    for (int i = 0; i < (int)plan->model.layers; i++) {
        struct var next;
        g->kind = plan->checkpointing ? MEMORY_WORKING : MEMORY_SAVED;
        enter(t, i);
        hidden = mark(t, hidden, i, true);
        if (plan->checkpointing)
            next = graph_checkpoint(g, hidden, decoder_layer, &t->calls[i]);
        else
            decoder_layer(g, &next, hidden, &t->calls[i]);
        leave(t, i);
        drop(g, hidden);
        hidden = mark(t, next, i, false);
    }
    machine_phase(t->machine, PHASE_LOSS);
    struct var last = rms_norm(g, hidden, t->final_norm);
    drop(g, hidden);
    struct var loss = loss_of(t, last);
    drop(g, last);
    drop(g, positions);
    var_drop(g, &t->cosine);
    var_drop(g, &t->sine);
    graph_end_autocast(g);
    return mark(t, loss, root, false);
}
