// Accelerate, DeepSpeed, transformers' Trainer and TRL: the files that `fathom emit` writes, and a
// trial of three steps on random weights and tokens: their own, or for TRL, whose script is TRL's,
// that of share/trl_trial.py. The model's configuration goes with them, so that nothing is
// downloaded; where positions end, the files stretch it by YaRN.
#include "core/base/buf.h"
#include "core/emit/emit.h"
#include "core/probe/engine.h"

static bool is_trl(const char *target)
{
    return str_is(str_from(target), "trl");
}

// The trial is what the files say: what has no place in them is refused. The memory limit is an
// argument of the launch script.
static bool check_settings(const struct settings *s, const char *target, struct error *e)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct setting_def *def = setting_def_find(s->items[i].key);
        bool files_lack = def && def->worker && def->uses & (USE_TRIAL | USE_PREDICTION) &&
                          !str_is(s->items[i].key, "one-gpu") &&
                          !(is_trl(target) && str_is(s->items[i].key, "fake"));
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
                             {STR("gpu"), r->machine, STR("--as")},
                             {STR("dataset"), STR("trial.jsonl"), STR("--engine")}};
    ptrdiff_t count = is_trl(target) ? COUNT_OF(more) : COUNT_OF(more) - 1;
    for (ptrdiff_t i = 0; i < count; i++)
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

static bool write_draft(struct draft *j, struct arena *a, const struct trial_request *r,
                        const char *target, struct error *e)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct job *job = NEW(a, struct job, 1);
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
    return true;
}

static struct str stem_of(const struct trial_request *r)
{
    return str_ends(r->log, STR(".log")) ? str_slice(r->log, 0, r->log.n - 4) : r->log;
}

static bool add_files(struct launch *l, struct draft *j, const struct trial_request *r,
                      const char *config, struct error *e)
{
    struct arena *a = j->arena;
    struct emit_files files = {0};
    struct str stem = stem_of(r);
    if (!emit_files(&files, j, e))
        return false;
    for (ptrdiff_t i = 0; i < files.count; i++)
        add_file(l, str_format(a, "%.*s/%.*s", STR_ARGS(stem), STR_ARGS(files.items[i].name)),
                 files.items[i].content);
    add_file(l, str_format(a, "%.*s/%s/config.json", STR_ARGS(stem), config), r->config);
    return true;
}

static void set_workspace(struct launch *l, struct arena *a, const struct trial_request *r)
{
    struct str workspace = trial_workspace_text(a, r);
    if (workspace.n)
        launch_variable(l, a, "CUBLAS_WORKSPACE_CONFIG", workspace);
}

static bool emit_build(struct launch *l, struct arena *a, const struct trial_request *r,
                       const char *target, struct error *e)
{
    struct draft *j = NEW(a, struct draft, 1);
    if (!write_draft(j, a, r, target, e) || !add_files(l, j, r, "model", e))
        return false;
    launch_played(l, a, r);
    launch_argument(l, a, STR("bash"));
    launch_argument(l, a, str_format(a, "%.*s/launch.sh", STR_ARGS(stem_of(r))));
    launch_argument(l, a, STR("--trial"));
    set_workspace(l, a, r);
    if (r->gpus > 1 || str_is(str_from(target), "deepspeed"))
        launch_variable(l, a, "MASTER_PORT", STR("0")); // accelerate takes one that is free
    if (r->limit_bytes) {
        launch_argument(l, a, STR("--limit-bytes"));
        launch_argument(l, a, str_format(a, "%llu", (unsigned long long)r->limit_bytes));
    }
    return true;
}

// Where one GPU plays the ranks, there is one that asks for rows.
bool trl_build(struct launch *l, struct arena *a, const struct trial_request *r, struct error *e)
{
    enum { STEPS = 3 };
    struct draft *j = NEW(a, struct draft, 1);
    if (!write_draft(j, a, r, "trl", e) || !add_files(l, j, r, "config", e))
        return false;
    if (j->job->task != TASK_SFT)
        return FAIL(e, UNSUPPORTED, STR("--task"),
                    "a trial of the trl engine makes texts, for --task sft; a script of yours, "
                    "with --engine command, may train another");
    launch_watched(l, a, r);
    if (!launch_fake(l, a, r, e))
        return false;
    set_workspace(l, a, r);
    if (r->gpus > 1)
        launch_variable(l, a, "MASTER_PORT", STR("0"));
    uint64_t readers = l->gpus ? 1 : r->gpus;
    uint64_t rows = STEPS * j->job->batch * j->job->accumulation * readers;
    launch_argument(l, a, STR("python3"));
    launch_argument(l, a, str_format(a, "%.*s/trl_trial.py", STR_ARGS(r->shipped)));
    launch_argument(l, a, stem_of(r));
    launch_argument(l, a, r->checkpoints);
    launch_argument(l, a, str_format(a, "%llu", (unsigned long long)r->context));
    launch_argument(l, a, str_format(a, "%llu", (unsigned long long)rows));
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

// Accelerate's files, whose script is transformers' Trainer, with what that sets by itself.
bool transformers_build(struct launch *l, struct arena *a, const struct trial_request *r,
                        struct error *e)
{
    struct settings own = settings_in(a), *filled = NEW(a, struct settings, 1);
    struct setting recipe = {STR("recipe"), STR("transformers"), STR("--engine")};
    struct settings all = settings_in(a);
    *filled = settings_in(a);
    for (ptrdiff_t i = 0; i < r->cell->count; i++)
        if (!settings_add(&own, r->cell->items[i], e))
            return false;
    if (!settings_set(&own, recipe, e) || !recipe_fill(&all, &own, r->gpus > 1, e))
        return false;
    for (ptrdiff_t i = 0; i < all.count; i++)
        if (!str_is(all.items[i].key, "recipe") && !settings_add(filled, all.items[i], e))
            return false;
    struct trial_request explicit = *r;
    explicit.cell = filled;
    return emit_build(l, a, &explicit, "accelerate", e);
}
