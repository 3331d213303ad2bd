// From flat settings to a struct model. Every number of a configuration is a row of `fields`: where
// it goes, the names it has had, and its range; what is absent comes from the family's defaults.
// What follows from several numbers (head sizes, which layers have experts or a window) is derived
// after that, and contradictions are refused.
#include "core/model/model.h"

#include <string.h>

#include "core/base/num.h"

enum scope { SCOPE_TEXT, SCOPE_VISION };

// Where the numbers come from: the user's list first, then the family's defaults.
struct origin {
    struct arena *arena;
    const struct settings *given;
    const char *root; // "config." or "" (catalogue)
    const struct family *family;
    struct settings defaults;
    struct str label; // "Qwen3-8B", "config.json": for messages about absent values
};

// Numbers that only help to derive others.
struct helpers {
    uint64_t shared_experts, dense_layers, sparse_step, max_window_layers, window_period,
        image_size;
    uint64_t deepstack, full_blocks;
    uint64_t unrotated_period;
    uint64_t rotary_dim;
    uint64_t dense_intermediate, full_period;
};

struct draft {
    struct model model;
    struct helpers helpers;
};

struct field {
    ptrdiff_t offset;
    enum scope scope;
    bool required;
    bool may_be_zero;
    uint64_t max;
    feature_set only_with; // a family without these features does not read it
    const char *keys;      // alternatives, space-separated
    const char *unless;    // a key that says it better
    const char *called;    // in a message; NULL: by the first key
};

#define IN_MODEL(member)  offsetof(struct draft, model.member)
#define IN_HELPER(member) offsetof(struct draft, helpers.member)

enum {
    MAX_LAYERS = 1024,
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = 1 << 14,
    MAX_VOCAB = 1 << 24,
    MAX_EXPERTS = 1 << 14,
    MAX_POSITION = 1 << 28,
};

