// The weights of one GPU: every tensor of the model's own table, divided as the servers' parallel
// layers divide it (vLLM's vocab_parallel_embedding.py, linear.py and fused_moe/layer.py; SGLang's
// files of the same names), and the tables of cosines that they keep beside.
#include "core/base/num.h"
#include "core/serve/serve.h"

// DEFAULT_VOCAB_PADDING_SIZE in both.
enum { VOCAB_PADDING = 64 };

// mxfp4_round_up_hidden_size_and_intermediate_size of vLLM 0.19, Marlin's row.
enum { MXFP4_WIDTH = 256, MXFP4_INNER = 128 };

#define ROLE(member) offsetof(struct layer_parameters, member)

// What every GPU has whole: the low-rank halves of latent attention, and what is added to a sum
// over all GPUs.
static bool is_whole(const struct tensor *t)
{
    static const ptrdiff_t roles[] = {
        ROLE(q_a),           ROLE(q_a_bias),  ROLE(q_a_norm),  ROLE(kv_a),
        ROLE(kv_a_bias),     ROLE(o_bias),    ROLE(kv_a_norm), ROLE(experts_down_bias),
        ROLE(shared_weight), ROLE(down_bias),
    };
    if (t->part == PART_NORMS || t->part == PART_ROUTER)
        return true;
    for (ptrdiff_t i = 0; i < COUNT_OF(roles); i++)
        if (t->role == roles[i])
            return true;
    return false;
}

// Heads of keys and values that a GPU has: at least one, which several then share.
static uint64_t kv_heads_of(const struct serve_request *r)
{
    return u64_most(r->model->kv_heads / r->tp, 1);
}

static uint64_t vision_share(const struct serve_request *r, const struct tensor *t)
{
    bool block = t->place == PLACE_VISION_BLOCK || t->place == PLACE_VISION_DEEPSTACK;
    bool divided = block && t->shape[1] > 1 && r->model->vision.heads % r->tp == 0;
    return divided ? t->elements / r->tp : t->elements;
}

static uint64_t attention_share(const struct serve_request *r, const struct tensor *t)
{
    const struct model *m = r->model;
    uint64_t kv = kv_heads_of(r) * m->head_dim;
    if (model_has(m, FEATURE_MLA) || t->place == PLACE_LINEAR_LAYER)
        return t->elements / r->tp;
    if (t->role == ROLE(k) || t->role == ROLE(v) || t->role == ROLE(k_bias) ||
        t->role == ROLE(v_bias))
        return kv * t->shape[1];
    if (t->role == ROLE(qkv) || t->role == ROLE(qkv_bias))
        return (m->heads / r->tp * m->head_dim + 2 * kv) * t->shape[1];
    return t->elements / r->tp;
}

static uint64_t padded_expert(const struct serve_request *r, const struct tensor *t)
{
    const struct model *m = r->model;
    uint64_t inner = u64_align_up(m->experts.intermediate / r->tp, MXFP4_INNER);
    uint64_t matrix = sat_mul(inner, u64_align_up(m->hidden, MXFP4_WIDTH));
    return sat_mul(m->experts.count, sat_mul(matrix, t->role == ROLE(gate_up) ? 2 : 1));
}

static bool is_expert_matrix(const struct tensor *t)
{
    return t->part == PART_EXPERTS && (t->role == ROLE(gate_up) || t->role == ROLE(experts_down));
}

uint64_t tensor_share(const struct serve_request *r, const struct tensor *t)
{
    const struct model *m = r->model;
    bool words = (t->part == PART_EMBEDDING || t->part == PART_HEAD) && t->shape[0] == m->vocab;
    if (t->part == PART_VISION)
        return vision_share(r, t);
    if (words)
        return u64_align_up(m->vocab, VOCAB_PADDING) / r->tp * t->shape[1];
    if (t->part == PART_EMBEDDING || t->part == PART_HEAD || is_whole(t))
        return t->elements;
    if (t->part == PART_ATTENTION)
        return attention_share(r, t);
    if (r->format->padded && is_expert_matrix(t))
        return padded_expert(r, t);
    return t->elements / r->tp;
}

