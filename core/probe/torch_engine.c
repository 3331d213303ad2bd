// Our own worker, share/torch_worker.py: a trial is a JSON file beside its log.
#include "core/base/buf.h"
#include "core/job/recipe.h"
#include "core/probe/engine.h"

// The worker reads settings under the same name, dashes turned into underscores; which of their
// values it does is a column of the table. What it would leave out is refused.

// A value that the worker does only together with some values of another setting.
static const struct {
    const char *name, *values; // NULL: whatever the value
    const char *with, *those;
} conditions[] = {
    {"loss", NULL, "recipe", "hf"},
    {"save-hf", NULL, "recipe", "trinity"},
    {"entropy-saving", "on", "recipe", "trinity"},
    {"precision", "autocast", "recipe", "hf"},
    {"precision", "bf16|autocast", "strategy", "single|ddp|fsdp2"},
    {"precision", "mixed", "strategy", "fsdp1|fsdp2"},
    {"offload", "all", "strategy", "fsdp1|fsdp2"},
    {"reshard", "off", "strategy", "fsdp2"},
    {"cp", NULL, "strategy", "fsdp2"},
    {"cp", NULL, "recipe", "hf"},
    {"cp", NULL, "sp", "1"},        // as in accelerate
    {"cp", NULL, "device", "cuda"}, // torch 2.15 has no ring of its CPU attention
    {"loss", "chunked:|none", "cp", "1"},
};

// What the worker takes where nothing is given: the recipe's rows, then these.
static struct str value_of(const struct settings *s, const char *name, uint64_t gpus)
{
    const struct setting *item = settings_find_z(s, name);
    if (item)
        return item->value;
    if (str_is(str_from(name), "recipe"))
        return STR("hf");
    if (str_is(str_from(name), "device"))
        return STR("cuda");
    if (!str_is(str_from(name), "strategy"))
        return STR("1"); // sizes
    return gpus > 1 ? STR("fsdp2") : STR("single");
}

static bool check_single(const struct settings *given, uint64_t gpus, struct error *e)
{
    const struct setting *item = settings_find_z(given, "strategy");
    if (gpus > 1 && item && str_is(item->value, "single"))
        return FAIL(e, BAD_INPUT, item->where, "single trains on one GPU, not on %llu",
                    (unsigned long long)gpus);
    return true;
}

static bool check_conditions(const struct settings *given, const struct settings *effective,
                             uint64_t gpus, struct error *e)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(conditions); i++) {
        const struct setting *item = settings_find_z(given, conditions[i].name);
        struct str value = item ? engine_value_text(item) : STR_NONE;
        bool concerned =
            item && (!conditions[i].values || engine_value_is_in(value, conditions[i].values));
        struct str other = value_of(effective, conditions[i].with, gpus);
        if (concerned && !engine_value_is_in(other, conditions[i].those))
            return FAIL(e, BAD_INPUT, item->where,
                        "the torch engine does %s %.*s only with %s %s, not with %.*s",
                        conditions[i].name, STR_ARGS(str_short(value)), conditions[i].with,
                        conditions[i].those, STR_ARGS(str_short(other)));
    }
    return true;
}

// Of the settings of a cell, those that reach the worker otherwise or are not its to read.
static bool is_for_others(struct str name)
{
    return words_have("model gpus sp engine as memory-limit torch python", ' ', name) ||
           setting_is_document(name);
}

static bool check_value(const struct setting *item, struct error *e)
{
    const struct setting_def *def = setting_def_find(item->key);
    if (is_for_others(item->key))
        return true;
    if (!def->worker)
        return FAIL(e, BAD_INPUT, item->where, "the torch engine has no %.*s",
                    STR_ARGS(str_short(item->key)));
    struct engine_setting only[] = {{def->name, def->worker}, {0}};
    struct settings one = {.items = (struct setting[]){*item}, .count = 1};
    return !*def->worker || engine_check_values("torch", only, &one, e);
}

// Each rank has two pieces of the sequence, one from either end (torch 2.11, context_parallel).
static bool check_pieces(const struct trial_request *r, struct error *e)
{
    const struct setting *item = settings_find_z(r->cell, "cp");
    return !item || r->cp < 2 || r->context % (2 * r->cp) == 0 ||
           FAIL(e, BAD_INPUT, item->where,
                "%llu tokens are not a multiple of twice cp %llu, in which they are dealt out",
                (unsigned long long)r->context, (unsigned long long)r->cp);
}

