// From flat settings to a struct model: by a name of the catalogue, by a configuration of a family
// that is known, or by a likeness to one.
#include <string.h>

#include "core/base/num.h"
#include "core/model/draft.h"
#include "core/model/family.h"

static const struct family *family_at(ptrdiff_t i)
{
    if (i < dense_family_count)
        return &dense_families[i];
    i -= dense_family_count;
    return i < expert_family_count ? &expert_families[i] : NULL;
}

static const struct family *family_named(struct str model_type)
{
    const struct family *f;
    for (ptrdiff_t i = 0; (f = family_at(i)); i++)
        if (str_is(model_type, f->model_type))
            return f;
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
    const struct family *f;
    for (ptrdiff_t i = 0; (f = family_at(i)); i++)
        str_nearest_offer(&nearest, str_from(f->model_type));
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
    if (!draft_read(&d, o, e) || !draft_derive(&d, o, e))
        return false;
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
    m->likened = found.likened ? found.row : NULL;
    m->served = found.served;
    if (m->served)
        m->max_position = m->rotary_table = m->served->positions;
    if (found.likened || found.packing || found.served)
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
    const struct family *best = NULL, *f;
    uint64_t least = UINT64_MAX;
    for (ptrdiff_t i = 0; (f = family_at(i)); i++) {
        struct arena scratch = *o->arena;
        struct origin inner = *o;
        inner.arena = &scratch;
        struct model m;
        uint64_t total;
        if (!is_alike(f, o->given) || f->counted_only || !build_as(&m, &total, &inner, f))
            continue;
        uint64_t distance = stored ? apart(stored, total) : 0;
        bool surer = best && best->unmeasured && !f->unmeasured;
        if (distance < least || (distance == least && surer)) {
            best = f;
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
    m->packing = packing_of_config(a, s, m);
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

bool served_model_from_settings(struct model *m, struct arena *a, const struct settings *s,
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
            return FAIL(e, BAD_INPUT, STR("--model"),
                        "no model is given; --model Qwen3-8B is an example");
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

bool model_from_settings(struct model *m, struct arena *a, const struct settings *s,
                         struct error *e)
{
    const struct setting *name = settings_find_z(s, "model");
    return served_model_from_settings(m, a, s, e) &&
           (!m->served || FAIL(e, UNSUPPORTED, name->where,
                               "of %s only what a server holds is modelled: 'fathom serve' answers",
                               m->served->name));
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
