// Every number of a configuration is a row of `fields`: where it goes, the names it has had, and
// its range; every switch a row of features. What is absent comes from the family's defaults.
#include <string.h>

#include "core/base/num.h"
#include "core/model/draft.h"

struct field {
    ptrdiff_t offset;
    enum scope scope;
    bool required;
    bool may_be_zero;
    bool null_is_default;
    uint64_t max;
    feature_set only_with; // a family without these features does not read it
    const char *keys;      // alternatives, space-separated
    const char *unless;    // a key that says it better
    const char *called;    // in a message; NULL: by the first key
};

#define IN_MODEL(member)  offsetof(struct draft, model.member)
#define IN_HELPER(member) offsetof(struct draft, helpers.member)

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
    {IN_MODEL(experts.per_token), SCOPE_TEXT, .required = true, .null_is_default = true,
     .max = MAX_EXPERTS, .only_with = FEATURE_EXPERTS,
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

// The setting whose key is these three, one after the other. A model asks for some hundred.
static const struct setting *find_joined(const struct settings *s, struct str root, struct str nest,
                                         struct str key)
{
    ptrdiff_t head = root.n + nest.n;
    for (ptrdiff_t i = s->count - 1; i >= 0; i--) {
        struct str whole = s->items[i].key;
        if (whole.n != head + key.n || !str_starts(whole, root))
            continue;
        struct str middle = {whole.p + root.n, nest.n}, rest = {whole.p + head, key.n};
        if (str_equal(middle, nest) && str_equal(rest, key))
            return &s->items[i];
    }
    return NULL;
}

// The value under one key: as given, else as the family assumes.
const struct setting *config_find(const struct origin *o, enum scope scope, struct str key)
{
    struct str root = str_from(o->root);
    const char *nest = scope == SCOPE_VISION ? "vision_config."
                       : o->family->nested   ? "text_config."
                                             : "";
    const struct setting *found = find_joined(o->given, root, str_from(nest), key);
    if (found)
        return found;
    // Qwen2.5-VL's file has the text's values beside vision_config.
    found = find_joined(o->given, root, STR_NONE, key);
    if (found && scope == SCOPE_TEXT && o->family->features & FEATURE_VISION_WINDOWS)
        return found;
    const char *assumed = scope == SCOPE_VISION ? "vision." : "";
    return find_joined(&o->defaults, str_from(assumed), STR_NONE, key);
}

// "list.12"; a model of many layers asks for hundreds, so that it is not formatted.
static struct str item_name(struct arena *a, struct str list, uint64_t index)
{
    enum { MOST_DIGITS = 20 };
    char *end = NEW(a, char, list.n + 1 + MOST_DIGITS) + list.n + 1 + MOST_DIGITS, *p = end;
    do {
        *--p = (char)('0' + index % 10);
        index /= 10;
    } while (index);
    *--p = '.';
    p -= list.n;
    memcpy(p, list.p, (size_t)list.n);
    return (struct str){p, end - p};
}

// Item `index` of a list in the configuration.
const struct setting *config_find_item(const struct origin *o, enum scope scope, const char *list,
                                       uint64_t index)
{
    struct arena scratch = *o->arena;
    return config_find(o, scope, item_name(&scratch, str_from(list), index));
}

// What is given under any name goes before what is assumed under the first.
const struct setting *config_find_any(const struct origin *o, enum scope scope, const char *keys)
{
    const struct setting *found = NULL, *assumed = NULL;
    struct settings none = settings_in(o->arena);
    struct origin given = *o;
    given.defaults = none;
    struct words names = words_of(keys, ' ');
    while (!found && words_next(&names)) {
        found = config_find(&given, scope, names.word);
        assumed = assumed || found ? assumed : config_find(o, scope, names.word);
    }
    return found ? found : assumed;
}

// JSON's null: the key is there to say that nothing is meant, the family's default included.
bool config_is_null(const struct setting *item)
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

static const struct setting *assumed(const struct origin *o, const struct field *f)
{
    struct settings none = settings_in(o->arena);
    struct origin defaults = *o;
    defaults.given = &none;
    return config_find_any(&defaults, f->scope, f->keys);
}

static bool read_field(struct draft *d, const struct origin *o, const struct field *f,
                       struct error *e)
{
    const struct setting *item = config_find_any(o, f->scope, f->keys);
    if (item && config_is_null(item) && f->null_is_default)
        item = assumed(o, f);
    if (f->unless && config_find(o, f->scope, str_from(f->unless)))
        return true;
    if (f->required && !check_is_number(o, f, e))
        return false;
    if (!item || config_is_null(item)) {
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
    bool has_vision = o->family->features & ANY_VISION;
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

bool config_switch(bool *on, const struct setting *item, struct error *e)
{
    *on = false;
    return !item || config_is_null(item) || setting_switch(on, item, e);
}

// Of a nested configuration, transformers obeys the outer value.
static bool read_tied(bool *on, const struct origin *o, struct error *e)
{
    struct arena scratch = *o->arena;
    const struct setting *item = NULL;
    if (o->family->nested)
        item = settings_find(o->given, str_format(&scratch, "%stie_word_embeddings", o->root));
    return config_switch(on, item ? item : config_find(o, SCOPE_TEXT, STR("tie_word_embeddings")),
                         e);
}

// A weight of nothing: trainers leave the loss out.
static bool has_router_loss(const struct origin *o)
{
    const struct setting *item = config_find(o, SCOPE_TEXT, STR("router_aux_loss_coef"));
    bool is_zero = item && item->value.n > 0;
    for (ptrdiff_t i = 0; is_zero && i < item->value.n; i++)
        is_zero = item->value.p[i] == '0' || item->value.p[i] == '.';
    return !is_zero;
}

// How a router chooses.
static bool read_choice(struct model *m, const struct origin *o, struct error *e)
{
    bool normed;
    const struct setting *method = config_find(o, SCOPE_TEXT, STR("topk_method"));
    if (!config_switch(&normed, config_find(o, SCOPE_TEXT, STR("norm_topk_prob")), e))
        return false;
    if (o->family->reads & READS_NORM_TOPK)
        m->features |= normed ? 0 : FEATURE_ROUTER_PLAIN;
    const struct setting *groups = config_find(o, SCOPE_TEXT, STR("n_group"));
    bool has_groups = model_has(m, FEATURE_ROUTER_SOFTMAX)
                          ? method && str_is(method->value, "group_limited_greedy")
                          : groups && !config_is_null(groups) && !str_is(groups->value, "1");
    if (has_groups && model_has(m, FEATURE_ROUTER_SOFTMAX | FEATURE_ROUTER_BALANCE))
        m->features |= FEATURE_ROUTER_GROUPS;
    return true;
}

static bool read_norm_place(struct model *m, const struct origin *o, struct error *e)
{
    const struct setting *place = config_find(o, SCOPE_TEXT, STR("do_layer_norm_before"));
    bool before = true;
    if (place && o->family->reads & READS_NORM_PLACE && !config_switch(&before, place, e))
        return false;
    m->features |= before ? 0 : FEATURE_NORMS_BEHIND;
    return true;
}

// modeling_siglip.py: it is there unless the configuration says otherwise, as those that were
// published do.
static bool read_pooling(struct model *m, const struct origin *o, struct error *e)
{
    const struct setting *item = config_find(o, SCOPE_VISION, STR("vision_use_head"));
    bool pools = true;
    if (!model_has(m, FEATURE_VISION_SIGLIP))
        return true;
    if (item && !config_switch(&pools, item, e))
        return false;
    m->features |= pools ? FEATURE_VISION_POOLED : 0;
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
        const struct setting *item = config_find(o, SCOPE_TEXT, str_from(rows[i].key));
        if (!(o->family->reads & rows[i].reads))
            continue;
        if (rows[i].null_clears && item && config_is_null(item))
            m->features &= ~rows[i].features;
        if (rows[i].null_clears)
            continue;
        if (!config_switch(&on, item, e))
            return false;
        m->features |= on ? rows[i].features : 0;
    }
    const struct setting *kind = config_find(o, SCOPE_TEXT, STR("position_embedding_type"));
    if (o->family->reads & READS_POSITIONS && (!kind || !str_is(kind->value, "rope")))
        m->features |= FEATURE_NO_ROTARY;
    return read_norm_place(m, o, e) && read_choice(m, o, e) && read_pooling(m, o, e);
}

bool draft_read(struct draft *d, const struct origin *o, struct error *e)
{
    return read_fields(d, o, e) && read_features(&d->model, o, e);
}