static bool check_settings(struct arena scratch, const struct trial_request *r, struct error *e)
{
    struct settings effective = settings_in(&scratch);
    for (ptrdiff_t i = 0; i < r->cell->count; i++)
        if (!check_value(&r->cell->items[i], e))
            return false;
    return recipe_fill(&effective, r->cell, r->gpus > 1, e) && check_single(r->cell, r->gpus, e) &&
           check_conditions(r->cell, &effective, r->gpus, e) && check_pieces(r, e);
}

static struct str json_name(struct arena *a, struct str name)
{
    char *copy = str_z(a, name);
    for (char *c = copy; *c; c++)
        if (*c == '-')
            *c = '_';
    return str_from(copy);
}

static bool put_setting(struct json_out *j, struct arena *a, const struct setting *item,
                        struct error *e)
{
    const struct setting_def *def = setting_def_find(item->key);
    uint64_t number;
    bool on;
    json_out_key_str(j, json_name(a, item->key));
    if (def->kind == SETTING_COUNT) {
        if (!setting_number(&number, item, UNIT_COUNT, (struct range){0, UINT64_MAX}, e))
            return false;
        json_out_u64(j, number);
    } else if (def->kind == SETTING_SWITCH || def->kind == SETTING_FLAG) {
        if (!setting_switch(&on, item, e))
            return false;
        json_out_bool(j, on);
    } else {
        json_out_str(j, item->value);
    }
    return true;
}

static bool trial_json(struct buf *b, struct arena *a, const struct trial_request *r,
                       struct error *e)
{
    struct json_out j = json_out_to(b);
    json_out_object(&j);
    json_out_field_u64(&j, "context", r->context);
    json_out_field_u64(&j, "world", r->gpus);
    json_out_field_u64(&j, "sp", r->sp);
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        const struct setting *item = settings_find_z(r->cell, def->name);
        if (item && def->worker && !put_setting(&j, a, item, e))
            return false;
    }
    if (settings_find_z(r->cell, "fake"))
        json_out_field_str(&j, "program", r->program);
    if (r->limit_bytes)
        json_out_field_u64(&j, "limit_bytes", r->limit_bytes);
    if (r->workspace_bytes)
        json_out_field_str(&j, "workspace", trial_workspace_text(a, r));
    if (trial_yarn_factor(r) > 0) {
        json_out_key(&j, "yarn_factor");
        json_out_literal(&j, trial_yarn_text(a, r));
    }
    json_out_key(&j, "config");
    json_out_literal(&j, r->config);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}

static struct str python_of(const struct trial_request *r)
{
    const struct setting *item = settings_find_z(r->cell, "python");
    return item ? item->value : STR("python3");
}

static struct str worker_of(struct arena *a, const struct trial_request *r)
{
    return str_format(a, "%.*s/torch_worker.py", STR_ARGS(r->shipped));
}

bool torch_build(struct launch *l, struct arena *a, const struct trial_request *r, struct error *e)
{
    struct buf text = buf_in(a);
    if (!check_settings(*a, r, e) || !trial_json(&text, a, r, e))
        return false;
    struct str stem = str_ends(r->log, STR(".log")) ? str_slice(r->log, 0, r->log.n - 4) : r->log;
    struct str path = str_format(a, "%.*s.json", STR_ARGS(stem));
    l->files[l->file_count++] = (struct launch_file){path, buf_str(&text)};
    launch_argument(l, a, python_of(r));
    launch_argument(l, a, STR("-u"));
    launch_argument(l, a, worker_of(a, r));
    if (r->socket.n) {
        launch_argument(l, a, STR("--ask"));
        launch_argument(l, a, r->socket);
    }
    launch_argument(l, a, path);
    return true;
}

void torch_server(struct launch *l, struct arena *a, const struct trial_request *r)
{
    launch_argument(l, a, python_of(r));
    launch_argument(l, a, STR("-u"));
    launch_argument(l, a, worker_of(a, r));
    launch_argument(l, a, STR("--serve"));
    launch_argument(l, a, r->socket);
}
