// A cell's key holds its settings as they were given, a line "name=value" each. Two ways of writing
// a configuration are the same when they lead to the same job.
#include "core/probe/measured.h"

#include "core/allocator/torch.h"
#include "core/job/job.h"
#include "core/probe/options.h"

static struct str value_in(struct str key, struct str name)
{
    for (struct str_cut line = str_cut(key, '\n'); line.head.n; line = str_cut(line.tail, '\n')) {
        struct str_cut pair = str_cut(line.head, '=');
        if (str_equal(pair.head, name))
            return pair.tail;
    }
    return STR_NONE;
}

struct str measured_setting(const struct cell_record *c, const char *name)
{
    return value_in(c->key, str_from(name));
}

// ------------------------------------------------------------------ the settings of a trial

static bool put(struct settings *out, const char *key, struct str value, struct error *e)
{
    return settings_set(out, (struct setting){str_from(key), value, STR("the store")}, e);
}

// What a trial did that no prediction does.
static bool is_predictable(const struct cell_record *c, struct error *e)
{
    struct str device = measured_setting(c, "device");
    if (!measured_setting(c, "model").n)
        return FAIL(e, UNSUPPORTED, STR_NONE, "no model was given");
    if (!c->card.n)
        return FAIL(e, UNSUPPORTED, STR_NONE, "the card is not known");
    if (str_is(measured_setting(c, "fake"), "on"))
        return FAIL(e, UNSUPPORTED, STR_NONE, "it trained on fake tensors");
    if (device.n && !str_is(device, "cuda"))
        return FAIL(e, UNSUPPORTED, STR_NONE, "it ran on the %.*s", STR_ARGS(device));
    return true;
}

// "2.11" of "torch 2.11.0+cu130, transformers 5.17.0"; empty where no prediction knows it.
static struct str torch_of(struct arena *a, const struct cell_record *c,
                           const struct attempt_record *t)
{
    struct str given = measured_setting(c, "torch"), said = str_cut(t->versions, ',').head;
    struct error unknown = {0};
    int minor;
    bool told = str_starts(said, STR("torch "));
    struct str version = told ? str_slice(said, 6, said.n) : given;
    if (!version.n || !torch_version_parse(&minor, version, &unknown))
        return given;
    return str_format(a, "2.%d", minor);
}

bool measured_settings(struct settings *out, const struct cell_record *c,
                       const struct attempt_record *t, struct error *e)
{
    const struct engine *engine = engine_find(c->engine);
    if (!is_predictable(c, e))
        return false;
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        struct str name = str_from(def->name), value = value_in(c->key, name);
        if (value.n && probe_is_predicted(def) &&
            !settings_set(out, (struct setting){name, value, STR("the store")}, e))
            return false;
    }
    struct str torch = torch_of(out->arena, c, t);
    struct str context = str_format(out->arena, "%llu", (unsigned long long)t->context);
    struct str machine =
        str_format(out->arena, "%llux%.*s", (unsigned long long)c->gpus, STR_ARGS(c->card));
    return (!engine || !engine->recipe || put(out, "recipe", str_from(engine->recipe), e)) &&
           (!torch.n || put(out, "torch", torch, e)) && put(out, "context", context, e) &&
           put(out, "gpu", machine, e);
}

bool measured_trial_settings(struct settings *out, const struct cell_record *c,
                             const struct attempt_record *t, struct error *e)
{
    const struct engine *engine = engine_find(c->engine);
    bool played = engine && engine->is_played && str_is(measured_setting(c, "one-gpu"), "on");
    bool limited = engine && (engine->limits || played) && t->limit_bytes;
    struct str limit = str_format(out->arena, "%lluB", (unsigned long long)t->limit_bytes);
    return measured_settings(out, c, t, e) && (!limited || put(out, "memory-limit", limit, e));
}

// ------------------------------------------------------------------ the same configuration

// A configuration that was read from a file goes by its content, another by its name.
static bool same_model(const struct cell_record *c, struct str key)
{
    struct str theirs = measured_setting(c, "config"), ours = value_in(key, STR("config"));
    if (theirs.n || ours.n)
        return str_equal(theirs, ours);
    struct str name = measured_setting(c, "model"), wanted = value_in(key, STR("model"));
    const struct catalog_model *row = catalog_model_find(name);
    return str_equal(name, wanted) || (row && row == catalog_model_find(wanted));
}

static bool same_machine(const struct job *p, const struct job *q)
{
    return job_ranks(p) == job_ranks(q) &&
           str_equal_nocase(str_from(p->hardware.card.name), str_from(q->hardware.card.name));
}

// The job of a trial; documents of the model are those of the question, which has the same one.
static bool job_of(struct job *p, struct arena *a, const struct measured *m,
                   const struct settings *question)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct error ignored = {0};
    *s = settings_in(a);
    if (!measured_settings(s, m->cell, m->attempt, &ignored))
        return false;
    for (ptrdiff_t i = 0; i < question->count; i++)
        if (setting_is_document(question->items[i].key) &&
            !settings_add(s, question->items[i], &ignored))
            return false;
    return job_from_settings(p, a, s, &ignored);
}

static bool means_the_same(struct arena scratch, const struct measured *m, const struct job *wanted,
                           const struct settings *s)
{
    struct job *p = NEW(&scratch, struct job, 1);
    const struct attempt_record *t = m->attempt;
    bool decided = t->finished && outcome_rows[t->outcome].verdict != LENGTH_UNDECIDED;
    return decided && t->context == wanted->context && job_of(p, &scratch, m, s) &&
           same_machine(p, wanted) && job_same_training(p, wanted) &&
           (!settings_find_z(s, "torch") || p->torch_minor == wanted->torch_minor);
}

struct measured measured_find(struct arena scratch, const struct cell_record *cells,
                              ptrdiff_t count, const struct settings *settings)
{
    struct measured found = {0};
    struct error ignored = {0};
    struct job *wanted = NEW(&scratch, struct job, 1);
    if (!job_from_settings(wanted, &scratch, settings, &ignored))
        return found;
    struct str key = probe_cell_key(&scratch, settings, STR_NONE);
    for (ptrdiff_t i = count - 1; i >= 0; i--) {
        const struct cell_record *c = &cells[i];
        if (c->gpus != job_ranks(wanted) || !same_model(c, key))
            continue;
        for (ptrdiff_t k = c->attempt_count - 1; k >= 0; k--) {
            struct measured m = {c, &c->attempts[k]};
            bool newer = !found.attempt || m.attempt->id > found.attempt->id;
            if (newer && means_the_same(scratch, &m, wanted, settings))
                found = m;
        }
    }
    return found;
}