// Matrices that a format packs: those of linear layers and experts, not embedding, head, router or
// vision tower.
static bool is_packed(const struct serve_request *r, const struct tensor *t)
{
    bool matrix =
        t->part == PART_ATTENTION || t->part == PART_MLP || t->part == PART_SHARED_EXPERTS;
    bool linear = t->shape[1] > 1 && t->role != ROLE(delta_conv) && t->role != ROLE(shared_weight);
    if (!r->format->per_1024)
        return false;
    return is_expert_matrix(t) || (matrix && linear && !r->format->experts_only);
}

static uint64_t tensor_bytes(const struct serve_request *r, const struct tensor *t)
{
    uint64_t elements = tensor_share(r, t);
    if (is_packed(r, t))
        return sat_mul(elements, r->format->per_1024) / 1024;
    return sat_mul(elements, r->element_bytes);
}

// PyTorch modules of one kind with the same positions share a table, so there is one, or one each
// for layers with a window and without (rotary_embedding/__init__.py, get_rope).
static uint64_t position_tables(const struct serve_request *r)
{
    const struct model *m = r->model;
    uint64_t row = sat_mul(m->rotary_dim, r->element_bytes);
    if (model_has(m, FEATURE_NO_ROTARY))
        return 0;
    uint64_t bytes = sat_mul(row, m->rotary_table);
    if (model_has(m, FEATURE_LOCAL_ROTARY))
        bytes = sat_add(bytes, sat_mul(row, m->max_position));
    return bytes;
}

// Latent attention keeps kv_b_proj in two more shapes (mla_attention.py, process_weights).
static uint64_t latent_copies(const struct serve_request *r, const struct stage *s)
{
    const struct latent_attention *l = &r->model->latent;
    uint64_t matrix = r->model->heads / r->tp * (l->nope_head_dim + l->value_head_dim) * l->kv_rank;
    if (!model_has(r->model, FEATURE_MLA))
        return 0;
    return sat_mul(sat_mul(matrix, r->element_bytes), s->end - s->first);
}

struct stage stage_of(const struct serve_request *r, uint64_t index)
{
    uint64_t layers = r->model->layers;
    return (struct stage){.first = layers * index / r->pp,
                          .end = layers * (index + 1) / r->pp,
                          .is_first = index == 0,
                          .is_last = index + 1 == r->pp};
}

// How often a stage has a tensor.
static uint64_t copies_in(const struct serve_request *r, const struct stage *s,
                          const struct tensor *t)
{
    const struct model *m = r->model;
    uint64_t copies = 0;
    switch (t->place) {
    case PLACE_VISION_BLOCK:
    case PLACE_VISION_DEEPSTACK:
        return s->is_first ? t->copies : 0;
    case PLACE_MODEL:
        if (t->part == PART_VISION)
            return s->is_first;
        if (t->part == PART_EMBEDDING)
            return s->is_first || (s->is_last && model_has(m, FEATURE_TIED));
        return s->is_last;
    case PLACE_LAYER:
    case PLACE_ATTENTION_LAYER:
    case PLACE_LINEAR_LAYER:
    case PLACE_DENSE_LAYER:
    case PLACE_EXPERT_LAYER:
        for (uint64_t i = s->first; i < s->end; i++)
            copies += tensor_is_in(t, &m->layer[i]);
        return copies;
    }
    __builtin_trap();
}

// A tower of which only the count of its elements is known; formats pack the text model's matrices.
static uint64_t tower_bytes(const struct serve_request *r, const struct stage *s)
{
    const struct served_model *t = r->model->served;
    return t && s->is_first ? (t->whole + t->shared / r->tp) * r->element_bytes : 0;
}

uint64_t stage_weights(const struct serve_request *r, const struct stage *s)
{
    uint64_t sum = sat_add(position_tables(r), latent_copies(r, s));
    sum = sat_add(sum, tower_bytes(r, s));
    for (ptrdiff_t i = 0; i < r->parameters.tensor_count; i++) {
        const struct tensor *t = &r->parameters.tensors[i];
        sum = sat_add(sum, sat_mul(tensor_bytes(r, t), copies_in(r, s, t)));
    }
    return sum;
}
