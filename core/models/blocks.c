// Blocks of other shapes: MLPs of two matrices, and layers whose attention and MLP have the same
// input.
#include "core/models/forward.h"

// ------------------------------------------------------------------ MLPs

// activations.py, NewGELUActivation: written out.
static struct var gelu_new(struct graph *g, struct var x)
{
    struct var half = scale(g, x);
    struct var inner = scale(g, add(g, x, scale(g, power(g, x))));
    return multiply(g, half, add_constant(g, bend(g, inner)));
}

// activations.py, ReLUSquaredActivation.
static struct var relu_squared(struct graph *g, struct var x)
{
    struct scope f = scope_in(g);
    struct var above = local(&f, relu(g, x));
    return returns(&f, power(g, above));
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
    struct var all = relayout(g, linear(g, x, p->qkv, p->qkv_bias));
    uint64_t head = all.elements / (m->heads + 2 * m->kv_heads);
    all = local(&f, chunks(g, all, 3));
    struct heads h;
    h.q = chunk(g, all, m->heads * head);
    h.k = chunk(g, all, m->kv_heads * head);
    h.v = chunk(g, all, m->kv_heads * head);
    ends(&f);
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
    return returns(&f, feed_forward(g, normed, call));
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

// modeling_gpt_neox.py with two norms, modeling_cohere.py with one.
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
        local(&f, one_norm ? feed_forward(g, hidden, call) : mlp_alone(g, hidden, call));
    assign(&f, &hidden, add_last(g, add(g, in, attended), fed));
    *out = taken(returns(&f, hidden));
}