static const struct field fields[] = {
    {IN_MODEL(hidden), SCOPE_TEXT, .required = true, .max = MAX_WIDTH,
     .keys = "hidden_size n_embd d_model n_embed"},
    {IN_MODEL(layers), SCOPE_TEXT, .required = true, .max = MAX_LAYERS,
     .keys = "num_hidden_layers n_layer n_layers num_layers"},
    {IN_MODEL(heads), SCOPE_TEXT, .required = true, .max = MAX_HEADS,
     .keys = "num_attention_heads n_head n_heads"},
    {IN_MODEL(kv_heads), SCOPE_TEXT, .max = MAX_HEADS,
     .keys = "num_key_value_heads num_kv_heads multi_query_group_num"},
    {IN_MODEL(head_dim), SCOPE_TEXT, .max = MAX_WIDTH, .keys = "head_dim kv_channels"},
    {IN_MODEL(intermediate), SCOPE_TEXT, .max = MAX_WIDTH,
     .keys = "intermediate_size n_inner ffn_dim ffn_hidden_size"},
    {IN_MODEL(vocab), SCOPE_TEXT, .required = true, .max = MAX_VOCAB,
     .keys = "padded_vocab_size vocab_size", .called = "vocab_size"},
    {IN_MODEL(max_position), SCOPE_TEXT, .max = MAX_POSITION,
     .keys = "max_position_embeddings n_positions max_seq_len seq_length"},
    {IN_MODEL(first_position), SCOPE_TEXT, .max = MAX_POSITION, .only_with = FEATURE_POSITIONS,
     .keys = "first_position"},
    {IN_MODEL(word_width), SCOPE_TEXT, .max = MAX_WIDTH, .only_with = FEATURE_QUERIES_SCALED,
     .keys = "word_embed_proj_dim"},
    {IN_HELPER(rotary_dim), SCOPE_TEXT, .max = MAX_WIDTH, .only_with = FEATURE_WIDE_SCORES,
     .keys = "rotary_dim"},
    {IN_MODEL(sliding_window), SCOPE_TEXT, .may_be_zero = true, .max = MAX_POSITION,
     .keys = "sliding_window attention_chunk_size"},
    {IN_HELPER(max_window_layers), SCOPE_TEXT, .may_be_zero = true, .max = MAX_LAYERS,
     .keys = "max_window_layers"},
    {IN_HELPER(window_period), SCOPE_TEXT, .max = MAX_LAYERS,
     .keys = "sliding_window_pattern _sliding_window_pattern", .unless = "layer_types.0"},
    {IN_HELPER(unrotated_period), SCOPE_TEXT, .max = MAX_LAYERS, .keys = "no_rope_layer_interval"},
    {IN_MODEL(experts.count), SCOPE_TEXT, .required = true, .may_be_zero = true, .max = MAX_EXPERTS,
     .only_with = FEATURE_EXPERTS,
     .keys = "num_experts num_local_experts n_routed_experts moe_num_experts"},
    {IN_MODEL(experts.per_token), SCOPE_TEXT, .required = true, .max = MAX_EXPERTS,
     .only_with = FEATURE_EXPERTS,
     .keys = "num_experts_per_tok experts_per_token moe_k moe_topk moe_topk.0"},
    {IN_MODEL(experts.intermediate), SCOPE_TEXT, .max = MAX_WIDTH, .only_with = FEATURE_EXPERTS,
     .keys = "moe_intermediate_size"},
    {IN_HELPER(shared_experts), SCOPE_TEXT, .may_be_zero = true, .max = MAX_EXPERTS,
     .only_with = FEATURE_SHARED_EXPERT, .keys = "n_shared_experts moe_num_shared_experts"},
    {IN_MODEL(experts.shared_intermediate), SCOPE_TEXT, .may_be_zero = true, .max = MAX_WIDTH,
     .only_with = FEATURE_SHARED_GATE | FEATURE_SHARED_FUSED,
     .keys = "shared_expert_intermediate_size shared_intermediate_size"},
    {IN_HELPER(dense_layers), SCOPE_TEXT, .may_be_zero = true, .max = MAX_LAYERS,
     .only_with = FEATURE_EXPERTS, .keys = "first_k_dense_replace moe_layer_start_index"},
    {IN_HELPER(sparse_step), SCOPE_TEXT, .max = MAX_LAYERS, .only_with = FEATURE_EXPERTS,
     .keys = "decoder_sparse_step interleave_moe_layer_step moe_layer_interval"},
    {IN_HELPER(dense_intermediate), SCOPE_TEXT, .max = MAX_WIDTH,
     .only_with = FEATURE_EXPERTS_DENSE, .keys = "intermediate_size_mlp"},
    {IN_MODEL(latent.query_rank), SCOPE_TEXT, .max = MAX_WIDTH, .only_with = FEATURE_MLA,
     .keys = "q_lora_rank"},
    {IN_MODEL(latent.kv_rank), SCOPE_TEXT, .required = true, .max = MAX_WIDTH,
     .only_with = FEATURE_MLA, .keys = "kv_lora_rank"},
    {IN_MODEL(latent.nope_head_dim), SCOPE_TEXT, .required = true, .max = MAX_WIDTH,
     .only_with = FEATURE_MLA, .keys = "qk_nope_head_dim"},
    {IN_MODEL(latent.rope_head_dim), SCOPE_TEXT, .required = true, .max = MAX_WIDTH,
     .only_with = FEATURE_MLA, .keys = "qk_rope_head_dim"},
    {IN_MODEL(latent.value_head_dim), SCOPE_TEXT, .required = true, .max = MAX_WIDTH,
     .only_with = FEATURE_MLA, .keys = "v_head_dim"},
    {IN_MODEL(delta.key_heads), SCOPE_TEXT, .required = true, .max = MAX_HEADS,
     .only_with = FEATURE_DELTA_NET, .keys = "linear_num_key_heads"},
    {IN_MODEL(delta.value_heads), SCOPE_TEXT, .required = true, .max = MAX_HEADS,
     .only_with = FEATURE_DELTA_NET, .keys = "linear_num_value_heads"},
    {IN_MODEL(delta.key_head_dim), SCOPE_TEXT, .required = true, .max = MAX_WIDTH,
     .only_with = FEATURE_DELTA_NET, .keys = "linear_key_head_dim"},
    {IN_MODEL(delta.value_head_dim), SCOPE_TEXT, .required = true, .max = MAX_WIDTH,
     .only_with = FEATURE_DELTA_NET, .keys = "linear_value_head_dim"},
    {IN_MODEL(delta.kernel), SCOPE_TEXT, .required = true, .max = 64,
     .only_with = FEATURE_DELTA_NET, .keys = "linear_conv_kernel_dim"},
    {IN_HELPER(full_period), SCOPE_TEXT, .max = MAX_LAYERS, .only_with = FEATURE_DELTA_NET,
     .keys = "full_attention_interval"},
    {IN_MODEL(vision.depth), SCOPE_VISION, .required = true, .max = MAX_LAYERS,
     .keys = "depth num_hidden_layers"},
    {IN_MODEL(vision.hidden), SCOPE_VISION, .required = true, .max = MAX_WIDTH,
     .keys = "hidden_size"},
    {IN_MODEL(vision.intermediate), SCOPE_VISION, .required = true, .max = MAX_WIDTH,
     .keys = "intermediate_size"},
    {IN_MODEL(vision.heads), SCOPE_VISION, .required = true, .max = MAX_HEADS,
     .keys = "num_heads num_attention_heads"},
    {IN_MODEL(vision.patch), SCOPE_VISION, .required = true, .max = 4096, .keys = "patch_size"},
    {IN_MODEL(vision.channels), SCOPE_VISION, .max = 64, .keys = "in_channels num_channels"},
    {IN_MODEL(vision.temporal_patch), SCOPE_VISION, .max = 64, .keys = "temporal_patch_size"},
    {IN_MODEL(vision.merge), SCOPE_VISION, .max = 64, .keys = "spatial_merge_size"},
    {IN_MODEL(vision.positions), SCOPE_VISION, .max = MAX_VOCAB, .keys = "num_position_embeddings"},
    {IN_MODEL(vision.out_hidden), SCOPE_VISION, .max = MAX_WIDTH, .keys = "out_hidden_size"},
    {IN_HELPER(deepstack), SCOPE_VISION, .max = MAX_LAYERS, .keys = "deepstack_count"},
    {IN_MODEL(vision.window), SCOPE_VISION, .max = MAX_WIDTH, .keys = "window_size"},
    {IN_HELPER(full_blocks), SCOPE_VISION, .max = MAX_LAYERS, .keys = "full_count"},
    {IN_HELPER(image_size), SCOPE_VISION, .max = MAX_WIDTH, .keys = "image_size"},
};

