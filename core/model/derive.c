// What follows from several numbers of a configuration: head sizes, rotary tables, which layers
// have experts or a window. Contradictions are refused.
#include <string.h>

#include "core/base/num.h"
#include "core/model/draft.h"

// configuration_falcon.py: the new architecture has groups of keys and, unless it says otherwise,
// two norms; a layer that is not parallel has two as well.
static bool read_falcon(struct model *m, const struct origin *o, struct error *e)
{
    const struct setting *norms = config_find(o, SCOPE_TEXT, STR("num_ln_in_parallel_attn"));
    const struct setting *groups = config_find(o, SCOPE_TEXT, STR("num_kv_heads"));
    struct range range = {1, MAX_HEADS};
    bool grouped, biased, parallel, alibi, one = norms && str_is(norms->value, "1");
    if (!config_switch(&grouped, config_find(o, SCOPE_TEXT, STR("new_decoder_architecture")), e) ||
        !config_switch(&biased, config_find(o, SCOPE_TEXT, STR("bias")), e) ||
        !config_switch(&alibi, config_find(o, SCOPE_TEXT, STR("alibi")), e) ||
        !config_switch(&parallel, config_find(o, SCOPE_TEXT, STR("parallel_attn")), e))
        return false;
    if (grouped && groups && !config_is_null(groups) &&
        !setting_number(&m->kv_heads, groups, UNIT_PLAIN, range, e))
        return false;
    if (!parallel || (grouped && !one))
        m->features &= ~FEATURE_ONE_NORM;
    if (!parallel)
        m->features &= ~FEATURE_PARALLEL;
    if (alibi)
        m->features |= FEATURE_KEYS_BIASED;
    if (biased)
        m->features |= FEATURE_QKV_BIAS | FEATURE_OUTPUT_BIAS | FEATURE_MLP_BIAS;
    return true;
}

// An MLP of two matrices is four times as wide as the model where nothing else is said.
static bool derive_widths(struct model *m, const struct origin *o, struct error *e)
{
    bool shared;
    if (!m->intermediate && model_has(m, FEATURE_NO_GATE))
        m->intermediate = 4 * m->hidden;
    if (!m->intermediate && model_has(m, FEATURE_DELTA_NET))
        m->intermediate = m->experts.intermediate; // configuration_qwen3_5_moe.py: all are sparse
    if (!m->intermediate)
        return FAIL(e, BAD_INPUT, o->label, "the configuration has no intermediate_size");
    if (!config_switch(&shared, config_find(o, SCOPE_TEXT, STR("multi_query")), e))
        return false;
    if (o->family->reads & READS_HALF_MLP)
        m->intermediate /= 2;
    if (o->family->reads & READS_HEADS_ONLY)
        m->kv_heads = m->heads;
    if (shared && o->family->reads & READS_MULTI_QUERY)
        m->kv_heads = 1;
    if (m->word_width == m->hidden)
        m->word_width = 0;
    if (m->word_width)
        m->features |= FEATURE_WORDS_PROJECTED;
    return !(o->family->reads & READS_FALCON) || read_falcon(m, o, e);
}

static bool derive_heads(struct model *m, struct str where, struct error *e)
{
    if (!m->kv_heads)
        m->kv_heads = m->heads;
    if (!m->heads || !m->kv_heads)
        return FAIL(e, BAD_INPUT, where, "num_attention_heads must be at least 1");
    if (model_has(m, FEATURE_MLA)) {
        m->head_dim = 0; // its heads have parts of several sizes, in m->latent
        m->kv_heads = m->heads;
        m->features |= m->latent.query_rank ? FEATURE_QUERY_LORA : 0;
        return true;
    }
    if (!m->head_dim && m->hidden % m->heads && !m->family->floors_heads)
        return FAIL(e, BAD_INPUT, where,
                    "hidden_size %llu is not a multiple of num_attention_heads %llu, and there is "
                    "no head_dim",
                    (unsigned long long)m->hidden, (unsigned long long)m->heads);
    if (!m->head_dim)
        m->head_dim = m->hidden / m->heads;
    if (m->heads % m->kv_heads)
        return FAIL(e, BAD_INPUT, where,
                    "num_attention_heads %llu is not a multiple of num_key_value_heads %llu",
                    (unsigned long long)m->heads, (unsigned long long)m->kv_heads);
    return true;
}

