// The parameters of one rank, as Megatron-LM's modules have them: projections that are one product
// are one matrix, cut over tensor parallel ranks.
#include "core/base/num.h"
#include "core/models/megatron/megatron.h"

#include <string.h>

struct megatron *megatron_of(const struct trainer *t)
{
    return t->state;
}

// The vocabulary is padded so that each rank has a multiple of 128 words
// (training/tokenizer/tokenizer.py, _vocab_size_with_padding; make_vocab_size_divisible_by).
static uint64_t words_of_rank(const struct job *p)
{
    enum { WORDS = 128 };
    return u64_align_up(p->model.vocab, WORDS * p->tensor) / p->tensor;
}

uint64_t megatron_data_ranks(const struct job *p)
{
    return job_ranks(p) / (p->tensor * p->pipeline);
}

uint64_t megatron_expert_ranks(const struct job *p)
{
    return job_ranks(p) / (p->expert * p->expert_tensor * p->pipeline);
}

static int add(struct trainer *t, const char *name, uint64_t rows, uint64_t columns)
{
    struct graph *g = &t->graph;
    struct parameter p = {.name = name, .rows = rows, .columns = columns, .width = t->width};
    p.weight = machine_take(t->machine, rows * columns * t->width, MEMORY_PARAMETERS);
    g->parameters[g->parameter_count] = p;
    return g->parameter_count++;
}

static void add_attention(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    uint64_t heads = m->heads / t->job->tensor, groups = m->kv_heads / t->job->tensor;
    l->o = add(t, "decoder.layers.{layer}.self_attention.linear_proj.weight", m->hidden,
               heads * m->head_dim);
    l->input_norm =
        add(t, "decoder.layers.{layer}.self_attention.linear_qkv.layer_norm_weight", m->hidden, 1);
    l->qkv = add(t, "decoder.layers.{layer}.self_attention.linear_qkv.weight",
                 (heads + 2 * groups) * m->head_dim, m->hidden);
    if (model_has(m, FEATURE_QKV_BIAS))
        l->qkv_bias = add(t, "decoder.layers.{layer}.self_attention.linear_qkv.bias",
                          (heads + 2 * groups) * m->head_dim, 1);
    if (!model_has(m, FEATURE_QK_NORM))
        return;
    l->q_norm = add(t, "decoder.layers.{layer}.self_attention.q_layernorm.weight", m->head_dim, 1);
    l->k_norm = add(t, "decoder.layers.{layer}.self_attention.k_layernorm.weight", m->head_dim, 1);
}

// multi_latent_attention.py: what brings hidden states down is not cut, what brings them up is, by
// heads. The output projection that Attention makes is made anew.
static void add_latent_attention(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    const struct latent_attention *a = &m->latent;
    uint64_t heads = m->heads / t->job->tensor, head = a->nope_head_dim + a->rope_head_dim;
    l->input_norm = add(t, "decoder.layers.{layer}.input_layernorm.weight", m->hidden, 1);
    struct storage *first =
        machine_take(t->machine, m->hidden * heads * m->head_dim * t->width, MEMORY_PARAMETERS);
    l->o = add(t, "decoder.layers.{layer}.self_attention.linear_proj.weight", m->hidden,
               heads * a->value_head_dim);
    machine_drop(t->machine, first);
    if (a->query_rank) {
        l->q_a = add(t, "decoder.layers.{layer}.self_attention.linear_q_down_proj.weight",
                     a->query_rank, m->hidden);
        l->q_a_norm =
            add(t, "decoder.layers.{layer}.self_attention.linear_q_up_proj.layer_norm_weight",
                a->query_rank, 1);
        l->q_b = add(t, "decoder.layers.{layer}.self_attention.linear_q_up_proj.weight",
                     heads * head, a->query_rank);
    } else {
        l->q = add(t, "decoder.layers.{layer}.self_attention.linear_q_proj.weight", heads * head,
                   m->hidden);
    }
    l->kv_a = add(t, "decoder.layers.{layer}.self_attention.linear_kv_down_proj.weight",
                  a->kv_rank + a->rope_head_dim, m->hidden);
    l->kv_a_norm =
        add(t, "decoder.layers.{layer}.self_attention.linear_kv_up_proj.layer_norm_weight",
            a->kv_rank, 1);
    l->kv_b = add(t, "decoder.layers.{layer}.self_attention.linear_kv_up_proj.weight",
                  heads * (a->nope_head_dim + a->value_head_dim), a->kv_rank);
}