static const feature_set any_vision =
    FEATURE_VISION_QWEN3 | FEATURE_VISION_SIGLIP | FEATURE_VISION_WINDOWS;

// The value under one key: as given, else as the family assumes. A caller's scratch arena holds the
// composed key while it is looked up.
static const struct setting *look_up(const struct origin *o, enum scope scope, struct str key)
{
    struct arena scratch = *o->arena;
    const char *nest = scope == SCOPE_VISION ? "vision_config."
                       : o->family->nested   ? "text_config."
                                             : "";
    struct str full = str_format(&scratch, "%s%s%.*s", o->root, nest, STR_ARGS(key));
    const struct setting *found = settings_find(o->given, full);
    if (found)
        return found;
    // Qwen2.5-VL's file has the text's values beside vision_config.
    found = settings_find(o->given, str_format(&scratch, "%s%.*s", o->root, STR_ARGS(key)));
    if (found && scope == SCOPE_TEXT && o->family->features & FEATURE_VISION_WINDOWS)
        return found;
    const char *assumed = scope == SCOPE_VISION ? "vision." : "";
    return settings_find(&o->defaults, str_format(&scratch, "%s%.*s", assumed, STR_ARGS(key)));
}

// Item `index` of a list in the configuration.
static const struct setting *look_up_item(const struct origin *o, enum scope scope,
                                          const char *list, uint64_t index)
{
    struct arena scratch = *o->arena;
    struct origin inner = *o;
    inner.arena = &scratch;
    return look_up(&inner, scope, str_format(&scratch, "%s.%llu", list, (unsigned long long)index));
}

// What is given under any name goes before what is assumed under the first.
static const struct setting *look_up_any(const struct origin *o, enum scope scope, const char *keys)
{
    const struct setting *found = NULL, *assumed = NULL;
    struct settings none = settings_in(o->arena);
    struct origin given = *o;
    given.defaults = none;
    struct words names = words_of(keys, ' ');
    while (!found && words_next(&names)) {
        found = look_up(&given, scope, names.word);
        assumed = assumed || found ? assumed : look_up(o, scope, names.word);
    }
    return found ? found : assumed;
}

// JSON's null: the key is there to say that nothing is meant, the family's default included.
static bool is_null(const struct setting *item)
{
    return str_is(item->value, "null");
}

// Refuses a list or an object in the place of a number.
static bool check_is_number(const struct origin *o, const struct field *f, struct error *e)
{
    struct words names = words_of(f->keys, ' ');
    while (words_next(&names)) {
        struct arena scratch = *o->arena;
        struct str start =
            str_format(&scratch, "%s%s%.*s.", o->root, o->family->nested ? "text_config." : "",
                       STR_ARGS(names.word));
        for (ptrdiff_t i = 0; i < o->given->count; i++)
            if (str_starts(o->given->items[i].key, start))
                return FAIL(e, BAD_INPUT, o->label, "the configuration's %.*s must be a number",
                            STR_ARGS(names.word));
    }
    return true;
}

static bool read_field(struct draft *d, const struct origin *o, const struct field *f,
                       struct error *e)
{
    const struct setting *item = look_up_any(o, f->scope, f->keys);
    if (f->unless && look_up(o, f->scope, str_from(f->unless)))
        return true;
    if (f->required && !check_is_number(o, f, e))
        return false;
    if (!item || is_null(item)) {
        struct str first = f->called ? str_from(f->called) : str_cut(str_from(f->keys), ' ').head;
        return !f->required ||
               FAIL(e, BAD_INPUT, o->label, "the configuration has no %s%.*s",
                    f->scope == SCOPE_VISION ? "vision_config." : "", STR_ARGS(first));
    }
    uint64_t value;
    struct range range = {f->may_be_zero ? 0 : 1, f->max};
    if (!setting_number(&value, item, UNIT_PLAIN, range, e))
        return false;
    memcpy((char *)d + f->offset, &value, sizeof value);
    return true;
}

