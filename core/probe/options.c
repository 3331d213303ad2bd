// Reading options. Rows of the table say which settings are about the hunt and which a prediction
// takes; the rest of a cell's settings are for its engine.
#include "core/probe/options.h"

#include "core/base/buf.h"
#include "core/model/model.h"
#include "core/probe/expect.h"
#include "core/search/sweep.h"

enum { MOST_GPUS = 65536 };
enum { DEFAULT_START = 4096, DEFAULT_TIMEOUT_S = 2400, DEFAULT_GRACE_S = 10, DEFAULT_TRIES = 3 };

static bool is_hunting(struct str name)
{
    const struct setting_def *def = setting_def_find(name);
    return def && def->uses & USE_HUNT;
}

// The machine and the length are those of the trial.
bool probe_is_predicted(const struct setting_def *def)
{
    return def->uses & USE_JOB && !str_is(str_from(def->name), "gpu") &&
           !str_is(str_from(def->name), "context");
}

static bool read_number(uint64_t *value, const struct settings *s, const char *name,
                        struct error *e)
{
    const struct setting *item = settings_find_z(s, name);
    return !item || setting_number(value, item, UNIT_COUNT, (struct range){0, UINT64_MAX}, e);
}

static bool read_switch(bool *value, const struct settings *s, const char *name, struct error *e)
{
    const struct setting *item = settings_find_z(s, name);
    return !item || setting_switch(value, item, e);
}

static bool read_list(struct setting_list *list, struct arena *a, const struct settings *s,
                      struct setting fallback, struct error *e)
{
    const struct setting *item = settings_find(s, fallback.key);
    if (item)
        return list_split(&list->items, &list->count, a, item, e);
    list->items = NEW(a, struct setting, 1);
    list->items[0] = fallback;
    list->count = 1;
    return true;
}

static bool read_models(struct probe_options *o, struct arena *a, const struct settings *s,
                        struct error *e)
{
    bool whole = settings_find_z(s, "config.model_type") != NULL;
    const struct setting *item = settings_find_z(s, "model");
    struct setting none = {STR("model"), STR_NONE, STR("--model")};
    if (!whole)
        return read_list(&o->models, a, s, none, e);
    o->models.items = NEW(a, struct setting, 1);
    o->models.items[0] = item ? *item : none;
    o->models.count = 1;
    return true;
}

static bool read_lists(struct probe_options *o, struct arena *a, const struct settings *s,
                       struct error *e)
{
    struct setting gpus = {STR("gpus"), STR("1"), STR("--gpus")};
    struct setting sp = {STR("sp"), STR("1"), STR("--sp")};
    struct setting cp = {STR("cp"), STR("1"), STR("--cp")};
    return read_models(o, a, s, e) && read_list(&o->gpus, a, s, gpus, e) &&
           read_list(&o->sp, a, s, sp, e) && read_list(&o->cp, a, s, cp, e);
}

ptrdiff_t probe_cell_count(const struct probe_options *o)
{
    return o->models.count * o->gpus.count * o->sp.count * o->cp.count;
}

struct cell_choice probe_cell_choice(const struct probe_options *o, ptrdiff_t index)
{
    ptrdiff_t cp = index % o->cp.count;
    index /= o->cp.count;
    ptrdiff_t sp = index % o->sp.count;
    index /= o->sp.count;
    ptrdiff_t gpus = index % o->gpus.count, model = index / o->gpus.count;
    return (struct cell_choice){o->models.items[model].value, model, o->gpus.items[gpus].value,
                                o->sp.items[sp].value, o->cp.items[cp].value};
}

bool probe_cell_sizes(struct cell_sizes *sizes, const struct cell_choice *choice, struct error *e)
{
    struct setting gpus = {STR("gpus"), choice->gpus, STR("--gpus")};
    struct setting sp = {STR("sp"), choice->sp, STR("--sp")};
    struct setting cp = {STR("cp"), choice->cp, STR("--cp")};
    struct range range = {1, MOST_GPUS};
    return setting_number(&sizes->gpus, &gpus, UNIT_COUNT, range, e) &&
           setting_number(&sizes->sp, &sp, UNIT_COUNT, range, e) &&
           setting_number(&sizes->cp, &cp, UNIT_COUNT, range, e);
}

