// Building the model and running a step. The order in which parameters are made is that of
// transformers' modules: torch's optimizers and allocator see them in it.
#include "core/strategies/trainer.h"

#include "core/models/adapters.h"
#include "core/strategies/strategies.h"

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
    if (!t->strategy->load)
        p->weight = machine_take(t->machine, rows * columns * t->width, MEMORY_PARAMETERS);
    return g->parameter_count++;
}

// A linear layer inside a decoder layer, which is what a quantised model packs.
static int add_projection(struct trainer *t, const char *name, uint64_t rows, uint64_t columns)
{
    struct graph *g = &t->graph;
    if (!t->job->packed)
        return add_parameter(t, name, rows, columns);
    g->parameters[g->parameter_count] =
        (struct parameter){.name = name, .rows = rows, .columns = columns, .width = t->width};
    g->parameters[g->parameter_count].packed = true;
    g->parameters[g->parameter_count].weight = packed_weight(t, rows * columns);
    return g->parameter_count++;
}

static int add_if(struct trainer *t, enum feature feature, const char *name, uint64_t rows)
{
    return model_has(&t->job->model, feature) ? add_parameter(t, name, rows, 1) : -1;
}

static void add_mlp(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    l->gate = add_projection(t, "gate_proj.weight", m->intermediate, m->hidden);
    l->gate_bias = add_if(t, FEATURE_MLP_BIAS, "gate_proj.bias", m->intermediate);
    l->up = add_projection(t, "up_proj.weight", m->intermediate, m->hidden);
    l->up_bias = add_if(t, FEATURE_MLP_BIAS, "up_proj.bias", m->intermediate);
    l->down = add_projection(t, "down_proj.weight", m->hidden, m->intermediate);
    l->down_bias = add_if(t, FEATURE_MLP_BIAS, "down_proj.bias", m->hidden);
    l->gate_up = l->experts_down = l->router = -1;
}

static void add_router(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    l->router = add_parameter(t, "gate.weight", m->experts.count, m->hidden);
    l->router_bias = add_if(t, FEATURE_EXPERT_BIAS, "gate.bias", m->experts.count);
}

// All experts of a layer in two tensors, an expert a row.
static void add_experts(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    uint64_t count = m->experts.count, inner = m->experts.intermediate, one = inner * m->hidden;
    bool biased = model_has(m, FEATURE_EXPERT_BIAS);
    l->gate_up_bias = l->experts_down_bias = -1;
    if (model_has(m, FEATURE_ROUTER_FIRST))
        add_router(t, l);
    l->gate_up = add_parameter(t, "experts.gate_up_proj", count, 2 * one);
    if (biased)
        l->gate_up_bias = add_parameter(t, "experts.gate_up_proj_bias", count, 2 * inner);
    l->experts_down = add_parameter(t, "experts.down_proj", count, one);
    if (biased)
        l->experts_down_bias = add_parameter(t, "experts.down_proj_bias", count, m->hidden);
    if (!model_has(m, FEATURE_ROUTER_FIRST))
        add_router(t, l);
    l->gate = l->up = l->down = -1;
    if (!model_has(m, FEATURE_SHARED_EXPERT))
        return;
    uint64_t shared = m->experts.shared_intermediate;
    l->shared_gate = add_parameter(t, "shared_experts.gate_proj.weight", shared, m->hidden);
    l->shared_up = add_parameter(t, "shared_experts.up_proj.weight", shared, m->hidden);
    l->shared_down = add_parameter(t, "shared_experts.down_proj.weight", m->hidden, shared);
}

static void add_norms(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    uint64_t width = m->hidden;
    bool four = model_has(m, FEATURE_POST_NORMS), after = model_has(m, FEATURE_NORMS_AFTER);
    l->before_mlp_norm = l->after_attention_norm = l->after_mlp_norm = -1;
    l->input_norm = after ? -1 : add_parameter(t, "input_layernorm.weight", width, 1);
    int second = add_parameter(t, "post_attention_layernorm.weight", width, 1);
    *(four || after ? &l->after_attention_norm : &l->before_mlp_norm) = second;
    if (four)
        l->before_mlp_norm = add_parameter(t, "pre_feedforward_layernorm.weight", width, 1);
    if (four || after)
        l->after_mlp_norm = add_parameter(t, "post_feedforward_layernorm.weight", width, 1);
}