static bool read_fields(struct draft *d, const struct origin *o, struct error *e)
{
    bool has_vision = o->family->features & any_vision;
    for (ptrdiff_t i = 0; i < COUNT_OF(fields); i++) {
        const struct field *f = &fields[i];
        bool read = f->scope == SCOPE_VISION
                        ? has_vision
                        : !f->only_with || (o->family->features & f->only_with);
        if (read && !read_field(d, o, f, e))
            return false;
    }
    return true;
}

static bool read_switch(bool *on, const struct setting *item, struct error *e)
{
    *on = false;
    return !item || is_null(item) || setting_switch(on, item, e);
}

// Of a nested configuration, transformers obeys the outer value.
static bool read_tied(bool *on, const struct origin *o, struct error *e)
{
    struct arena scratch = *o->arena;
    const struct setting *item = NULL;
    if (o->family->nested)
        item = settings_find(o->given, str_format(&scratch, "%stie_word_embeddings", o->root));
    return read_switch(on, item ? item : look_up(o, SCOPE_TEXT, STR("tie_word_embeddings")), e);
}

// A weight of nothing: trainers leave the loss out.
static bool has_router_loss(const struct origin *o)
{
    const struct setting *item = look_up(o, SCOPE_TEXT, STR("router_aux_loss_coef"));
    bool is_zero = item && item->value.n > 0;
    for (ptrdiff_t i = 0; is_zero && i < item->value.n; i++)
        is_zero = item->value.p[i] == '0' || item->value.p[i] == '.';
    return !is_zero;
}

// How a router chooses.
static bool read_choice(struct model *m, const struct origin *o, struct error *e)
{
    bool normed;
    const struct setting *method = look_up(o, SCOPE_TEXT, STR("topk_method"));
    if (!read_switch(&normed, look_up(o, SCOPE_TEXT, STR("norm_topk_prob")), e))
        return false;
    if (o->family->reads & READS_NORM_TOPK)
        m->features |= normed ? 0 : FEATURE_ROUTER_PLAIN;
    const struct setting *groups = look_up(o, SCOPE_TEXT, STR("n_group"));
    bool has_groups = model_has(m, FEATURE_ROUTER_SOFTMAX)
                          ? method && str_is(method->value, "group_limited_greedy")
                          : groups && !is_null(groups) && !str_is(groups->value, "1");
    if (has_groups && model_has(m, FEATURE_ROUTER_SOFTMAX | FEATURE_ROUTER_BALANCE))
        m->features |= FEATURE_ROUTER_GROUPS;
    return true;
}

static bool read_norm_place(struct model *m, const struct origin *o, struct error *e)
{
    const struct setting *place = look_up(o, SCOPE_TEXT, STR("do_layer_norm_before"));
    bool before = true;
    if (place && o->family->reads & READS_NORM_PLACE && !read_switch(&before, place, e))
        return false;
    m->features |= before ? 0 : FEATURE_NORMS_BEHIND;
    return true;
}

static bool read_features(struct model *m, const struct origin *o, struct error *e)
{
    static const struct {
        const char *key;
        enum family_reads reads;
        feature_set features;
        bool null_clears; // else true sets
    } rows[] = {
        {"attention_bias", READS_ATTENTION_BIAS, FEATURE_QKV_BIAS | FEATURE_OUTPUT_BIAS, false},
        {"attention_bias", READS_QKV_BIAS, FEATURE_QKV_BIAS, false},
        {"attention_out_bias", READS_OUTPUT_BIAS, FEATURE_OUTPUT_BIAS, false},
        {"use_qkv_bias", READS_USE_QKV_BIAS, FEATURE_QKV_BIAS, false},
        {"use_qk_norm", READS_USE_QK_NORM,
         FEATURE_QK_NORM | FEATURE_QK_NORM_WIDE | FEATURE_QK_NORM_LATE, false},
        {"use_parallel_residual", READS_PARALLEL, FEATURE_PARALLEL, false},
        {"enable_bias", READS_ENABLE_BIAS,
         FEATURE_QKV_BIAS | FEATURE_OUTPUT_BIAS | FEATURE_MLP_BIAS, false},
        {"use_bias", READS_USE_BIAS, FEATURE_QKV_BIAS | FEATURE_OUTPUT_BIAS | FEATURE_MLP_BIAS,
         false},
        {"mlp_bias", READS_MLP_BIAS, FEATURE_MLP_BIAS, false},
        {"use_qk_norm", READS_L2_NORM, FEATURE_L2_NORM, false},
        {"use_qk_norm", READS_QK_NORM, FEATURE_QK_NORM | FEATURE_QK_NORM_LATE, false},
        {"attn_logit_softcapping", READS_SOFTCAPS, FEATURE_ATTENTION_CAP, true},
        {"final_logit_softcapping", READS_SOFTCAPS, FEATURE_LOGIT_CAP, true},
    };
    bool on;
    if (!read_tied(&on, o, e))
        return false;
    m->features = o->family->features | (on ? FEATURE_TIED : 0);
    if (!has_router_loss(o))
        m->features &= ~FEATURE_ROUTER_LOSS;
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        const struct setting *item = look_up(o, SCOPE_TEXT, str_from(rows[i].key));
        if (!(o->family->reads & rows[i].reads))
            continue;
        if (rows[i].null_clears && item && is_null(item))
            m->features &= ~rows[i].features;
        if (rows[i].null_clears)
            continue;
        if (!read_switch(&on, item, e))
            return false;
        m->features |= on ? rows[i].features : 0;
    }
    const struct setting *kind = look_up(o, SCOPE_TEXT, STR("position_embedding_type"));
    if (o->family->reads & READS_POSITIONS && (!kind || !str_is(kind->value, "rope")))
        m->features |= FEATURE_NO_ROTARY;
    return read_norm_place(m, o, e) && read_choice(m, o, e);
}