uint64_t megatron_experts(const struct job *p)
{
    return p->model.experts.count / p->expert;
}

static int add_experts(struct trainer *t, const char *name, uint64_t rows, uint64_t columns)
{
    int first = t->graph.parameter_count;
    for (uint64_t i = 0; i < megatron_experts(t->job); i++)
        megatron_of(t)->is_expert[add(t, name, rows, columns)] = true;
    return first;
}

static void add_sparse_mlp(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    uint64_t width = m->experts.intermediate / t->job->expert_tensor;
    uint64_t shared = m->experts.shared_intermediate / t->job->tensor;
    l->before_mlp_norm = add(t, "decoder.layers.{layer}.pre_mlp_layernorm.weight", m->hidden, 1);
    l->router = add(t, "decoder.layers.{layer}.mlp.router.weight", m->experts.count, m->hidden);
    l->gate_up = add_experts(t, "decoder.layers.{layer}.mlp.experts.linear_fc1.weight", 2 * width,
                             m->hidden);
    l->experts_down =
        add_experts(t, "decoder.layers.{layer}.mlp.experts.linear_fc2.weight", m->hidden, width);
    if (!shared)
        return;
    l->shared_gate_up = add(t, "decoder.layers.{layer}.mlp.shared_experts.linear_fc1.weight",
                            2 * shared, m->hidden);
    l->shared_down =
        add(t, "decoder.layers.{layer}.mlp.shared_experts.linear_fc2.weight", m->hidden, shared);
}

static void add_mlp(struct trainer *t, struct layer_parameters *l)
{
    const struct model *m = &t->job->model;
    uint64_t width = m->intermediate / t->job->tensor;
    l->before_mlp_norm =
        add(t, "decoder.layers.{layer}.mlp.linear_fc1.layer_norm_weight", m->hidden, 1);
    l->gate_up = add(t, "decoder.layers.{layer}.mlp.linear_fc1.weight", 2 * width, m->hidden);
    l->down = add(t, "decoder.layers.{layer}.mlp.linear_fc2.weight", m->hidden, width);
}

static void add_layer(struct trainer *t, int layer)
{
    struct layer_parameters *l = &t->layers[layer];
    memset(l, -1, sizeof *l);
    l->first = t->graph.parameter_count;
    const struct model *m = &t->job->model;
    (model_has(m, FEATURE_MLA) ? add_latent_attention : add_attention)(t, l);
    (m->layer[layer].experts ? add_sparse_mlp : add_mlp)(t, l);
    for (int i = l->first; i < t->graph.parameter_count; i++)
        t->graph.parameters[i].layer = layer;
}

static void add_stage(struct trainer *t, struct megatron *own, const struct stage *s)
{
    const struct model *m = &t->job->model;
    uint64_t words = words_of_rank(t->job);
    if (s->has_words)
        own->words = add(t, "embedding.word_embeddings.weight", words, m->hidden);
    for (int i = s->first; i < s->first + s->count; i++)
        add_layer(t, i);
    if (!s->has_head)
        return;
    own->final_norm = add(t, "decoder.final_layernorm.weight", m->hidden, 1);
    bool shared = model_has(m, FEATURE_TIED) && own->words >= 0;
    own->head = shared ? own->words : add(t, "output_layer.weight", words, m->hidden);
}

void megatron_parameters(struct trainer *t)
{
    enum { MOST_OF_LAYER = 24, MOST_OUTSIDE = 8 };
    struct megatron *own = megatron_of(t);
    struct arena *a = t->machine->arena;
    ptrdiff_t layers = (ptrdiff_t)t->job->model.layers;
    ptrdiff_t most = MOST_OF_LAYER + 2 * (ptrdiff_t)megatron_experts(t->job);
    t->graph.parameters = NEW(a, struct parameter, most * layers + MOST_OUTSIDE);
    own->is_expert = NEW(a, bool, most *layers + MOST_OUTSIDE);
    t->layers = NEW(a, struct layer_parameters, layers);
    t->calls = NEW(a, struct layer_call, layers);
    own->words = own->head = own->final_norm = -1;
    for (int i = 0; i < (int)layers; i++)
        t->calls[i] = (struct layer_call){t, i};
    for (int i = 0; i < own->stage_count; i++)
        add_stage(t, own, &own->stages[i]);
}