static void add_attention(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    uint64_t width = m->hidden, q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    bool all_heads = model_has(m, FEATURE_QK_NORM_WIDE);
    l->qkv = -1;
    l->sinks = add_if(t, FEATURE_SINKS, "sinks", m->heads);
    l->q = add_projection(t, "q_proj.weight", q, width);
    l->q_bias = add_if(t, FEATURE_QKV_BIAS, "q_proj.bias", q);
    l->k = add_projection(t, "k_proj.weight", kv, width);
    l->k_bias = add_if(t, FEATURE_QKV_BIAS, "k_proj.bias", kv);
    l->v = add_projection(t, "v_proj.weight", kv, width);
    l->v_bias = add_if(t, FEATURE_QKV_BIAS, "v_proj.bias", kv);
    l->o = add_projection(t, "o_proj.weight", width, q);
    l->o_bias = add_if(t, FEATURE_OUTPUT_BIAS, "o_proj.bias", width);
    l->q_norm = add_if(t, FEATURE_QK_NORM, "q_norm.weight", all_heads ? q : m->head_dim);
    l->k_norm = add_if(t, FEATURE_QK_NORM, "k_norm.weight", all_heads ? kv : m->head_dim);
}

// As Phi-3 orders its modules.
static void add_fused(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    uint64_t width = m->hidden, q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    *l = (struct layer_parameters){.q = -1, .k = -1, .v = -1, .gate = -1, .up = -1, .kv_a = -1};
    l->q_bias = l->k_bias = l->v_bias = l->o_bias = l->q_norm = l->k_norm = -1;
    l->gate_bias = l->up_bias = l->down_bias = l->sinks = -1;
    l->experts_down = l->router = -1;
    l->o = add_parameter(t, "o_proj.weight", width, q);
    l->qkv = add_parameter(t, "qkv_proj.weight", q + 2 * kv, width);
    l->gate_up = add_parameter(t, "gate_up_proj.weight", 2 * m->intermediate, width);
    l->down = add_parameter(t, "down_proj.weight", width, m->intermediate);
}

static void add_latent(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    const struct latent_attention *a = &m->latent;
    uint64_t head = a->nope_head_dim + a->rope_head_dim, compressed = a->kv_rank + a->rope_head_dim;
    l->qkv = l->sinks = l->q = l->q_a = l->q_a_bias = -1;
    if (!a->query_rank) {
        l->q = add_parameter(t, "q_proj.weight", m->heads * head, m->hidden);
    } else {
        l->q_a = add_parameter(t, "q_a_proj.weight", a->query_rank, m->hidden);
        l->q_a_bias = add_if(t, FEATURE_QKV_BIAS, "q_a_proj.bias", a->query_rank);
        l->q_a_norm = add_parameter(t, "q_a_layernorm.weight", a->query_rank, 1);
        l->q_b = add_parameter(t, "q_b_proj.weight", m->heads * head, a->query_rank);
    }
    l->kv_a = add_parameter(t, "kv_a_proj_with_mqa.weight", compressed, m->hidden);
    l->kv_a_bias = add_if(t, FEATURE_QKV_BIAS, "kv_a_proj_with_mqa.bias", compressed);
    l->kv_a_norm = add_parameter(t, "kv_a_layernorm.weight", a->kv_rank, 1);
    l->kv_b = add_parameter(t, "kv_b_proj.weight",
                            m->heads * (a->nope_head_dim + a->value_head_dim), a->kv_rank);
    l->o = add_parameter(t, "o_proj.weight", m->hidden, m->heads * a->value_head_dim);
    l->o_bias = add_if(t, FEATURE_OUTPUT_BIAS, "o_proj.bias", m->hidden);
}

static void add_layer(struct trainer *t, struct layer_parameters *l, bool experts)
{
    int first = t->graph.parameter_count;
    l->kv_a = l->shared_gate = -1;
    if (model_has(&t->job->model, FEATURE_FUSED_PROJECTIONS)) {
        add_fused(t, l);
    } else {
        (model_has(&t->job->model, FEATURE_MLA) ? add_latent : add_attention)(t, l);
        if (experts)
            add_experts(t, l);
        else
            add_mlp(t, l);
    }
    l->first = first;
    add_norms(t, l);
}

enum { MOST_LAYER_PARAMETERS = 20 + 2 * TARGET_COUNT };

static void add_model(struct trainer *t)
{
    const struct model *m = &t->job->model;
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
    t->head_is_idle = !tied && t->job->loss == LOSS_NONE;
}