// configuration_falcon.py: the new architecture has groups of keys and, unless it says otherwise,
// two norms; a layer that is not parallel has two as well.
static bool read_falcon(struct model *m, const struct origin *o, struct error *e)
{
    const struct setting *norms = look_up(o, SCOPE_TEXT, STR("num_ln_in_parallel_attn"));
    const struct setting *groups = look_up(o, SCOPE_TEXT, STR("num_kv_heads"));
    struct range range = {1, MAX_HEADS};
    bool grouped, biased, parallel, one = norms && str_is(norms->value, "1");
    if (!read_switch(&grouped, look_up(o, SCOPE_TEXT, STR("new_decoder_architecture")), e) ||
        !read_switch(&biased, look_up(o, SCOPE_TEXT, STR("bias")), e) ||
        !read_switch(&parallel, look_up(o, SCOPE_TEXT, STR("parallel_attn")), e))
        return false;
    if (grouped && groups && !is_null(groups) &&
        !setting_number(&m->kv_heads, groups, UNIT_PLAIN, range, e))
        return false;
    if (!parallel || (grouped && !one))
        m->features &= ~FEATURE_ONE_NORM;
    if (!parallel)
        m->features &= ~FEATURE_PARALLEL;
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
    if (!read_switch(&shared, look_up(o, SCOPE_TEXT, STR("multi_query")), e))
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
    if (!m->head_dim && m->hidden % m->heads)
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
    const struct setting *item = look_up_any(
        o, SCOPE_TEXT, "rope_parameters.partial_rotary_factor partial_rotary_factor rotary_pct");
    uint64_t thousandths;
    m->rotary_dim = model_has(m, FEATURE_MLA) ? m->latent.rope_head_dim : m->head_dim;
    if (!item || is_null(item) || !model_has(m, FEATURE_ROTARY_PART))
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
        look_up_any(o, SCOPE_TEXT,
                    "rope_parameters.full_attention.rope_type rope_parameters.rope_type "
                    "rope_scaling.rope_type rope_scaling.type");
    const struct setting *factor = look_up_any(
        o, SCOPE_TEXT,
        "rope_parameters.full_attention.factor rope_parameters.factor rope_scaling.factor");
    const struct setting *original = look_up_any(
        o, SCOPE_TEXT,
        "rope_parameters.original_max_position_embeddings "
        "rope_scaling.original_max_position_embeddings original_max_position_embeddings");
    uint64_t thousandths, rows = m->max_position;
    m->rotary_table = rows;
    if (!type || !factor || is_null(factor) || !words_have("linear dynamic yarn", ' ', type->value))
        return true;
    struct arena scratch = *o->arena;
    struct str text = str_format(&scratch, "%.*skB", STR_ARGS(factor->value));
    if (unit_parse(&thousandths, UNIT_BYTES, text) != UNIT_OK || thousandths > MAX_POSITION)
        return FAIL(e, BAD_INPUT, factor->where, "rope_scaling.factor must be a number, not '%.*s'",
                    STR_ARGS(str_short(factor->value)));
    if (str_is(type->value, "yarn") && original && !is_null(original) &&
        !setting_number(&rows, original, UNIT_PLAIN, (struct range){1, MAX_POSITION}, e))
        return false;
    m->rotary_table = sat_mul(rows, thousandths) / 1000;
    return true;
}

// A chance that is not 0, in whatever way it is written.
static bool is_more_than_zero(const struct setting *item)
{
    for (ptrdiff_t i = 0; item && !is_null(item) && i < item->value.n; i++)
        if (item->value.p[i] >= '1' && item->value.p[i] <= '9')
            return true;
    return false;
}

