// Building the model and running a step. The order in which parameters are made is that of
// transformers' modules: torch's optimizers and allocator see them in it.
#include "core/step/trainer.h"

#include "core/step/ddp.h"
#include "core/step/fsdp1.h"
#include "core/step/fsdp2.h"
#include "core/step/zero.h"
#include "core/step/zero3.h"

// ATen/cuda/CublasHandlePool.cpp: 32 MiB on compute capability 9.0, else 2 x 4 MiB and 8 x 16 KiB.
uint64_t cublas_workspace_bytes(const struct gpu *card)
{
    return card->capability == 90 ? 32 * MIB : 8 * MIB + 128 * KIB;
}

static int add_parameter(struct trainer *t, const char *name, uint64_t rows, uint64_t columns)
{
    struct graph *g = &t->graph;
    struct parameter *p = &g->parameters[g->parameter_count];
    *p = (struct parameter){.name = name, .rows = rows, .columns = columns, .width = t->width};
    if (!t->sharding)
        p->weight = machine_take(t->machine, rows * columns * t->width, MEMORY_PARAMETERS);
    return g->parameter_count++;
}

static int add_if(struct trainer *t, enum feature feature, const char *name, uint64_t rows)
{
    return model_has(&t->plan->model, feature) ? add_parameter(t, name, rows, 1) : -1;
}

static void add_mlp(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->plan->model;
    l->gate = add_parameter(t, "gate_proj.weight", m->intermediate, m->hidden);
    l->up = add_parameter(t, "up_proj.weight", m->intermediate, m->hidden);
    l->down = add_parameter(t, "down_proj.weight", m->hidden, m->intermediate);
    l->gate_up = l->experts_down = l->router = -1;
}

// All experts of a layer in two tensors, an expert a row.
static void add_experts(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->plan->model;
    uint64_t count = m->experts.count, one = m->experts.intermediate * m->hidden;
    l->gate_up = add_parameter(t, "experts.gate_up_proj", count, 2 * one);
    l->experts_down = add_parameter(t, "experts.down_proj", count, one);
    l->router = add_parameter(t, "gate.weight", count, m->hidden);
    l->gate = l->up = l->down = -1;
}

static void add_layer(struct trainer *t, struct layer_parameters *l, bool experts)
{
    const struct model *m = &t->plan->model;
    uint64_t width = m->hidden, q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    l->q = add_parameter(t, "q_proj.weight", q, width);
    l->q_bias = add_if(t, FEATURE_QKV_BIAS, "q_proj.bias", q);
    l->k = add_parameter(t, "k_proj.weight", kv, width);
    l->k_bias = add_if(t, FEATURE_QKV_BIAS, "k_proj.bias", kv);
    l->v = add_parameter(t, "v_proj.weight", kv, width);
    l->v_bias = add_if(t, FEATURE_QKV_BIAS, "v_proj.bias", kv);
    l->o = add_parameter(t, "o_proj.weight", width, q);
    l->q_norm = add_if(t, FEATURE_QK_NORM, "q_norm.weight", m->head_dim);
    l->k_norm = add_if(t, FEATURE_QK_NORM, "k_norm.weight", m->head_dim);
    if (experts)
        add_experts(t, l);
    else
        add_mlp(t, l);
    l->input_norm = add_parameter(t, "input_layernorm.weight", width, 1);
    l->post_attention_norm = add_parameter(t, "post_attention_layernorm.weight", width, 1);
}

enum { MOST_LAYER_PARAMETERS = 16 };

static void add_model(struct trainer *t)
{
    const struct model *m = &t->plan->model;
    struct arena *a = t->machine->arena;
    ptrdiff_t layers = (ptrdiff_t)m->layers;
    t->graph.parameters = NEW(a, struct parameter, MOST_LAYER_PARAMETERS * layers + 3);
    t->layers = NEW(a, struct layer_parameters, layers);
    t->calls = NEW(a, struct layer_call, layers);
    t->embedding = add_parameter(t, "embed_tokens.weight", m->vocab, m->hidden);
    for (int i = 0; i < (int)layers; i++) {
        t->calls[i] = (struct layer_call){t, i};
        add_layer(t, &t->layers[i], m->layer[i].experts);
    }
    t->final_norm = add_parameter(t, "norm.weight", m->hidden, 1);
    bool tied = model_has(m, FEATURE_TIED);
    t->head = tied ? t->embedding : add_parameter(t, "lm_head.weight", m->vocab, m->hidden);
    t->head_is_idle = !tied && t->plan->loss == LOSS_NONE;
}

