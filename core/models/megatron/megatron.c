// The forward pass of a stage, as core/models/gpt/gpt_model.py and core/transformer read.
#include "core/models/megatron/megatron.h"

#include "core/models/forward.h"

static struct var norm_linear(struct graph *g, struct var x, int norm, int weight)
{
    return after(g, op_norm_linear(g, x, norm, weight), x);
}

static struct var cut_linear(struct graph *g, struct var x, int weight, enum cut_by cut)
{
    return after(g, op_cut_linear(g, x, weight, cut), x);
}

static struct var engine_norm(struct graph *g, struct var x, int norm)
{
    return after(g, op_engine_norm(g, x, norm), x);
}

static struct var fused_turn(struct graph *g, struct var x)
{
    return after(g, op_fused_turn(g, x), x);
}

static struct var fused_gate(struct graph *g, struct var x)
{
    return after(g, op_fused_gate(g, x), x);
}

static uint64_t groups_of(const struct job *p)
{
    return p->model.kv_heads / p->tensor;
}

// attention.py, get_query_key_value_tensors: queries stand before the keys and values of their
// group, so that those of several groups are copied to lie together; so are what norms read.
static struct heads projected(struct scope *f, struct var x, const struct layer_call *call)
{
    struct graph *g = f->graph;
    const struct job *p = call->trainer->job;
    const struct layer_parameters *l = &call->trainer->layers[call->layer];
    uint64_t queries = p->model.heads / p->model.kv_heads;
    struct scope inner = scope_in(g);
    struct var mixed = local(&inner, norm_linear(g, x, l->input_norm, l->qkv));
    struct var whole = local(&inner, chunks(g, mixed, 3));
    uint64_t part = mixed.elements / (queries + 2);
    struct heads h = {.q = local(f, chunk(g, whole, part * queries))};
    h.k = local(f, chunk(g, whole, part));
    h.v = local(f, chunk(g, whole, part));
    ends(&inner);
    if (groups_of(p) > 1)
        assign(f, &h.q, copy(g, h.q));
    if (l->q_norm < 0)
        return h;
    if (groups_of(p) == 1)
        assign(f, &h.q, copy(g, h.q));
    assign(f, &h.q, engine_norm(g, h.q, l->q_norm));
    assign(f, &h.k, engine_norm(g, copy(g, h.k), l->k_norm));
    return h;
}

static struct var attend_over_ranks(struct graph *g, struct heads h,
                                    const struct attention_shape *shape)
{
    const struct job *p = ((const struct trainer *)g->owner)->job;
    const struct var in[] = {h.q, h.k, h.v};
    if (p->ring == 1)
        return attend(g, h, shape);
    return unnamed((p->context_comm == CONTEXT_DEALT ? op_dealt_attention
                                                     : op_handed_attention)(g, in, shape));
}

// dot_product_attention/utils.py, get_qkv_layout: values that are a view of the projection are
// copied, as they lie otherwise than the keys.
static struct var self_attention(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct job *p = call->trainer->job;
    const struct model *m = &p->model;
    const struct layer_parameters *l = &call->trainer->layers[call->layer];
    struct attention_shape shape = {job_tokens(p), m->heads / p->tensor, m->kv_heads / p->tensor,
                                    m->head_dim, .sequence = job_sequence_tokens(p)};
    struct scope f = scope_in(g);
    struct heads h = projected(&f, x, call);
    assign(&f, &h.q, fused_turn(g, h.q));
    assign(&f, &h.k, fused_turn(g, h.k));
    if (p->selective) {
        const struct var in[] = {h.q, h.k, h.v};
        struct var again = local(&f, unnamed(op_recomputed_attention(g, in, &shape)));
        return returns(&f, cut_linear(g, again, l->o, CUT_BY_ROWS));
    }
    struct scope core = scope_in(g);
    struct heads laid = {h.q, h.k, local(&core, copy(g, h.v))};
    struct var attended = local(&f, returns(&core, attend_over_ranks(g, laid, &shape)));
    return returns(&f, cut_linear(g, attended, l->o, CUT_BY_ROWS));
}

static struct var dense_mlp(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *l = &call->trainer->layers[call->layer];
    struct scope f = scope_in(g);
    struct var between = local(&f, norm_linear(g, x, l->before_mlp_norm, l->gate_up));
    assign(&f, &between, fused_gate(g, between));
    return returns(&f, cut_linear(g, between, l->down, CUT_BY_ROWS));
}