// The part of a head that is rotated, from a decimal fraction: counted in thousandths.
static bool derive_rotary(struct model *m, const struct origin *o, struct error *e)
{
    const struct setting *item = config_find_any(
        o, SCOPE_TEXT, "rope_parameters.partial_rotary_factor partial_rotary_factor rotary_pct");
    uint64_t thousandths;
    m->rotary_dim = model_has(m, FEATURE_MLA) ? m->latent.rope_head_dim : m->head_dim;
    if (!item || config_is_null(item) || !model_has(m, FEATURE_ROTARY_PART))
        return true;
    struct arena scratch = *o->arena;
    struct str text = str_format(&scratch, "%.*skB", STR_ARGS(item->value));
    if (unit_parse(&thousandths, UNIT_BYTES, text) != UNIT_OK || thousandths > 1000)
        return FAIL(e, BAD_INPUT, item->where,
                    "partial_rotary_factor must be between 0 and 1, not '%.*s'",
                    STR_ARGS(str_short(item->value)));
    m->rotary_dim = m->head_dim * thousandths / 1000;
    return true;
}

// Rows of the table of cosines that servers keep: positions are stretched by a factor, under YaRN
// those that the model had before (vLLM's rotary_embedding: linear_scaling_rope.py and others).
static bool derive_rotary_table(struct model *m, const struct origin *o, struct error *e)
{
    const struct setting *type =
        config_find_any(o, SCOPE_TEXT,
                        "rope_parameters.full_attention.rope_type rope_parameters.rope_type "
                        "rope_scaling.rope_type rope_scaling.type");
    const struct setting *factor = config_find_any(
        o, SCOPE_TEXT,
        "rope_parameters.full_attention.factor rope_parameters.factor rope_scaling.factor");
    const struct setting *original = config_find_any(
        o, SCOPE_TEXT,
        "rope_parameters.original_max_position_embeddings "
        "rope_scaling.original_max_position_embeddings original_max_position_embeddings");
    uint64_t thousandths, rows = m->max_position;
    m->rotary_table = rows;
    if (!type || !factor || config_is_null(factor) ||
        !words_have("linear dynamic yarn", ' ', type->value))
        return true;
    struct arena scratch = *o->arena;
    struct str text = str_format(&scratch, "%.*skB", STR_ARGS(factor->value));
    if (unit_parse(&thousandths, UNIT_BYTES, text) != UNIT_OK || thousandths > MAX_POSITION)
        return FAIL(e, BAD_INPUT, factor->where, "rope_scaling.factor must be a number, not '%.*s'",
                    STR_ARGS(str_short(factor->value)));
    if (str_is(type->value, "yarn") && original && !config_is_null(original) &&
        !setting_number(&rows, original, UNIT_PLAIN, (struct range){1, MAX_POSITION}, e))
        return false;
    m->rotary_table = sat_mul(rows, thousandths) / 1000;
    return true;
}

// A chance that is not 0, in whatever way it is written.
static bool is_more_than_zero(const struct setting *item)
{
    for (ptrdiff_t i = 0; item && !config_is_null(item) && i < item->value.n; i++)
        if (item->value.p[i] >= '1' && item->value.p[i] <= '9')
            return true;
    return false;
}

static bool is_likely(const struct origin *o, const char *keys)
{
    return is_more_than_zero(config_find_any(o, SCOPE_TEXT, keys));
}

static void derive_dropouts(struct model *m, const struct origin *o)
{
    if (!(o->family->reads & READS_DROPOUT))
        return;
    m->dropouts.residual = is_likely(o, "residual_dropout resid_pdrop hidden_dropout dropout");
    m->dropouts.attention = is_likely(o, "attention_dropout attn_pdrop");
    m->dropouts.embedding = is_likely(o, "embedding_dropout embd_pdrop");
}

// activations.py: what is one kernel, and what is written out.
static bool derive_activation(struct model *m, const struct origin *o, struct error *e)
{
    static const char *const words[] = {
        [ACTIVATION_FUSED] = "silu swish gelu gelu_pytorch_tanh mish",
        [ACTIVATION_RELU] = "relu",
        [ACTIVATION_RELU2] = "relu2",
        [ACTIVATION_GELU_NEW] = "gelu_new gelu_accurate",
        [ACTIVATION_BLOOM] = "bloom",
    };
    const struct setting *item =
        config_find_any(o, SCOPE_TEXT, "hidden_act activation_function activation");
    if (!model_has(m, FEATURE_NO_GATE) || !item)
        return true;
    for (int i = 0; i < COUNT_OF(words); i++)
        if (words_have(words[i], ' ', item->value)) {
            m->activation = (enum activation_kind)i;
            return true;
        }
    return FAIL(e, UNSUPPORTED, item->where, "the activation '%.*s' is not modelled",
                STR_ARGS(str_short(item->value)));
}

// What a configuration can turn on that nobody has written down here.
static bool refuse_others(const struct origin *o, struct error *e)
{
    struct words keys = words_of(o->family->refuses ? o->family->refuses : "", ' ');
    while (words_next(&keys)) {
        const struct setting *item = config_find(o, SCOPE_TEXT, keys.word);
        bool number = item && item->value.n && item->value.p[0] >= '0' && item->value.p[0] <= '9';
        bool on = number && is_more_than_zero(item);
        if (!number && !config_switch(&on, item, e))
            return false;
        if (on && item)
            return FAIL(e, UNSUPPORTED, item->where, "%.*s of %s is not modelled",
                        STR_ARGS(keys.word), o->family->title);
    }
    return true;
}

