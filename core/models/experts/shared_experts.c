// Experts beside one that sees every token, as the modeling files of transformers 5.17 read.
#include "core/models/forward.h"

static const struct layer_parameters no_parameters = {.gate = -1,
                                                      .gate_bias = -1,
                                                      .up = -1,
                                                      .up_bias = -1,
                                                      .down = -1,
                                                      .down_bias = -1,
                                                      .gate_up = -1};

struct layer_parameters shared_mlp(const struct layer_parameters *p)
{
    struct layer_parameters shared = no_parameters;
    shared.gate = p->shared_gate;
    shared.up = p->shared_up;
    shared.down = p->shared_down;
    shared.gate_up = p->shared_gate_up;
    return shared;
}

// modeling_granitemoeshared.py: gate and up as halves of one product, that stays until the end.
static struct var fused_shared(struct graph *g, struct var x, const struct layer_parameters *p)
{
    struct scope f = scope_in(g);
    struct var hidden = local(&f, chunks(g, linear(g, x, p->shared_gate_up, -1), 2));
    struct var gate = local(&f, chunk(g, hidden, hidden.elements / 2));
    struct var up = local(&f, chunk(g, hidden, hidden.elements / 2));
    assign(&f, &hidden, multiply(g, activation(g, gate), up));
    return returns(&f, linear(g, hidden, p->shared_down, -1));
}

// modeling_qwen2_moe.py: the shared expert first, and last a chance for it.
static struct var gated_shared(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct layer_parameters shared = shared_mlp(p);
    struct scope f = scope_in(g);
    struct var theirs = local(&f, mlp(g, x, &shared));
    struct var sum = local(&f, experts_in(&f, x, call));
    struct var chance = sigmoid(g, linear(g, x, p->shared_weight, -1));
    assign(&f, &theirs, multiply(g, theirs, chance));
    return returns(&f, add(g, sum, theirs));
}

// modeling_deepseek_v3.py: the shared one last, while what the router gave is still there.
static struct var with_shared(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters shared = shared_mlp(&call->trainer->layers[call->layer]);
    struct scope f = scope_in(g);
    struct var sum = local(&f, experts_in(&f, x, call));
    return returns(&f, add(g, sum, mlp(g, x, &shared)));
}

// modeling_ernie4_5_moe.py, modeling_hunyuan_v1_moe.py: the shared one first.
static struct var shared_first(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters shared = shared_mlp(&call->trainer->layers[call->layer]);
    struct scope f = scope_in(g);
    struct var theirs = local(&f, mlp(g, x, &shared));
    struct var sum = local(&f, experts_in(&f, x, call));
    return returns(&f, add(g, sum, theirs));
}

static struct var experts_alone(struct graph *g, struct var x, const struct layer_call *call)
{
    struct scope f = scope_in(g);
    return returns(&f, experts_in(&f, x, call));
}

struct var sparse_block(struct scope *layer, struct var x, const struct layer_call *call)
{
    struct graph *g = layer->graph;
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    if (model_has(&call->trainer->job->model, FEATURE_EXPERTS_DENSE))
        return every_expert(g, x, call);
    if (p->shared_weight >= 0)
        return gated_shared(g, x, call);
    if (p->shared_gate >= 0)
        return (model_has(&call->trainer->job->model, FEATURE_SHARED_FIRST)
                    ? shared_first
                    : with_shared)(g, x, call);
    if (p->shared_gate_up < 0)
        return experts_alone(g, x, call);
    struct var sum = local(layer, experts_alone(g, x, call));
    return add(g, sum, fused_shared(g, x, p));
}