static bool is_likely(const struct origin *o, const char *keys)
{
    return is_more_than_zero(look_up_any(o, SCOPE_TEXT, keys));
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
        look_up_any(o, SCOPE_TEXT, "hidden_act activation_function activation");
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
        const struct setting *item = look_up(o, SCOPE_TEXT, keys.word);
        bool number = item && item->value.n && item->value.p[0] >= '0' && item->value.p[0] <= '9';
        bool on = number && is_more_than_zero(item);
        if (!number && !read_switch(&on, item, e))
            return false;
        if (on && item)
            return FAIL(e, UNSUPPORTED, item->where, "%s with %.*s is not modelled",
                        o->family->title, STR_ARGS(keys.word));
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
    while (*count < b->most && look_up_item(o, SCOPE_VISION, b->list, *count))
        (*count)++;
    if (!*count && !look_up(o, SCOPE_VISION, str_from(b->list)))
        *count = b->assumed_count;
    if (*count >= b->most)
        return FAIL(e, BAD_INPUT, o->label, "vision_config.%s has more items than are known",
                    b->list);
    for (uint64_t i = 0; i < *count; i++) {
        const struct setting *item = look_up_item(o, SCOPE_VISION, b->list, i);
        if (!item)
            item = look_up_item(o, SCOPE_VISION, b->assumed, i);
        if (item && !setting_number(&blocks[i], item, UNIT_PLAIN, (struct range){0, MAX_LAYERS}, e))
            return false;
    }
    return true;
}

static bool derive_vision(struct draft *d, const struct origin *o, struct error *e)
{
    struct vision *v = &d->model.vision;
    if (!(d->model.features & any_vision))
        return true;
    if (v->hidden % v->heads)
        return FAIL(e, BAD_INPUT, o->label,
                    "vision_config.hidden_size %llu is not a multiple of its %llu heads",
                    (unsigned long long)v->hidden, (unsigned long long)v->heads);
    if (!model_has(&d->model, FEATURE_VISION_SIGLIP) && v->out_hidden != d->model.hidden)
        return FAIL(e, BAD_INPUT, o->label,
                    "vision_config.out_hidden_size %llu is not the text's hidden_size %llu",
                    (unsigned long long)v->out_hidden, (unsigned long long)d->model.hidden);
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
    const struct setting *stated = look_up_item(o, SCOPE_TEXT, "layer_types", layer);
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
    if (layer > 0 && look_up_item(o, SCOPE_TEXT, "layer_types", 0))
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
        const struct setting *item = look_up_item(o, SCOPE_TEXT, "mlp_only_layers", i);
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
    const struct setting *item = look_up_item(o, SCOPE_TEXT, "no_rope_layers", layer);
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
    const struct setting *stated = look_up_item(o, SCOPE_TEXT, "layer_types", layer);
    if (!model_has(&d->model, FEATURE_DELTA_NET))
        return false;
    return stated ? str_is(stated->value, "linear_attention")
                  : (layer + 1) % d->helpers.full_period != 0;
}