static bool derive_experts(struct draft *d, struct str where, struct error *e)
{
    struct model *m = &d->model;
    if (!m->experts.count)
        m->features &= ~(FEATURE_EXPERTS | FEATURE_SHARED_EXPERT);
    if (!model_has(m, FEATURE_EXPERTS) && model_has(m, FEATURE_SHARED_FUSED))
        m->intermediate = m->experts.shared_intermediate; // Granite 4: in place of experts
    if (!model_has(m, FEATURE_EXPERTS))
        return true;
    if (!m->experts.intermediate)
        m->experts.intermediate = m->intermediate;
    if (d->helpers.dense_intermediate)
        m->intermediate = d->helpers.dense_intermediate;
    if (m->experts.per_token > m->experts.count)
        return FAIL(e, BAD_INPUT, where,
                    "num_experts_per_tok %llu exceeds the %llu experts there are",
                    (unsigned long long)m->experts.per_token, (unsigned long long)m->experts.count);
    if (!m->experts.shared_intermediate)
        m->experts.shared_intermediate = d->helpers.shared_experts * m->experts.intermediate;
    if (!m->experts.shared_intermediate)
        m->features &= ~(FEATURE_SHARED_EXPERT | FEATURE_SHARED_FUSED);
    return true;
}

// A list of blocks: the configuration's, or what catalogue and family say of it, under another name
// so that nothing is assumed of a list that is shorter.
struct block_list {
    const char *list, *assumed;
    uint64_t assumed_count, most;
};

static bool read_blocks(uint64_t *count, uint64_t *blocks, const struct block_list *b,
                        const struct origin *o, struct error *e)
{
    while (*count < b->most && config_find_item(o, SCOPE_VISION, b->list, *count))
        (*count)++;
    if (!*count && !config_find(o, SCOPE_VISION, str_from(b->list)))
        *count = b->assumed_count;
    if (*count >= b->most)
        return FAIL(e, BAD_INPUT, o->label, "vision_config.%s has more items than are known",
                    b->list);
    for (uint64_t i = 0; i < *count; i++) {
        const struct setting *item = config_find_item(o, SCOPE_VISION, b->list, i);
        if (!item)
            item = config_find_item(o, SCOPE_VISION, b->assumed, i);
        if (item && !setting_number(&blocks[i], item, UNIT_PLAIN, (struct range){0, MAX_LAYERS}, e))
            return false;
    }
    return true;
}

static bool derive_vision(struct draft *d, const struct origin *o, struct error *e)
{
    struct vision *v = &d->model.vision;
    if (!(d->model.features & ANY_VISION))
        return true;
    if (v->hidden % v->heads)
        return FAIL(e, BAD_INPUT, o->label,
                    "vision_config.hidden_size %llu is not a multiple of its %llu heads",
                    (unsigned long long)v->hidden, (unsigned long long)v->heads);
    if (!v->positions)
        v->positions = (d->helpers.image_size / v->patch) * (d->helpers.image_size / v->patch);
    const struct block_list deep = {"deepstack_visual_indexes", "deepstack_at",
                                    d->helpers.deepstack, MOST_DEEPSTACK};
    const struct block_list full = {"fullatt_block_indexes", "full_at", d->helpers.full_blocks,
                                    MOST_FULL};
    return read_blocks(&v->deepstack, v->deepstack_after, &deep, o, e) &&
           read_blocks(&v->full, v->full_at, &full, o, e);
}

static bool slides_by_rule(const struct draft *d, const struct family *f, uint64_t layer,
                           bool switched)
{
    uint64_t period = d->helpers.window_period ? d->helpers.window_period : f->window_period;
    switch (f->window) {
    case WINDOW_NEVER:
        return false;
    case WINDOW_ALL:
        return true;
    case WINDOW_IF_SWITCHED_ON:
        return switched && layer >= d->helpers.max_window_layers;
    case WINDOW_PERIODIC:
        return (layer + 1) % period != 0;
    }
    __builtin_trap();
}

