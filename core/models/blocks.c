// Blocks of other shapes: MLPs of two matrices, and layers whose attention and MLP have the same
// input.
#include "core/models/forward.h"

// ------------------------------------------------------------------ positions

// A row for each number. OPT's (modeling_opt.py) are counted from a mask of ones, for every
// sequence by itself, and begin with the third row.
struct var learned_positions(struct graph *g, struct var numbers)
{
    const struct trainer *t = g->owner;
    if (!t->job->model.first_position)
        return unnamed(op_embedding(g, t->positions, numbers));
    uint64_t tokens = job_tokens(t->job);
    struct scope f = scope_in(g);
    struct var ones = constant(g, tokens, 4);
    struct var counted = made_of(g, made_of(g, made_of(g, ones)));
    struct var whole = local(&f, after(g, constant(g, tokens, 8), counted));
    struct var shifted = local(&f, made_like(g, whole));
    return returns(&f, unnamed(op_embedding(g, t->positions, shifted)));
}

// ------------------------------------------------------------------ MLPs

// Autocast raises to powers in fp32 (ATen/autocast_mode.h, AT_FORALL_FP32).
static struct var raised(struct graph *g, struct var x)
{
    return power(g, cast(g, x, g->autocast ? 4 : x.width));
}

// activations.py, NewGELUActivation: written out.
static struct var gelu_new(struct graph *g, struct var x)
{
    struct var half = scale(g, x);
    struct var inner = scale(g, add(g, x, scale(g, raised(g, x))));
    return multiply(g, half, add_constant(g, bend(g, inner)));
}

// activations.py, ReLUSquaredActivation.
static struct var relu_squared(struct graph *g, struct var x)
{
    struct scope f = scope_in(g);
    struct var above = local(&f, relu(g, x));
    return returns(&f, raised(g, above));
}

static struct var activated(struct graph *g, struct var x, enum activation_kind kind)
{
    switch (kind) {
    case ACTIVATION_FUSED:
        return activation(g, x);
    case ACTIVATION_RELU:
        return relu(g, x);
    case ACTIVATION_RELU2:
        return relu_squared(g, x);
    case ACTIVATION_GELU_NEW:
        return gelu_new(g, x);
    case ACTIVATION_BLOOM:
        return unnamed(op_bloom_gelu(g, x));
    }
    __builtin_trap();
}

struct var plain_mlp(struct graph *g, struct var x, const struct layer_parameters *p)
{
    const struct trainer *t = g->owner;
    struct scope f = scope_in(g);
    struct var hidden = local(&f, linear(g, x, p->up, p->up_bias));
    assign(&f, &hidden, activated(g, hidden, t->job->model.activation));
    return returns(&f, linear(g, hidden, p->down, p->down_bias));
}

struct var dropped(struct graph *g, struct var x)
{
    const struct trainer *t = g->owner;
    return t->job->model.dropouts.residual ? dropout(g, x) : same(x);
}

// ------------------------------------------------------------------ projections

// modeling_gpt_neox.py: thirds of one product, brought into the heads' layout first.
struct heads project_split(struct graph *g, struct var x, const struct layer_parameters *p)
{
    const struct trainer *t = g->owner;
    const struct model *m = &t->job->model;
    struct scope f = scope_in(g);
    struct var all = linear(g, x, p->qkv, p->qkv_bias);
    if (!model_has(m, FEATURE_HEADS_LAST))
        all = relayout(g, all);
    uint64_t head = all.elements / (m->heads + 2 * m->kv_heads);
    all = local(&f, chunks(g, all, 3));
    struct heads h;
    h.q = chunk(g, all, m->heads * head);
    h.k = chunk(g, all, m->kv_heads * head);
    h.v = chunk(g, all, m->kv_heads * head);
    ends(&f);
    return h;
}

// modeling_opt.py: the scores' factor is that of the queries.
struct heads project_scaled(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct heads h;
    h.q = scale(g, linear(g, x, p->q, p->q_bias));
    h.k = linear(g, x, p->k, p->k_bias);
    h.v = linear(g, x, p->v, p->v_bias);
    return h;
}

// modeling_stablelm.py: all three are there when the first is laid out.
struct heads project_first(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct heads h;
    h.q = linear(g, x, p->q, p->q_bias);
    h.k = linear(g, x, p->k, p->k_bias);
    h.v = linear(g, x, p->v, p->v_bias);
    h.q = relayout(g, h.q);
    h.k = relayout(g, h.k);
    return h;
}

// ------------------------------------------------------------------ layers

// A norm that only attention or only the MLP reads goes with it.
static struct var attention_alone(struct graph *g, struct var in, const struct layer_call *call,
                                  struct var *weights)
{
    struct scope f = scope_in(g);
    struct var normed = local(&f, rms_norm(g, in, call->trainer->layers[call->layer].input_norm));
    return returns(&f, attention(g, normed, call, weights));
}

static struct var mlp_alone(struct graph *g, struct var in, const struct layer_call *call)
{
    struct scope f = scope_in(g);
    int norm = call->trainer->layers[call->layer].before_mlp_norm;
    struct var normed = local(&f, rms_norm(g, in, norm));
    return returns(&f, feed_forward(&f, normed, call));
}