// The same name would be the same logs.
static bool check_names(const struct probe_options *o, struct error *e)
{
    for (ptrdiff_t i = 0; i < o->models.count; i++)
        for (ptrdiff_t k = 0; k < i; k++) {
            struct str name = probe_model_name(o->models.items[i].value);
            if (str_equal(name, probe_model_name(o->models.items[k].value)))
                return FAIL(e, BAD_INPUT, o->models.items[i].where,
                            "two models of the list are called '%.*s', and so would be their logs",
                            STR_ARGS(str_short(name)));
        }
    return true;
}

static bool check_models(const struct probe_options *o, struct arena scratch,
                         const struct settings *s, struct error *e)
{
    for (ptrdiff_t i = 0; i < o->models.count && o->models.items[i].value.n; i++) {
        struct arena a = scratch;
        struct settings cell = settings_in(&a);
        struct model *m = NEW(&a, struct model, 1);
        struct cell_choice choice = {o->models.items[i].value, i, STR("1"), STR("1"), STR("1")};
        if (!probe_cell_settings(&cell, s, &choice, e) || !model_from_settings(m, &a, &cell, e))
            return false;
    }
    return check_names(o, e);
}

static bool read_engine(struct probe_options *o, const struct settings *s, struct error *e)
{
    const struct setting *item = settings_find_z(s, "engine");
    if (!item)
        return FAIL(
            e, BAD_INPUT, STR("--engine"),
            "no engine is given; torch, transformers, trl, accelerate, deepspeed, trinity and "
            "command are there");
    o->engine = engine_find(item->value);
    if (!o->engine)
        return FAIL(e, BAD_INPUT, item->where,
                    "'probe' trains, with torch, transformers, trl, accelerate, deepspeed, trinity "
                    "or command, not with '%.*s'",
                    STR_ARGS(str_short(item->value)));
    const struct setting *command = settings_find_z(s, "command");
    if (command && !str_is(item->value, "command"))
        return FAIL(e, BAD_INPUT, command->where, "a command is for --engine command only");
    static const struct {
        const char *setting, *engines;
    } only[] = {{"fused-kernels", "trinity"},   {"dlc", "trinity"},
                {"checkpoint-path", "trinity"}, {"train-only", "trinity"},
                {"trinity-config", "trinity"},  {"plugin-dir", "trinity"},
                {"python", "torch or trinity"}};
    for (ptrdiff_t i = 0; i < COUNT_OF(only); i++) {
        const struct setting *other = settings_find_z(s, only[i].setting);
        if (other && !words_have(only[i].engines, ' ', item->value))
            return FAIL(e, BAD_INPUT, other->where, "%s is for --engine %s only", only[i].setting,
                        only[i].engines);
    }
    const struct setting *recipe = settings_find_z(s, "recipe");
    if (recipe && o->engine->recipe && !str_is(recipe->value, o->engine->recipe))
        return FAIL(e, BAD_INPUT, recipe->where, "the %s engine trains the %s recipe only",
                    o->engine->name, o->engine->recipe);
    if (o->engine->needs_model && !settings_find_z(s, "model"))
        return FAIL(e, BAD_INPUT, STR("--model"),
                    "no model is given; --model Qwen3-8B is an example");
    return true;
}