// What a head's parts make up of one product.
static struct heads latent_heads(struct scope *f, struct var normed, const struct layer_call *call)
{
    struct graph *g = f->graph;
    const struct job *p = call->trainer->job;
    const struct latent_attention *a = &p->model.latent;
    const struct layer_parameters *l = &call->trainer->layers[call->layer];
    uint64_t heads = p->model.heads / p->tensor, tokens = job_tokens(p);
    struct scope inner = scope_in(g);
    struct var low = local(&inner, (struct var){NULL, NO_NODE, 2, 0});
    if (l->q_a >= 0)
        assign(&inner, &low, cut_linear(g, normed, l->q_a, CUT_BY_NOTHING));
    struct var both = cut_linear(g, normed, l->kv_a, CUT_BY_NOTHING);
    uint64_t part = both.elements / (a->kv_rank + a->rope_head_dim);
    struct var whole = local(&inner, chunks(g, both, 2));
    struct var latent = local(&inner, chunk(g, whole, part * a->kv_rank));
    struct var turning = local(&inner, chunk(g, whole, part * a->rope_head_dim));
    assign(&inner, &turning, unnamed(op_gather_tokens(g, turning)));
    struct heads h;
    h.q = local(f, l->q_a >= 0 ? norm_linear(g, low, l->q_a_norm, l->q_b)
                               : cut_linear(g, normed, l->q, CUT_BY_COLUMNS));
    both = local(&inner, norm_linear(g, copy(g, latent), l->kv_a_norm, l->kv_b));
    struct var values = {.elements = tokens * heads * a->value_head_dim};
    h.k = local(f, unnamed(op_latent_keys(g, both, turning, h.q.elements, &values)));
    h.v = local(f, unnamed(values));
    ends(&inner);
    return h;
}

static struct var latent_self_attention(struct graph *g, struct var x,
                                        const struct layer_call *call)
{
    const struct job *p = call->trainer->job;
    const struct model *m = &p->model;
    const struct layer_parameters *l = &call->trainer->layers[call->layer];
    uint64_t heads = m->heads / p->tensor;
    struct attention_shape shape = {job_tokens(p), heads, heads,
                                    m->latent.nope_head_dim + m->latent.rope_head_dim,
                                    .sequence = job_sequence_tokens(p)};
    struct scope f = scope_in(g);
    struct var normed = local(&f, engine_norm(g, x, l->input_norm));
    struct heads h = latent_heads(&f, normed, call);
    const struct var in[] = {h.q, h.k, h.v};
    struct var attended = local(&f, p->selective ? unnamed(op_recomputed_attention(g, in, &shape))
                                                 : attend_over_ranks(g, h, &shape));
    return returns(&f, cut_linear(g, attended, l->o, CUT_BY_ROWS));
}

static struct var shared_expert(struct graph *g, struct var x, const struct layer_parameters *l)
{
    struct scope f = scope_in(g);
    struct var between = local(&f, cut_linear(g, x, l->shared_gate_up, CUT_BY_COLUMNS));
    assign(&f, &between, fused_gate(g, between));
    return returns(&f, cut_linear(g, between, l->shared_down, CUT_BY_ROWS));
}

// experts.py, TEGroupedMLP.
static struct var grouped_mlp(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *l = &call->trainer->layers[call->layer];
    uint64_t count = megatron_experts(call->trainer->job);
    struct scope f = scope_in(g);
    struct var between = local(&f, unnamed(op_grouped_linear(g, x, l->gate_up, count)));
    assign(&f, &between, unnamed(op_weighed_gate(g, between)));
    return returns(&f, unnamed(op_grouped_linear(g, between, l->experts_down, count)));
}

// Rows of one expert stand together only once they are sorted, where a rank has several.
static struct var sorted(struct graph *g, struct var x, const struct job *p)
{
    return megatron_experts(p) > 1 ? unnamed(op_reorder(g, x)) : same(x);
}

// moe_layer.py: its tokens are dealt out to the ranks of their experts and come back. Names hold
// what was dealt out until the end.
static struct var experts_of(struct graph *g, struct var normed, const struct layer_call *call)
{
    const struct job *p = call->trainer->job;
    const struct layer_parameters *l = &call->trainer->layers[call->layer];
    uint64_t chosen = p->model.experts.per_token;
    struct scope f = scope_in(g), inner = scope_in(g);
    struct var chances = local(&f, unnamed(op_route(g, normed, l->router, chosen)));
    struct var rows = local(&f, unnamed(op_permute(g, normed, chances, chosen)));
    struct var given = local(&f, unnamed(op_deal_out(g, rows, p->expert)));
    struct var shared = {NULL, NO_NODE, 2, 0};
    if (l->shared_down >= 0)
        shared = local(&f, shared_expert(g, normed, l));
    struct var laid = local(&inner, given);
    if (p->expert_tensor > 1)
        assign(&inner, &laid, unnamed(op_gather_tokens(g, laid)));
    assign(&inner, &laid, sorted(g, laid, p));
    struct var made = local(&inner, grouped_mlp(g, laid, call));
    struct scope last = scope_in(g);
    struct var all = local(&last, sorted(g, made, p));
    if (p->expert_tensor > 1)
        assign(&last, &all, unnamed(op_scatter_tokens(g, all)));
    struct var back = local(&f, returns(&inner, returns(&last, all)));
    struct scope combine = scope_in(g);
    struct var own = local(&combine, unnamed(op_deal_out(g, back, p->expert)));
    assign(&combine, &own, unnamed(op_unpermute(g, own, chosen)));
    if (l->shared_down >= 0)
        assign(&combine, &own, add(g, own, shared));
    return returns(&f, returns(&combine, own));
}

