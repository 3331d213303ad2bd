// Our own worker, share/torch_worker.py: a trial is a JSON file beside its log.
#include "core/base/buf.h"
#include "core/probe/engine.h"

// Settings that the worker reads under the same name, dashes turned into underscores.
static const char passed[] =
    "recipe strategy precision batch accum checkpointing reshard offload optimizer loss expandable "
    "save-hf entropy-saving layers tied one-gpu device";

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
    struct words names = words_of(passed, ' ');
    while (words_next(&names)) {
        const struct setting *item = settings_find(r->cell, names.word);
        if (item && !put_setting(&j, a, item, e))
            return false;
    }
    if (r->limit_bytes)
        json_out_field_u64(&j, "limit_bytes", r->limit_bytes);
    if (r->workspace_bytes)
        json_out_field_u64(&j, "workspace_bytes", r->workspace_bytes);
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
    const struct setting *recipe = settings_find_z(r->cell, "recipe");
    if (recipe && !str_is(recipe->value, "hf") && !str_is(recipe->value, "trinity"))
        return FAIL(e, BAD_INPUT, recipe->where,
                    "the torch engine trains the recipes hf and trinity");
    if (!trial_json(&text, a, r, e))
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