static bool engine_takes(const struct probe_options *o, struct arena scratch,
                         const struct settings *s, const struct cell_choice *choice,
                         struct error *e)
{
    struct launch *l = NEW(&scratch, struct launch, 1);
    struct settings cell = settings_in(&scratch);
    struct cell_sizes sizes;
    if (!probe_cell_settings(&cell, s, choice, e) || !probe_cell_sizes(&sizes, choice, e))
        return false;
    struct str name = probe_model_name(choice->model);
    struct str path = str_format(&scratch, "%.*s/%.*s", STR_ARGS(o->log_folder), STR_ARGS(name));
    struct trial_request any = {.cell = &cell,
                                .try = 1,
                                .model = choice->model,
                                .log = path,
                                .gpus = sizes.gpus,
                                .sp = sizes.sp,
                                .cp = sizes.cp};
    any.machine = str_format(&scratch, "%lluxH100-80G", (unsigned long long)any.gpus);
    struct settings job = settings_in(&scratch);
    if (!probe_job_settings(&job, &cell, e) ||
        !settings_set(&job, (struct setting){STR("gpu"), any.machine, STR("--gpus")}, e))
        return false;
    struct grid grid = expect_grid(scratch, &job, &o->hunt.grid);
    any.context = grid_length(&grid, 0);
    return o->engine->build(l, &scratch, &any, e);
}

// What an engine refuses in every cell, it refuses before anything starts.
static bool check_engine(const struct probe_options *o, struct arena scratch,
                         const struct settings *s, struct error *e)
{
    struct error first = {0};
    for (ptrdiff_t i = 0; i < probe_cell_count(o) / o->models.count; i++) {
        struct error refusal = {0};
        struct cell_choice choice = probe_cell_choice(o, i);
        if (engine_takes(o, scratch, s, &choice, &refusal))
            return true;
        first = first.code ? first : refusal;
    }
    *e = first;
    return false;
}

static bool read_hunt(struct probe_options *o, const struct settings *s, struct error *e)
{
    const struct setting *grid = settings_find_z(s, "grid");
    const struct setting *recipe = settings_find_z(s, "recipe");
    uint64_t tries = DEFAULT_TRIES;
    o->hunt = (struct hunt){.grid = {.step = GRID_DEFAULT_STEP}, .start = DEFAULT_START};
    struct str only = str_from(o->engine->recipe ? o->engine->recipe : "");
    o->hunt.grid.trinity = str_is(recipe ? recipe->value : only, "trinity");
    if (!grid_parse(&o->hunt.grid, grid, e) || !read_number(&o->hunt.start, s, "start", e) ||
        !read_number(&o->hunt.until, s, "until", e) || !read_number(&tries, s, "tries", e) ||
        !read_switch(&o->hunt.linear, s, "linear", e))
        return false;
    o->hunt.most_tries = (int)tries;
    o->hunt.grid.first = o->hunt.start; // as the published test's start_length
    if (o->hunt.until && o->hunt.until < o->hunt.start)
        return FAIL(e, BAD_INPUT, STR("--until"), "until is shorter than the start, %llu tokens",
                    (unsigned long long)o->hunt.start);
    return !hunt_is_empty(&o->hunt) ||
           FAIL(e, BAD_INPUT, STR("--until"),
                "no length of the grid lies between %llu and %llu tokens",
                (unsigned long long)o->hunt.start, (unsigned long long)o->hunt.until);
}

static struct str text_or(const struct settings *s, const char *name, struct str fallback)
{
    const struct setting *item = settings_find_z(s, name);
    return item ? item->value : fallback;
}

static void read_forms(struct probe_options *o, const struct settings *s)
{
    struct str form = text_or(s, "export", STR_NONE);
    o->export = str_is(form, "csv")        ? EXPORT_CSV
                : str_is(form, "json")     ? EXPORT_JSON
                : str_is(form, "markdown") ? EXPORT_MARKDOWN
                                           : EXPORT_NONE;
    struct str launcher = text_or(s, "launcher", STR_NONE);
    o->launcher = str_is(launcher, "slurm") ? LAUNCHER_SLURM
                  : str_is(launcher, "ray") ? LAUNCHER_RAY
                                            : LAUNCHER_LOCAL;
}