// layer_types says it layer by layer; without it the family's rule does.
static bool read_layer_type(bool *slides, const struct origin *o, uint64_t layer, struct error *e)
{
    const struct setting *stated = config_find_item(o, SCOPE_TEXT, "layer_types", layer);
    if (stated) {
        if (str_is(stated->value, "chunked_attention")) // Llama 4: a mask like a window's
            return *slides = true;
        if (str_is(stated->value, "linear_attention") && (o->family->features & FEATURE_DELTA_NET))
            return true;
        if (str_is(stated->value, "mamba") || str_is(stated->value, "linear_attention"))
            return FAIL(e, UNSUPPORTED, stated->where,
                        "layers of %s that are no attention are not modelled", o->family->title);
        *slides = str_is(stated->value, "sliding_attention");
        if (str_is(stated->value, "attention")) // Granite 4
            return true;
        return setting_choice(stated, STR("full_attention|sliding_attention"), e);
    }
    if (layer > 0 && config_find_item(o, SCOPE_TEXT, "layer_types", 0))
        return FAIL(e, BAD_INPUT, o->label, "layer_types names only %llu of the layers",
                    (unsigned long long)layer);
    return true;
}

// Which layers have experts: decoder_sparse_step and mlp_only_layers as modeling_qwen3_moe.py reads
// them, first_k_dense_replace as modeling_deepseek_v3.py does.
static bool layer_has_experts(const struct draft *d, uint64_t layer)
{
    if (!model_has(&d->model, FEATURE_EXPERTS) || layer < d->helpers.dense_layers)
        return false;
    return !d->helpers.sparse_step || (layer + 1) % d->helpers.sparse_step == 0;
}

static bool clear_dense_layers(struct layer_kind *layer, uint64_t layers, const struct origin *o,
                               struct error *e)
{
    for (uint64_t i = 0; i < MAX_LAYERS; i++) {
        const struct setting *item = config_find_item(o, SCOPE_TEXT, "mlp_only_layers", i);
        uint64_t number;
        if (!item)
            return true;
        if (!setting_number(&number, item, UNIT_PLAIN, (struct range){0, layers - 1}, e))
            return false;
        layer[number].experts = false;
    }
    return true;
}

// Layers without positions: no_rope_layers has a 0 for them; without it every n-th is one.
static bool read_unrotated(bool *unrotated, const struct draft *d, const struct origin *o,
                           uint64_t layer, struct error *e)
{
    const struct setting *item = config_find_item(o, SCOPE_TEXT, "no_rope_layers", layer);
    uint64_t rotated;
    *unrotated = d->helpers.unrotated_period && (layer + 1) % d->helpers.unrotated_period == 0;
    if (!item || !d->helpers.unrotated_period)
        return true;
    if (!setting_number(&rotated, item, UNIT_PLAIN, (struct range){0, 1}, e))
        return false;
    *unrotated = !rotated;
    return true;
}

static bool layer_is_linear(const struct draft *d, const struct origin *o, uint64_t layer)
{
    const struct setting *stated = config_find_item(o, SCOPE_TEXT, "layer_types", layer);
    if (!model_has(&d->model, FEATURE_DELTA_NET))
        return false;
    return stated ? str_is(stated->value, "linear_attention")
                  : (layer + 1) % d->helpers.full_period != 0;
}

static bool derive_layers(struct draft *d, const struct origin *o, struct error *e)
{
    struct model *m = &d->model;
    bool switched;
    if (!config_switch(&switched, config_find(o, SCOPE_TEXT, STR("use_sliding_window")), e))
        return false;
    struct layer_kind *layer = NEW(o->arena, struct layer_kind, (ptrdiff_t)m->layers);
    for (uint64_t i = 0; i < m->layers; i++) {
        bool slides = slides_by_rule(d, o->family, i, switched);
        if (!read_layer_type(&slides, o, i, e))
            return false;
        layer[i].sliding = m->sliding_window && slides;
        layer[i].linear = layer_is_linear(d, o, i);
        layer[i].experts = layer_has_experts(d, i);
        if (!read_unrotated(&layer[i].unrotated, d, o, i, e))
            return false;
        if (model_has(m, FEATURE_WINDOWED_ROTARY))
            layer[i].unrotated = m->sliding_window && !slides;
        if (model_has(m, FEATURE_NO_ROTARY))
            layer[i].unrotated = true;
    }
    if (!clear_dense_layers(layer, m->layers, o, e))
        return false;
    m->layer = layer;
    if (!model_sliding_layers(m))
        m->sliding_window = 0;
    return true;
}

bool draft_derive(struct draft *d, const struct origin *o, struct error *e)
{
    struct model *m = &d->model;
    if (!refuse_others(o, e) || !derive_activation(m, o, e) || !derive_widths(m, o, e) ||
        !derive_heads(m, o->label, e) || !derive_rotary(m, o, e) || !derive_rotary_table(m, o, e) ||
        !derive_experts(d, o->label, e) || !derive_vision(d, o, e) || !derive_layers(d, o, e))
        return false;
    derive_dropouts(m, o);
    if (d->helpers.rotary_dim)
        m->rotary_dim = u64_least(d->helpers.rotary_dim, m->head_dim);
    if (model_has(m, FEATURE_ALIBI))
        m->max_position = m->rotary_table = 0; // any length has its biases
    return true;
}
