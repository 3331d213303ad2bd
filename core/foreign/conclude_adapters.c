// Which layers get adapters, and of which rank: lists of names, and axolotl's patterns.
#include "core/foreign/conclude.h"

// "q_proj" and "v_proj" are our q,v.
static struct str listed_layers(const struct conclusion *c)
{
    struct buf names = buf_in(c->out->arena);
    for (ptrdiff_t i = 0; i < c->found->facts.count; i++) {
        const struct setting *item = &c->found->facts.items[i];
        struct str projection = STR("_proj");
        struct words list = words_of(str_z(c->out->arena, item->value), ',');
        bool target = str_starts(item->key, STR("lora_target_modules.")) ||
                      str_starts(item->key, STR("lora_target."));
        while (target && words_next(&list)) {
            struct str name = str_trim(list.word);
            if (str_ends(name, projection))
                name = str_slice(name, 0, name.n - projection.n);
            buf_put_z(&names, names.n ? "," : "");
            buf_put(&names, name);
        }
    }
    return buf_str(&names);
}

// Takes `text` off the front of `rest`; a dot may be written with a backslash.
static bool take(struct str *rest, const char *text)
{
    struct str left = *rest;
    for (; *text; text++) {
        if (*text == '.' && str_starts(left, STR("\\.")))
            left = str_slice(left, 1, left.n);
        if (!left.n || left.p[0] != *text)
            return false;
        left = str_slice(left, 1, left.n);
    }
    *rest = left;
    return true;
}

// "(a|b|c)", where each is one of `known`.
static bool take_group(struct str *names, struct str *rest, const char *known)
{
    struct str_cut end = str_cut(*rest, ')');
    if (!end.found || !str_starts(*rest, STR("(")))
        return false;
    *names = str_slice(end.head, 1, end.head.n);
    for (struct str_cut c = str_cut(*names, '|');; c = str_cut(c.tail, '|')) {
        if (!words_have(known, '|', c.head))
            return false;
        if (!c.found)
            break;
    }
    *rest = end.tail;
    return true;
}

struct pattern {
    struct str blocks, names; // "mlp|self_attn", "q|k|v|o"
    bool beside_vision;
};

// peft matches a pattern with the whole name of a module: the projections of every layer of the
// language model, and nothing of a vision tower.
static bool read_pattern(struct pattern *p, struct str rest)
{
    static const struct {
        const char *text;
        bool beside_vision;
    } places[] = {{"model.language_model.", true},
                  {"language_model.model.", true},
                  {"model.text_model.", true},
                  {"model.", false}};
    ptrdiff_t i = 0;
    while (i < COUNT_OF(places) && !take(&rest, places[i].text))
        i++;
    if (i == COUNT_OF(places) || !take(&rest, "layers."))
        return false;
    p->beside_vision = places[i].beside_vision;
    if (!take(&rest, "[\\d]+.") && !take(&rest, "\\d+."))
        return false;
    (void)!take(&rest, "(_checkpoint_wrapped_module.)?");
    return take_group(&p->blocks, &rest, "mlp|cross_attn|self_attn") && take(&rest, ".") &&
           take_group(&p->names, &rest, "q|k|v|o|gate|up|down") && take(&rest, "_proj") && !rest.n;
}

static struct str layers_of(struct arena *a, const struct pattern *p)
{
    struct buf b = buf_in(a);
    struct words names = words_of(str_z(a, p->names), '|');
    const char *blocks = str_z(a, p->blocks);
    while (words_next(&names)) {
        bool attends = words_have("q|k|v|o", '|', names.word);
        if (!words_have(blocks, '|', attends ? STR("self_attn") : STR("mlp")))
            continue;
        buf_put_z(&b, b.n ? "," : "");
        buf_put(&b, names.word);
    }
    return buf_str(&b);
}

static bool conclude_pattern(struct conclusion *c, struct str *layers)
{
    const struct setting *said = fact(c, "target-pattern");
    struct pattern p;
    if (!said)
        return true;
    if (!read_pattern(&p, said->value))
        return replaced(c, "lora-targets", STR("lora_target_modules"), said->where) ||
               FAIL(c->error, UNSUPPORTED, said->where,
                    "of patterns those of q, k, v, o, gate, up and down_proj in all layers of a "
                    "language model are read; --lora-targets names others");
    if (p.beside_vision)
        c->found->freezes_vision = said->where;
    *layers = layers_of(c->out->arena, &p);
    return true;
}

// As the families' classes call them; a score is trained whole whatever is said.
static const char *whole_name(struct str module)
{
    static const struct {
        const char *modules, *name;
    } rows[] = {{"embed_tokens|wte|embed_in|word_embeddings", "embed"},
                {"lm_head|embed_out", "head"},
                {"score|classifier", ""}};
    struct str name = str_cut_last(module, '.').tail;
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (words_have(rows[i].modules, '|', name.n ? name : module))
            return rows[i].name;
    return NULL;
}

static bool take_whole(struct conclusion *c, const struct setting *item, struct buf *names)
{
    struct words list = words_of(str_z(c->out->arena, item->value), ',');
    while (words_next(&list)) {
        const char *name = whole_name(str_trim(list.word));
        if (!name)
            return replaced(c, "lora-whole", item->key, item->where) ||
                   FAIL(c->error, UNSUPPORTED, item->where,
                        "of modules that are trained whole embed_tokens and lm_head are modelled, "
                        "not '%.*s'",
                        STR_ARGS(str_short(list.word)));
        if (*name && !words_have(str_z(c->out->arena, buf_str(names)), ',', str_from(name)))
            buf_printf(names, "%s%s", names->n ? "," : "", name);
    }
    return true;
}

// peft's modules_to_save.
static bool conclude_whole(struct conclusion *c)
{
    struct buf names = buf_in(c->out->arena);
    struct str where = STR_NONE;
    for (ptrdiff_t i = 0; i < c->found->facts.count; i++) {
        const struct setting *item = &c->found->facts.items[i];
        if (!str_starts(item->key, STR("lora_modules_to_save")) &&
            !str_starts(item->key, STR("additional_target")))
            continue;
        if (!take_whole(c, item, &names))
            return false;
        where = item->where;
    }
    return !names.n || put(c, "lora-whole", buf_str(&names), where);
}

// TRL's ModelConfig has a rank of 16 and a dropout of 0.05, LLaMA-Factory a rank of 8 and none.
bool conclude_adapters(struct conclusion *c, const struct setting *adapters)
{
    const struct setting *dropout = fact(c, "dropout");
    struct str layers = fact(c, "all-linear") ? STR_NONE : listed_layers(c);
    uint64_t rank = fact(c, "LLaMA-Factory") ? 8 : 16;
    if (!adapters)
        return true;
    foreign_leave(c->found, STR("lora_alpha")); // of LLaMA-Factory twice the rank, unless it says
    bool drops = dropout ? !fact_is(c, "dropout", "0") && !fact_is(c, "dropout", "0.0")
                         : fact(c, "TRL") != NULL;
    if (drops && !put(c, "lora-dropout", STR("on"), (dropout ? dropout : adapters)->where))
        return false;
    return conclude_pattern(c, &layers) && fact_count(c, &rank, "rank") && conclude_whole(c) &&
           put_count(c, "lora", rank, adapters->where) &&
           (!layers.n || put(c, "lora-targets", layers, adapters->where));
}