bool probe_options_read(struct probe_options *o, struct arena *a, const struct settings *s,
                        struct error *e)
{
    uint64_t timeout = DEFAULT_TIMEOUT_S, grace = DEFAULT_GRACE_S;
    *o = (struct probe_options){.resume = true};
    o->log_folder = path_as_argument(a, text_or(s, "log-dir", STR("logs")));
    o->store = text_or(s, "store", str_format(a, "%.*s/probe.db", STR_ARGS(o->log_folder)));
    read_forms(o, s);
    if (!read_switch(&o->list, s, "list", e) || !read_switch(&o->resume, s, "resume", e) ||
        !read_switch(&o->dry_run, s, "dry-run", e) ||
        !read_switch(&o->end_running, s, "end-running", e) ||
        !read_number(&timeout, s, "timeout", e) || !read_number(&grace, s, "grace", e))
        return false;
    o->timeout_ms = timeout * 1000;
    o->grace_ms = grace * 1000;
    if (o->list || o->export)
        return true;
    if (!read_engine(o, s, e) || !read_hunt(o, s, e) || !read_lists(o, a, s, e) ||
        !check_models(o, *a, s, e))
        return false;
    return check_engine(o, *a, s, e);
}

struct str probe_model_name(struct str model)
{
    struct str file = STR("/config.json");
    if (str_ends(model, file))
        model = str_slice(model, 0, model.n - file.n);
    while (str_ends(model, STR("/")))
        model = str_slice(model, 0, model.n - 1);
    struct str_cut cut = str_cut_last(model, '/');
    struct str name = cut.found ? cut.tail : model;
    if (str_ends(name, STR(".json")))
        name = str_slice(name, 0, name.n - STR(".json").n);
    return name.n ? name : STR("model");
}

bool probe_cell_settings(struct settings *out, const struct settings *s,
                         const struct cell_choice *choice, struct error *e)
{
    struct settings own = settings_in(out->arena);
    if (!list_model_settings(&own, s, choice->number, e))
        return false;
    bool spread = !str_is(choice->cp, "1"); // else a cell is as one in which nobody spoke of cp
    for (ptrdiff_t i = 0; i < own.count; i++) {
        struct str key = own.items[i].key;
        bool left_out =
            is_hunting(key) || (!spread && (str_is(key, "cp") || str_is(key, "cp-rank")));
        if (!left_out && !settings_add(out, own.items[i], e))
            return false;
    }
    struct setting model = {STR("model"), choice->model, STR("--model")};
    struct setting cp = {STR("cp"), choice->cp, STR("--cp")};
    return (!model.value.n || settings_set(out, model, e)) &&
           (!spread || settings_set(out, cp, e)) &&
           settings_set(out, (struct setting){STR("gpus"), choice->gpus, STR("--gpus")}, e) &&
           settings_set(out, (struct setting){STR("sp"), choice->sp, STR("--sp")}, e);
}

bool probe_job_settings(struct settings *out, const struct settings *cell, struct error *e)
{
    for (ptrdiff_t i = 0; i < cell->count; i++) {
        struct str key = cell->items[i].key;
        const struct setting_def *def = setting_def_find(key);
        if (((def && probe_is_predicted(def)) || setting_is_document(key)) &&
            !settings_add(out, cell->items[i], e))
            return false;
    }
    return true;
}

// FNV-1a: tells configurations apart, nothing more.
static uint64_t hash_of(struct str text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (ptrdiff_t i = 0; i < text.n; i++)
        hash = (hash ^ (unsigned char)text.p[i]) * UINT64_C(1099511628211);
    return hash;
}

struct str probe_cell_key(struct arena *a, const struct settings *cell, struct str card)
{
    struct buf b = buf_in(a);
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        const struct setting *item = settings_find_z(cell, def->name);
        if (item && !is_hunting(item->key))
            buf_printf(&b, "%.*s=%.*s\n", STR_ARGS(item->key), STR_ARGS(item->value));
    }
    if (card.n)
        buf_printf(&b, "card=%.*s\n", STR_ARGS(card));
    struct arena scratch = *a;
    uint64_t config = 0;
    if (settings_find_z(cell, "config.model_type"))
        config = hash_of(model_config_json(&scratch, cell));
    if (config)
        buf_printf(&b, "config=%016llx\n", (unsigned long long)config);
    return buf_str(&b);
}