static bool derive_layers(struct draft *d, const struct origin *o, struct error *e)
{
    struct model *m = &d->model;
    bool switched;
    if (!read_switch(&switched, look_up(o, SCOPE_TEXT, STR("use_sliding_window")), e))
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

static const struct family *family_named(struct str model_type)
{
    for (ptrdiff_t i = 0; i < family_count; i++)
        if (str_is(model_type, families[i].model_type))
            return &families[i];
    return NULL;
}

static bool find_family(struct origin *o, struct str model_type, struct error *e)
{
    o->family = family_named(model_type);
    if (o->family) {
        o->defaults = settings_in(o->arena);
        return settings_read(&o->defaults, str_from(o->family->defaults), ' ',
                             str_from(o->family->title), e);
    }
    struct str_nearest nearest = str_nearest_to(model_type);
    for (ptrdiff_t i = 0; i < family_count; i++)
        str_nearest_offer(&nearest, str_from(families[i].model_type));
    FAIL(e, UNSUPPORTED, o->label, "the model family '%.*s' is not known",
         STR_ARGS(str_short(model_type)));
    if (nearest.best.n)
        return HINT(e, "did you mean '%.*s'?", STR_ARGS(nearest.best));
    return HINT(
        e, "llama, qwen3, glm4, gemma2, gpt2 and others are; 'fathom probe' measures any model");
}

static bool fill_model(struct model *m, const struct origin *o, struct error *e)
{
    struct draft d = {.model.family = o->family};
    if (!read_fields(&d, o, e) || !read_features(&d.model, o, e) || !refuse_others(o, e) ||
        !derive_activation(&d.model, o, e) || !derive_widths(&d.model, o, e) ||
        !derive_heads(&d.model, o->label, e) || !derive_rotary(&d.model, o, e) ||
        !derive_rotary_table(&d.model, o, e) || !derive_experts(&d, o->label, e) ||
        !derive_vision(&d, o, e) || !derive_layers(&d, o, e))
        return false;
    derive_dropouts(&d.model, o);
    if (d.helpers.rotary_dim)
        d.model.rotary_dim = u64_least(d.helpers.rotary_dim, d.model.head_dim);
    if (model_has(&d.model, FEATURE_ALIBI))
        d.model.max_position = d.model.rotary_table = 0; // any length has its biases
    *m = d.model;
    return true;
}

// A catalogue row is read as further defaults over its family's, later values winning: it says what
// its config.json would, without the nesting. A variant adds its own after those of the row it is
// like.
static bool from_catalog(struct model *m, struct arena *a, const struct catalog_model *row,
                         struct error *e)
{
    const struct catalog_model *base = row->like ? catalog_model_find(str_from(row->like)) : row;
    ASSERT(base && base->model_type);
    struct settings flat = settings_in(a);
    struct origin o = {.arena = a, .given = &flat, .root = "", .label = str_from(row->name)};
    if (!find_family(&o, str_from(base->model_type), e))
        return false;
    struct str source = str_from(row->name);
    if (!settings_read(&o.defaults, str_from(base->config), ' ', source, e) ||
        (row->like && !settings_read(&o.defaults, str_from(row->config), ' ', source, e)) ||
        !fill_model(m, &o, e))
        return false;
    m->name = str_from(row->name);
    m->source = STR("catalogue");
    return true;
}

static bool from_name(struct model *m, struct arena *a, const struct setting *name, struct error *e)
{
    struct catalog_answer found = catalog_model_answer(name->value);
    if (!found.row)
        return catalog_model_unknown(name->value, name->where, e);
    if (!from_catalog(m, a, found.row, e))
        return false;
    m->packing = found.packing;
    m->likened = found.likened;
    if (found.likened || found.packing)
        m->name = name->value;
    return true;
}

// Parameters in the model's files, where the host has counted them; 0: it has not.
static bool stored_parameters(uint64_t *count, const struct settings *s, struct error *e)
{
    const struct setting *stored = settings_find_z(s, "weights.parameters");
    *count = 0;
    return !stored || setting_number(count, stored, UNIT_PLAIN, (struct range){0, UINT64_MAX}, e);
}

static bool build_as(struct model *m, uint64_t *total, const struct origin *like,
                     const struct family *f)
{
    struct error none = {0};
    struct origin o = *like;
    struct parameters p;
    bool built = find_family(&o, str_from(f->model_type), &none) && fill_model(m, &o, &none) &&
                 parameters_of(&p, o.arena, m, &none);
    *total = built ? p.total : 0;
    return built;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static bool says_experts(const struct settings *s)
{
    return settings_find_z(s, "config.num_experts") ||
           settings_find_z(s, "config.num_local_experts") ||
           settings_find_z(s, "config.n_routed_experts") ||
           settings_find_z(s, "config.moe_num_experts");
}

static bool says_latent(const struct settings *s)
{
    return settings_find_z(s, "config.kv_lora_rank") != NULL;
}

// With experts and latent attention, or without, as the configuration says.
static bool is_alike(const struct family *f, const struct settings *s)
{
    return !(f->features & FEATURE_EXPERTS) == !says_experts(s) &&
           !(f->features & FEATURE_MLA) == !says_latent(s);
}

// The known family that an unknown model is nearest to: by its files' parameters where they are
// counted, else one with or without experts and latent attention as it, and all of whose values it
// has; of several the first that was measured.
static const struct family *nearest_family(const struct origin *o, uint64_t stored)
{
    const struct family *best = NULL;
    uint64_t least = UINT64_MAX;
    for (ptrdiff_t i = 0; i < family_count; i++) {
        struct arena scratch = *o->arena;
        struct origin inner = *o;
        inner.arena = &scratch;
        struct model m;
        uint64_t total;
        if (!is_alike(&families[i], o->given) || families[i].counted_only ||
            !build_as(&m, &total, &inner, &families[i]))
            continue;
        uint64_t distance = stored ? apart(stored, total) : 0;
        bool surer = best && best->unmeasured && !families[i].unmeasured;
        if (distance < least || (distance == least && surer)) {
            best = &families[i];
            least = distance;
        }
    }
    return best;
}

// --like: the files must bear out what the likeness would give.
static bool check_likeness(const struct model *m, struct arena *a, const struct settings *s,
                           const struct setting *like, struct error *e)
{
    enum { PERMILLE = 5 }; // biases and small tensors that the likeness has not
    struct parameters p;
    uint64_t stored;
    bool experts = m->family->features & FEATURE_EXPERTS;
    if (experts != says_experts(s))
        return FAIL(e, BAD_INPUT, like->where, "%s has %s, and this model's configuration %s",
                    m->family->model_type, experts ? "experts" : "no experts",
                    experts ? "names none" : "names some");
    if (!is_alike(m->family, s))
        return FAIL(e, BAD_INPUT, like->where,
                    "%s attends %s, and this model's configuration names %s kv_lora_rank",
                    m->family->model_type, says_latent(s) ? "to all of its heads" : "latently",
                    says_latent(s) ? "a" : "no");
    if (!parameters_of(&p, a, m, e) || !stored_parameters(&stored, s, e))
        return false;
    if (!stored || apart(stored, p.total) <= p.total / 1000 * PERMILLE)
        return true;
    return FAIL(e, BAD_INPUT, like->where,
                "as %s it would have %llu parameters, but its files have %llu",
                m->family->model_type, (unsigned long long)p.total, (unsigned long long)stored);
}

static bool fail_unknown(struct origin *o, const struct settings *s,
                         const struct setting *model_type, struct error *e)
{
    uint64_t stored;
    if (!stored_parameters(&stored, s, e))
        return false;
    const struct family *nearest = nearest_family(o, stored);
    FAIL(e, UNSUPPORTED, o->label, "the model family '%.*s' is not known",
         STR_ARGS(str_short(model_type->value)));
    if (!nearest)
        return HINT(e, "its shapes are those of no known family; 'fathom models' lists what is");
    return HINT(e, "its shapes are nearest to %s: --like %s predicts it as that", nearest->title,
                nearest->model_type);
}

static bool from_config(struct model *m, struct arena *a, const struct settings *s,
                        const struct setting *model_type, struct error *e)
{
    const struct setting *name = settings_find_z(s, "model"), *like = settings_find_z(s, "like");
    struct origin o = {.arena = a, .given = s, .root = "config.", .label = model_type->where};
    bool known = family_named(model_type->value);
    if (like && known)
        return FAIL(e, BAD_INPUT, like->where, "'%.*s' is known itself and needs no likeness",
                    STR_ARGS(str_short(model_type->value)));
    if (!like && !known)
        return fail_unknown(&o, s, model_type, e);
    if (like)
        o.label = like->where;
    if (!find_family(&o, like ? like->value : model_type->value, e))
        return false;
    o.label = model_type->where;
    if (!fill_model(m, &o, e) || (like && !check_likeness(m, a, s, like, e)))
        return false;
    m->like = like ? m->family : NULL;
    m->name = name ? name->value : STR("config.json");
    m->source = model_type->where;
    return true;
}

static bool apply_overrides(struct model *m, const struct settings *s, struct error *e)
{
    const struct setting *layers = settings_find_z(s, "layers");
    const struct setting *tied = settings_find_z(s, "tied");
    bool on;
    if (layers && !setting_number(&m->layers, layers, UNIT_COUNT, (struct range){1, m->layers}, e))
        return false;
    if (tied && !setting_switch(&on, tied, e))
        return false;
    if (tied)
        m->features = on ? m->features | FEATURE_TIED : m->features & ~FEATURE_TIED;
    return true;
}

static const struct setting *first_of_config(const struct settings *s)
{
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (str_starts(s->items[i].key, STR("config.")))
            return &s->items[i];
    return NULL;
}

bool model_from_settings(struct model *m, struct arena *a, const struct settings *s,
                         struct error *e)
{
    struct model found = {0};
    const struct setting *model_type = settings_find_z(s, "config.model_type");
    const struct setting *name = settings_find_z(s, "model"), *config = first_of_config(s);
    if (model_type) {
        if (!from_config(&found, a, s, model_type, e))
            return false;
    } else if (config) {
        return FAIL(e, BAD_INPUT, config->where, "the configuration has no model_type");
    } else {
        const struct setting *like = settings_find_z(s, "like");
        if (!name)
            return FAIL(e, BAD_INPUT, STR("--model"), "no model is given");
        if (like)
            return FAIL(e, BAD_INPUT, like->where, "'%.*s' is known itself and needs no likeness",
                        STR_ARGS(str_short(name->value)));
        if (!from_name(&found, a, name, e))
            return false;
    }
    if (!apply_overrides(&found, s, e))
        return false;
    const struct catalog_model *known = catalog_model_find(found.name);
    if (known)
        found.native = known->native;
    *m = found;
    return true;
}

bool model_has(const struct model *m, feature_set f)
{
    return (m->features & f) != 0;
}

uint64_t model_expert_layers(const struct model *m)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < m->layers; i++)
        count += m->layer[i].experts;
    return count;
}

uint64_t model_sliding_layers(const struct model *m)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < m->layers; i++)
        count += m->layer[i].sliding;
    return count;
}
