// Accelerate and DeepSpeed: the files that `fathom emit` writes, and their own trial of three steps
// on random weights and tokens. The model's configuration goes with them as the folder "model", so
// that nothing is downloaded; where positions end, the files stretch it by YaRN.
#include "core/base/buf.h"
#include "core/emit/emit.h"
#include "core/probe/engine.h"

// What emit takes of a cell's settings.
static const char taken[] = "model strategy precision batch accum sp checkpointing reshard offload "
                            "optimizer loss expandable torch";

static bool is_taken(struct str name)
{
    return words_have(taken, ' ', name) || setting_is_document(name);
}

static bool check_settings(const struct settings *s, const char *target, struct error *e)
{
    static const char *const others[] = {"layers",  "tied",   "entropy-saving",
                                         "one-gpu", "device", "save-hf"};
    for (ptrdiff_t i = 0; i < COUNT_OF(others); i++) {
        const struct setting *item = settings_find_z(s, others[i]);
        if (item)
            return FAIL(e, BAD_INPUT, item->where, "the %s engine has no %s", target, others[i]);
    }
    return true;
}

static bool emit_settings(struct settings *out, const struct trial_request *r, const char *target,
                          struct error *e)
{
    struct str context = str_format(out->arena, "%llu", (unsigned long long)r->context);
    for (ptrdiff_t i = 0; i < r->cell->count; i++)
        if (is_taken(r->cell->items[i].key) && !settings_add(out, r->cell->items[i], e))
            return false;
    struct setting more[] = {{STR("for"), str_from(target), STR("--engine")},
                             {STR("context"), context, STR("--start")},
                             {STR("gpu"), r->machine, STR("--as")}};
    for (ptrdiff_t i = 0; i < COUNT_OF(more); i++)
        if (!settings_set(out, more[i], e))
            return false;
    return true;
}

// The trial's own folder instead of the weights that a user would train.
static void use_config_alone(struct draft *j)
{
    struct str folder = STR("model");
    draft_fact(j, "weights", folder);
    if (!draft_is(j, IS_YARN, 0))
        draft_fact(j, "model", folder);
}

static void add_file(struct launch *l, struct str path, struct str content)
{
    ASSERT(l->file_count < LAUNCH_MAX_FILES);
    l->files[l->file_count++] = (struct launch_file){path, content};
}

static bool emit_build(struct launch *l, struct arena *a, const struct trial_request *r,
                       const char *target, struct error *e)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct draft *j = NEW(a, struct draft, 1);
    struct emit_files files = {0};
    *s = settings_in(a);
    if (!check_settings(r->cell, target, e))
        return false;
    if (!r->machine.n)
        return FAIL(e, BAD_INPUT, STR("--as"),
                    "the %s engine writes files for a machine, and this one's card is not known",
                    target);
    if (!emit_settings(s, r, target, e) || !draft_from_settings(j, a, s, e) || !emit_check(j, e))
        return false;
    use_config_alone(j);
    draft_fact(j, "predicted", STR("A trial of fathom probe."));
    if (!emit_files(&files, j, e))
        return false;
    struct str stem = str_ends(r->log, STR(".log")) ? str_slice(r->log, 0, r->log.n - 4) : r->log;
    for (ptrdiff_t i = 0; i < files.count; i++)
        add_file(l, str_format(a, "%.*s/%.*s", STR_ARGS(stem), STR_ARGS(files.items[i].name)),
                 files.items[i].content);
    add_file(l, str_format(a, "%.*s/model/config.json", STR_ARGS(stem)), r->config);
    launch_argument(l, a, STR("bash"));
    launch_argument(l, a, str_format(a, "%.*s/launch.sh", STR_ARGS(stem)));
    launch_argument(l, a, STR("--trial"));
    struct str workspace = trial_workspace_text(a, r);
    if (workspace.n)
        launch_variable(l, a, "CUBLAS_WORKSPACE_CONFIG", workspace);
    if (r->gpus > 1 || str_is(str_from(target), "deepspeed"))
        launch_variable(l, a, "MASTER_PORT", STR("0")); // accelerate takes one that is free
    if (r->limit_bytes) {
        launch_argument(l, a, STR("--limit-bytes"));
        launch_argument(l, a, str_format(a, "%llu", (unsigned long long)r->limit_bytes));
    }
    return true;
}

bool accelerate_build(struct launch *l, struct arena *a, const struct trial_request *r,
                      struct error *e)
{
    return emit_build(l, a, r, "accelerate", e);
}

bool deepspeed_build(struct launch *l, struct arena *a, const struct trial_request *r,
                     struct error *e)
{
    return emit_build(l, a, r, "deepspeed", e);
}