static struct var sparse_mlp(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *l = &call->trainer->layers[call->layer];
    struct scope f = scope_in(g);
    struct var normed = local(&f, engine_norm(g, x, l->before_mlp_norm));
    return returns(&f, experts_of(g, normed, call));
}

// transformer_layer.py, _forward_attention and _forward_mlp; without dropout a sum is all that is
// left of bias_dropout_add.
static void transformer_layer(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct layer_call *call = what;
    struct scope f = scope_in(g);
    struct var hidden = local(&f, in);
    const struct model *m = &call->trainer->job->model;
    struct var made =
        (model_has(m, FEATURE_MLA) ? latent_self_attention : self_attention)(g, hidden, call);
    assign(&f, &hidden, add(g, hidden, made));
    made = (m->layer[call->layer].experts ? sparse_mlp : dense_mlp)(g, hidden, call);
    assign(&f, &hidden, add(g, hidden, made));
    *out = taken(returns(&f, hidden));
}

// transformer_block.py, _checkpointed_forward: of a block the first recompute_num_layers.
static bool is_recomputed(const struct job *p, int layer_of_stage)
{
    bool chosen = !p->recomputed_layers || (uint64_t)layer_of_stage < p->recomputed_layers;
    return p->checkpointing && chosen;
}

static struct var layers_of(struct graph *g, const struct stage *stage, struct var in)
{
    const struct trainer *t = g->owner;
    struct scope f = scope_in(g);
    struct var hidden = local(&f, in);
    for (int i = stage->first; i < stage->first + stage->count; i++) {
        struct var next;
        bool recomputes = is_recomputed(t->job, i - stage->first);
        g->kind = recomputes ? MEMORY_WORKING : MEMORY_SAVED;
        if (recomputes)
            next = graph_checkpoint(g, hidden, transformer_layer, &t->calls[i]);
        else
            transformer_layer(g, &next, hidden, &t->calls[i]);
        assign(&f, &hidden, unnamed(next));
    }
    g->kind = MEMORY_WORKING;
    return returns(&f, hidden);
}

// The mean over the tokens that count.
static struct var mean_loss(struct graph *g, struct var losses)
{
    struct scope f = scope_in(g);
    struct var each = local(&f, losses);
    struct var mask = local(&f, constant(g, losses.elements, 4));
    return returns(&f, mean(g, multiply_constant(g, each, mask), 1));
}

// slime 624b824, backends/megatron_utils/loss.py: the model's output is logits, which Float16Module
// makes fp32; their name lasts until the loss is there.
static struct var policy_loss(struct graph *g, struct var last)
{
    const struct trainer *t = g->owner;
    struct scope f = scope_in(g);
    g->kind = MEMORY_LOGITS;
    struct var logits = local(&f, unnamed(op_cut_head(g, last, megatron_of(t)->head)));
    assign(&f, &logits, cast(g, logits, 4));
    struct var chances = local(&f, unnamed(op_cut_entropy(g, logits, job_tokens(t->job))));
    g->kind = MEMORY_WORKING;
    return returns(&f, mean_loss(g, chances));
}

static struct var loss_of(struct graph *g, struct var hidden)
{
    const struct trainer *t = g->owner;
    const struct megatron *own = megatron_of(t);
    uint64_t tokens = job_tokens(t->job);
    struct scope f = scope_in(g);
    machine_phase(t->machine, PHASE_LOSS);
    struct var last = local(&f, hidden);
    if (t->job->loss == LOSS_POLICY)
        return returns(&f, policy_loss(g, last));
    g->kind = MEMORY_LOGITS;
    struct var logits = local(&f, unnamed(op_cut_head(g, last, own->head)));
    bool fused = t->job->loss == LOSS_FUSED;
    struct var losses =
        local(&f, unnamed((fused ? op_engine_entropy : op_cut_entropy)(g, logits, tokens)));
    g->kind = MEMORY_WORKING;
    forget(&f, &logits);
    return returns(&f, mean_loss(g, losses));
}

// slime's sequences follow each other in one row (backends/megatron_utils/data.py).
static uint64_t rows_of(const struct job *p)
{
    return p->loss == LOSS_POLICY ? 1 : p->batch;
}

struct var megatron_forward(struct graph *g, const struct stage *stage, struct var in)
{
    struct trainer *t = g->owner;
    const struct megatron *own = megatron_of(t);
    struct scope f = scope_in(g);
    g->recording = g->keeping = true;
    g->kind = MEMORY_SAVED;
    if (stage->has_words)
        in = op_cut_embedding(g, own->words, t->ids, rows_of(t->job));
    struct var hidden = local(&f, layers_of(g, stage, unnamed(in)));
    if (!stage->has_head)
        return taken(returns(&f, hidden));
    g->kind = MEMORY_SAVED;
    assign(&f, &hidden, engine_norm(g, hidden, own->final_norm));
    g->kind = MEMORY_WORKING;
    return taken(returns(&f, loss_of(g, hidden)));
}