static void add_buffers(struct trainer *t)
{
    const struct model *m = &t->job->model;
    int rotaries = model_has(m, FEATURE_LOCAL_ROTARY) ? 2 : 1;
    if (model_has(m, FEATURE_EMBEDDING_SCALE))
        machine_take(t->machine, t->width, MEMORY_PARAMETERS);
    for (uint64_t i = 0; i < m->layers && model_has(m, FEATURE_ROUTER_BALANCE); i++)
        if (m->layer[i].experts)
            machine_take(t->machine, m->experts.count * t->width, MEMORY_PARAMETERS);
    for (int i = 0; i < 2 * rotaries; i++) // frequencies, and a copy
        machine_take(t->machine, m->rotary_dim * 2, MEMORY_PARAMETERS);
}

static void call(void (*hook)(struct trainer *t), struct trainer *t)
{
    if (hook)
        hook(t);
}

static void cross_boundary(struct graph *g, int unit, bool left)
{
    struct trainer *t = g->owner;
    void (*hook)(struct trainer *t, int unit) =
        left ? t->strategy->leave_backward : t->strategy->enter_backward;
    if (hook)
        hook(t, unit);
}

static struct graph graph_of(struct trainer *t, const struct job *p)
{
    const struct gpu *card = &p->hardware.card;
    return (struct graph){.machine = t->machine,
                          .owner = t,
                          .autocast = p->precision == PRECISION_AUTOCAST,
                          .flash = job_uses_flash(p),
                          .attention_waits = t->habits->reads_positions,
                          .gemm_workspace_bytes = cublas_workspace_bytes(card),
                          .multiprocessors = card->multiprocessors,
                          .threads_per_multiprocessor = card->threads_per_multiprocessor,
                          .boundary = cross_boundary,
                          .module = t->strategy->at_module,
                          .gradient_ready = t->strategy->gradient_ready};
}

static void build(struct trainer *t, const struct job *p, struct machine *m)
{
    uint64_t tokens = job_tokens(p);
    t->job = p;
    t->machine = m;
    t->width = p->precision == PRECISION_AUTOCAST ? 4 : 2;
    t->strategy = strategy_kind_of(p->strategy);
    t->graph = graph_of(t, p);
    t->ring = (struct ring){
        {tokens, p->model.heads, p->model.kv_heads, p->model.head_dim}, p->ring, p->ring_rank};
    add_model(t);
    call(t->strategy->load, t);
    add_buffers(t);
    if (p->lora_rank)
        adapters_build(t);
    call(t->strategy->build, t);
    if (p->ring == 1)
        t->ids = (struct var){machine_take(m, 8 * tokens, MEMORY_INPUTS), NO_NODE, 8, tokens};
}

void trainer_build(struct trainer *t, const struct job *p, struct machine *m,
                   const struct habits *habits)
{
    *t = (struct trainer){.habits = habits, .first_stream = FIRST_SIDE_STREAM};
    build(t, p, m);
}

void trainer_build_reference(struct trainer *t, const struct job *p, struct machine *m,
                             const struct habits *habits)
{
    *t = (struct trainer){
        .habits = habits, .is_reference = true, .first_stream = FIRST_SIDE_STREAM + MODEL_STREAMS};
    build(t, p, m);
}

void trainer_read_value(struct trainer *t)
{
    if (t->habits->reads_values)
        machine_synchronize(t->machine, t->machine->clock[STREAM_COMPUTE]);
}

void trainer_micro_batch(struct trainer *t)
{
    machine_phase(t->machine, PHASE_FORWARD);
    if (t->ring.ranks > 1) {
        ring_take_batch(&t->graph, &t->ring);
        t->ids = ring_tokens(&t->ring);
    }
    call(t->strategy->before_forward, t);
    struct var loss = trainer_forward(t);
    trainer_read_value(t);
    machine_phase(t->machine, PHASE_BACKWARD);
    graph_backward(&t->graph, loss);
    call(t->strategy->end_backward, t);
    if (t->ring.ranks > 1)
        ring_drop_batch(&t->graph, &t->ring);
}

void trainer_update(struct trainer *t)
{
    machine_phase(t->machine, PHASE_OPTIMIZER);
    t->strategy->update(t);
}

uint64_t trainer_micro_batches(const struct job *p)
{
    return p->accumulation < DIFFERENT_MICRO_BATCHES ? p->accumulation : DIFFERENT_MICRO_BATCHES;
}

void trainer_step(struct trainer *t)
{
    uint64_t count = trainer_micro_batches(t->job);
    for (uint64_t i = 0; i < count; i++) {
        t->keeps_gradients = !t->job->sync_each_batch && i + 1 < count;
        trainer_micro_batch(t);
    }
    trainer_update(t);
}
