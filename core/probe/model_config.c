// A flattened configuration made whole again: "text_config.hidden_size" becomes an object in an
// object, "layer_types.0" a list.
#include "core/model/model.h"
#include "core/probe/engine.h"

enum { DEEPEST = 8 };

// Past the digits at `i`; the same place where there are none.
static ptrdiff_t after_digits(struct str s, ptrdiff_t i)
{
    while (i < s.n && char_is_digit(s.p[i]))
        i++;
    return i;
}

// As JSON writes numbers: -1, 1.5, 1e-06.
static bool is_number(struct str s)
{
    ptrdiff_t begin = str_starts(s, STR("-")) ? 1 : 0;
    ptrdiff_t i = after_digits(s, begin);
    bool good = i > begin;
    if (good && i < s.n && s.p[i] == '.') {
        ptrdiff_t end = after_digits(s, i + 1);
        good = end > i + 1;
        i = end;
    }
    if (good && i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
        begin = i + 1 < s.n && (s.p[i + 1] == '-' || s.p[i + 1] == '+') ? i + 2 : i + 1;
        i = after_digits(s, begin);
        good = i > begin;
    }
    return good && i == s.n;
}

// Values, alone or in lists, that transformers' configuration classes of language models take as
// real numbers only (5.17). Flattening makes 30 of 30.0.
static const char reals[] =
    "activation_sparsity_pattern altup_coef_clip attention_dropout attention_in_multiplier "
    "attention_out_multiplier attn_logit_softcapping aux_loss_coef clip_qkv emb_pdrop "
    "emb_prob_drop embedding_fraction embedding_multiplier eps final_logit_softcapping init_std "
    "initializer_factor initializer_range key_multiplier layer_norm_eps layer_norm_epsilon "
    "lm_head_multiplier logit_scale mlp_multipliers moe_router_logit_softcapping norm_eps "
    "norm_epsilon output_multiplier partial_rotary_factor resid_pdrop resid_prob_drop "
    "rms_norm_eps routed_scaling_factor router_aux_loss_coef router_jitter_noise "
    "router_z_loss_coef ssm_in_multiplier ssm_multipliers ssm_out_multiplier swiglu_alpha "
    "swiglu_limit time_step_floor time_step_limit time_step_max time_step_min";

static bool is_whole(struct str value)
{
    ptrdiff_t begin = str_starts(value, STR("-")) ? 1 : 0;
    return value.n > begin && after_digits(value, begin) == value.n;
}

static void put_scalar(struct json_out *j, struct str value)
{
    bool literal = str_is(value, "true") || str_is(value, "false") || str_is(value, "null") ||
                   str_is(value, "[]") || is_number(value);
    if (literal)
        json_out_literal(j, value);
    else
        json_out_str(j, value);
}

// "x.time_step_limit.": the list's name.
static struct str last_part(struct str prefix)
{
    ptrdiff_t end = prefix.n ? prefix.n - 1 : 0, begin = end;
    while (begin > 0 && prefix.p[begin - 1] != '.')
        begin--;
    return str_slice(prefix, begin, end);
}

// The part of a key between `prefix` and the next dot.
static struct str part_after(struct str key, struct str prefix)
{
    return str_cut(str_slice(key, prefix.n, key.n), '.').head;
}

static bool seen_before(const struct settings *s, ptrdiff_t end, struct str prefix, struct str part)
{
    for (ptrdiff_t i = 0; i < end; i++)
        if (str_starts(s->items[i].key, prefix) &&
            str_equal(part_after(s->items[i].key, prefix), part))
            return true;
    return false;
}

// Names of classes are an object with numbers for keys (transformers/configuration_utils.py).
static bool is_list(const struct settings *s, struct str prefix)
{
    if (str_ends(prefix, STR("id2label.")))
        return false;
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (str_starts(s->items[i].key, prefix))
            return is_number(part_after(s->items[i].key, prefix));
    return false;
}

// Everything under `prefix`, which ends with a dot or is empty.
static void put_group(struct json_out *j, const struct settings *s, struct str prefix, int depth)
{
    bool list = is_list(s, prefix);
    list ? json_out_array(j) : json_out_object(j);
    for (ptrdiff_t i = 0; i < s->count && depth < DEEPEST; i++) {
        struct str key = s->items[i].key;
        struct str part = str_starts(key, prefix) ? part_after(key, prefix) : STR_NONE;
        if (!part.n || seen_before(s, i, prefix, part))
            continue;
        if (!list)
            json_out_key_str(j, part);
        struct str value = s->items[i].value;
        if (words_have(reals, ' ', list ? last_part(prefix) : part) && is_whole(value))
            value = str_join(s->arena, value, STR(".0"));
        if (prefix.n + part.n == key.n)
            put_scalar(j, value);
        else
            put_group(j, s, str_slice(key, 0, prefix.n + part.n + 1), depth + 1);
    }
    list ? json_out_array_end(j) : json_out_object_end(j);
}

static bool from_catalog(struct settings *out, const struct catalog_model *row)
{
    const struct catalog_model *base = row->like ? catalog_model_find(str_from(row->like)) : row;
    struct error ignored = {0};
    struct settings own = settings_in(out->arena);
    struct setting kind = {STR("model_type"), str_from(base->model_type), STR_NONE};
    bool ok = settings_add(out, kind, &ignored) &&
              settings_read(out, str_from(base->config), ' ', STR_NONE, &ignored) &&
              (base == row || settings_read(&own, str_from(row->config), ' ', STR_NONE, &ignored));
    for (ptrdiff_t i = 0; ok && i < own.count; i++)
        ok = settings_set(out, own.items[i], &ignored);
    return ok;
}

struct str model_config_json(struct arena *a, const struct settings *s)
{
    struct settings flat = settings_in(a);
    struct error ignored = {0};
    const struct setting *model = settings_find_z(s, "model");
    const struct catalog_model *row = model ? catalog_model_find(model->value) : NULL;
    struct str prefix = STR("config.");
    for (ptrdiff_t i = 0; i < s->count; i++) {
        struct setting item = s->items[i];
        if (!str_starts(item.key, prefix))
            continue;
        item.key = str_slice(item.key, prefix.n, item.key.n);
        if (!settings_add(&flat, item, &ignored))
            return STR_NONE;
    }
    if (!flat.count && (!row || !from_catalog(&flat, row)))
        return STR_NONE;
    struct buf text = buf_in(a);
    struct json_out j = json_out_to(&text);
    put_group(&j, &flat, STR_NONE, 0);
    json_out_end(&j);
    return str_trim(buf_str(&text));
}