static void train_whole_parameters(struct trainer *t)
{
    struct graph *g = &t->graph;
    t->trained = NEW(t->machine->arena, struct trained, g->parameter_count);
    t->trained_count = g->parameter_count - t->head_is_idle;
    for (int i = 0; i < t->trained_count; i++)
        t->trained[i] = (struct trained){
            .elements = g->parameters[i].rows * g->parameters[i].columns, .width = t->width};
}

static void cross_boundary(struct graph *g, int unit, bool left)
{
    struct trainer *t = g->owner;
    if (left)
        t->sharding->after_backward(t, unit);
    else
        t->sharding->before_backward(t, unit);
}

static const struct sharding *sharding_of(enum strategy strategy)
{
    static const struct sharding *const shardings[] = {
        [STRATEGY_SINGLE] = NULL,
        [STRATEGY_DDP] = NULL,
        [STRATEGY_FSDP1] = &fsdp1_sharding,
        [STRATEGY_FSDP2] = &fsdp2_sharding,
        [STRATEGY_ZERO1] = NULL,
        [STRATEGY_ZERO2] = NULL,
        [STRATEGY_ZERO3] = &zero3_sharding,
    };
    return shardings[strategy];
}

void trainer_build(struct trainer *t, const struct plan *p, struct machine *m)
{
    const struct gpu *card = &p->hardware.card;
    bool autocast = p->precision == PRECISION_AUTOCAST;
    *t = (struct trainer){.plan = p, .machine = m, .width = autocast ? 4 : 2};
    t->graph = (struct graph){.machine = m, .owner = t, .autocast = autocast};
    t->graph.gemm_workspace_bytes = cublas_workspace_bytes(card);
    t->graph.multiprocessors = card->multiprocessors;
    t->graph.threads_per_multiprocessor = card->threads_per_multiprocessor;
    t->sharding = sharding_of(p->strategy);
    add_model(t);
    if (t->sharding)
        t->sharding->build(t);
    else
        train_whole_parameters(t);
    machine_take(m, p->model.head_dim * 2, MEMORY_PARAMETERS); // rotary frequencies, and a copy
    machine_take(m, p->model.head_dim * 2, MEMORY_PARAMETERS);
    if (p->strategy == STRATEGY_DDP)
        ddp_build(t);
    if (p->strategy == STRATEGY_ZERO1 || p->strategy == STRATEGY_ZERO2)
        zero_build(t);
    uint64_t tokens = plan_tokens(p);
    t->ids = (struct var){machine_take(m, 8 * tokens, MEMORY_INPUTS), NO_NODE, 8, tokens};
    t->graph.boundary = cross_boundary;
}

// Moves gradients to where the optimizer looks for them.
static void collect_gradients(struct trainer *t)
{
    for (int i = 0; i < t->trained_count; i++) {
        t->trained[i].gradient = t->graph.parameters[i].gradient;
        t->graph.parameters[i].gradient = NULL;
    }
}

static void micro_batch(struct trainer *t)
{
    machine_phase(t->machine, PHASE_FORWARD);
    if (t->reducer)
        ddp_before_forward(t);
    if (t->zero)
        zero_before_forward(t);
    struct var loss = trainer_forward(t);
    machine_phase(t->machine, PHASE_BACKWARD);
    graph_backward(&t->graph, loss);
    if (t->sharding)
        t->sharding->end_backward(t);
    if (t->zero)
        zero_end_backward(t);
}

void trainer_step(struct trainer *t)
{
    t->machine->step++;
    for (uint64_t i = 0; i < t->plan->accumulation && i < DIFFERENT_MICRO_BATCHES; i++)
        micro_batch(t);
    machine_phase(t->machine, PHASE_OPTIMIZER);
    if (t->zero || (t->sharding && t->sharding->step)) {
        (t->zero ? zero_step : t->sharding->step)(t);
        return;
    }
    if (!t->sharding)
        collect_gradients(t);
    if (!t->plan->offload) {
        (t->sharding ? t->sharding->clip : optimizer_clip)(t);
        optimizer_step(t);
    }
    (t->sharding ? t->sharding->zero : optimizer_zero)(t);
}
