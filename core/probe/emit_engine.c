// Accelerate and DeepSpeed: the files that `fathom emit` writes, and their own trial of three steps
// on random weights and tokens. The model's configuration goes with them as the folder "model", so
// that nothing is downloaded; where positions end, the files stretch it by YaRN.
#include "core/base/buf.h"
#include "core/emit/emit.h"
#include "core/probe/engine.h"

// The trial is what the files say: what has no place in them is refused. The memory limit is an
// argument of the launch script.
static bool check_settings(const struct settings *s, const char *target, struct error *e)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct setting_def *def = setting_def_find(s->items[i].key);
        bool files_lack = def && def->worker && def->uses & (USE_TRIAL | USE_PREDICTION) &&
                          !str_is(s->items[i].key, "one-gpu");
        if (files_lack)
            return FAIL(e, BAD_INPUT, s->items[i].where, "the %s engine has no %s", target,
                        def->name);
    }
    return true;
}

static bool is_taken(struct str name)
{
    const struct setting_def *def = setting_def_find(name);
    return setting_is_document(name) ||
           (def && def->uses & USE_JOB && !(def->uses & USE_PREDICTION));
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
    struct job *job = NEW(a, struct job, 1);
    struct draft *j = NEW(a, struct draft, 1);
    struct emit_files files = {0};
    *s = settings_in(a);
    if (!check_settings(r->cell, target, e))
        return false;
    if (!r->machine.n)
        return FAIL(e, BAD_INPUT, STR("--as"),
                    "the %s engine writes files for a machine, and this one's card is not known",
                    target);
    if (!emit_settings(s, r, target, e) || !job_resolve(job, a, s, e) ||
        !draft_from_job(j, a, job, e) || !emit_check(j, e))
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
    launch_played(l, a, r);
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