// modeling_stablelm.py: what attention read and gave keeps its names.
void stablelm_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct scope f = scope_in(g);
    struct var weights = {NULL, NO_NODE, 0, 0};
    struct var hidden = local(&f, rms_norm(g, in, p->input_norm));
    struct var attended = local(&f, attention(g, hidden, call, &weights));
    local(&f, weights);
    struct var residual = local(&f, add(g, in, attended));
    struct var fed = local(&f, mlp_alone(g, residual, call));
    assign(&f, &hidden, add_last(g, residual, fed));
    *out = taken(returns(&f, hidden));
}

// modeling_opt.py; with do_layer_norm_before=False norms follow the sums. The MLP works on rows of
// all sequences.
void opt_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct scope f = scope_in(g);
    struct var weights = {NULL, NO_NODE, 0, 0};
    bool behind = model_has(&call->trainer->job->model, FEATURE_NORMS_BEHIND);
    struct var hidden = local(&f, behind ? same(in) : rms_norm(g, in, p->input_norm));
    assign(&f, &hidden, attention(g, hidden, call, &weights));
    weights = local(&f, weights);
    assign(&f, &hidden, add(g, in, hidden));
    if (behind)
        assign(&f, &hidden, rms_norm(g, hidden, p->input_norm));
    assign(&f, &hidden, reshape(g, hidden));
    struct var residual = local(&f, hidden);
    if (!behind)
        assign(&f, &hidden, rms_norm(g, hidden, p->before_mlp_norm));
    assign(&f, &hidden, feed_forward(&f, hidden, call));
    assign(&f, &hidden, reshape(g, (behind ? add : add_last)(g, residual, hidden)));
    if (behind)
        assign(&f, &hidden, rms_norm(g, hidden, p->before_mlp_norm));
    *out = taken(returns(&f, hidden));
}

// modeling_gpt2.py: what attention and MLP give keeps its names.
void gpt_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct scope f = scope_in(g);
    struct var weights = {NULL, NO_NODE, 0, 0};
    struct var hidden = local(&f, rms_norm(g, in, p->input_norm));
    struct var attended = local(&f, attention(g, hidden, call, &weights));
    local(&f, weights);
    assign(&f, &hidden, add(g, attended, in));
    struct var residual = local(&f, hidden);
    assign(&f, &hidden, rms_norm(g, hidden, p->before_mlp_norm));
    struct var fed = local(&f, feed_forward(&f, hidden, call));
    assign(&f, &hidden, add_last(g, residual, fed));
    *out = taken(returns(&f, hidden));
}

// A layer that returns its attention's weights too: the model's loop holds them until the next one
// has returned.
static void hand_out(struct graph *g, struct var weights)
{
    struct trainer *t = g->owner;
    struct var fresh = taken(weights);
    if (g->in_backward) {
        var_drop(g, &fresh);
        return;
    }
    var_drop(g, &t->layer_weights);
    t->layer_weights = fresh;
}

// modeling_bloom.py.
void bloom_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct scope f = scope_in(g);
    struct var weights = {NULL, NO_NODE, 0, 0};
    struct var normed = local(&f, rms_norm(g, in, p->input_norm));
    struct var sum = local(&f, bloom_attention(g, (struct pair){normed, in}, call, &weights));
    weights = local(&f, weights);
    assign(&f, &normed, rms_norm(g, sum, p->before_mlp_norm));
    struct var hidden = local(&f, add_last(g, sum, feed_forward(&f, normed, call)));
    *out = taken(same(hidden));
    hand_out(g, weights);
    ends(&f);
}

// modeling_mpt.py: the MLP adds the residual inside.
static struct var mpt_mlp(struct graph *g, struct pair in, const struct layer_parameters *p)
{
    struct scope f = scope_in(g);
    struct var hidden = local(&f, activation(g, linear(g, in.normed, p->up, p->up_bias)));
    struct var down = local(&f, linear(g, hidden, p->down, p->down_bias));
    return returns(&f, add_last(g, down, in.residual));
}

void mpt_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct scope f = scope_in(g);
    struct var weights = {NULL, NO_NODE, 0, 0};
    struct var normed = local(&f, rms_norm(g, in, p->input_norm));
    struct var attended = local(&f, mpt_attention(g, normed, call, &weights));
    weights = local(&f, weights);
    struct var hidden = local(&f, add(g, attended, in));
    assign(&f, &normed, rms_norm(g, hidden, p->before_mlp_norm));
    struct var sum = local(&f, mpt_mlp(g, (struct pair){normed, hidden}, p));
    *out = taken(same(sum));
    hand_out(g, weights);
    ends(&f);
}

// modeling_gpt_neox.py with two norms, modeling_phi.py with one; modeling_cohere.py begins its sum
// with the residual.
void parallel_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    bool one_norm = p->before_mlp_norm < 0;
    struct scope f = scope_in(g);
    struct var weights = {NULL, NO_NODE, 0, 0};
    struct var hidden = local(&f, one_norm ? rms_norm(g, in, p->input_norm) : in);
    struct var attended = one_norm ? attention(g, hidden, call, &weights)
                                   : attention_alone(g, hidden, call, &weights);
    attended = local(&f, attended);
    weights = local(&f, weights);
    struct var fed =
        local(&f, one_norm ? feed_forward(&f, hidden, call) : mlp_alone(g, hidden, call));
    bool residual_first = model_has(&call->trainer->job->model, FEATURE_NORM_CENTERED);
    struct var sum = add(g, residual_first ? in : fed, attended);
    assign(&f, &hidden, add_last(g, sum, residual_first ? fed : in));
    if (model_has(&call->trainer->job->model, FEATURE_WIDE_SCORES))
        hand_out(g, weights);
    *out = taken(returns(&f, hidden));
}
