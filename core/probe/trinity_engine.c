// Trinity-RFT's own trainer, with a configuration and a source of synthetic data that come with
// Fathom (share/trinity_*). What changes from trial to trial goes through the environment, and a
// script of ours does what `trinity run` does, because that ends with 0 whatever happened.
#include "core/base/buf.h"
#include "core/probe/engine.h"

enum { SEQUENCES = 8 }; // of a sequence parallel group in a step, as in the published test

// One more GPU runs the rollout engine; eight do from eight trainer GPUs on.
static uint64_t rollout_gpus(uint64_t trainer_gpus)
{
    return trainer_gpus >= 8 ? 8 : 1;
}

static void put_count(struct launch *l, struct arena *a, const char *name, uint64_t value)
{
    launch_variable(l, a, name, str_format(a, "%llu", (unsigned long long)value));
}

// A switch that is off is written too, so that no variable of the user's shell is taken for it.
static bool put_switch(struct launch *l, struct arena *a, const char *name,
                       const struct setting *item, struct error *e)
{
    bool on = false;
    if (item && !setting_switch(&on, item, e))
        return false;
    launch_variable(l, a, name, on ? STR("true") : STR("false"));
    return true;
}

static struct str strategy_of(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "strategy");
    const struct setting *offload = settings_find_z(s, "offload");
    bool sharded2 = item ? str_is(item->value, "fsdp2") : offload && str_is(offload->value, "all");
    return sharded2 ? STR("fsdp2") : STR("fsdp");
}

// What is not the test's own is refused rather than left out.
static bool check_settings(const struct settings *s, struct error *e)
{
    static const char *const fixed[] = {"batch",     "accum",  "checkpointing", "reshard",
                                        "optimizer", "loss",   "precision",     "layers",
                                        "tied",      "device", "one-gpu",       "memory-limit",
                                        "task",      "lora",   "quantize",      "tp"};
    const struct setting *cp = settings_find_z(s, "cp");
    if (cp)
        return FAIL(e, BAD_INPUT, cp->where, "the trinity engine has no cp; --sp splits sequences");
    for (ptrdiff_t i = 0; i < COUNT_OF(fixed); i++) {
        const struct setting *item = settings_find_z(s, fixed[i]);
        if (item)
            return FAIL(e, BAD_INPUT, item->where,
                        "the trinity engine runs the published test, where %s is not open",
                        fixed[i]);
    }
    static const struct engine_setting choices[] = {
        {"strategy", "fsdp1|fsdp2"}, {"offload", "off|all"}, {0}};
    static const char *const shipped[] = {"train-only", "fused-kernels"};
    for (ptrdiff_t i = 0; i < COUNT_OF(shipped) && settings_find_z(s, "trinity-config"); i++) {
        const struct setting *item = settings_find_z(s, shipped[i]);
        if (item)
            return FAIL(e, BAD_INPUT, item->where,
                        "%s is read by the shipped configuration, and --trinity-config is yours",
                        shipped[i]);
    }
    return engine_check_values("trinity", choices, s, e);
}

// Trinity-RFT 0.6 hands model.rope_scaling to vLLM alone, since verl cannot set a group of values
// of a model's configuration (update_model_config of 0.8.0 and 0.9.1): trainers read config.json.
// So the trial's script makes a folder whose config.json has YaRN, and everybody reads that.
static void put_rope(struct launch *l, struct arena *a, const struct trial_request *r)
{
    launch_variable(l, a, "ROPE_SCALING", STR("null"));
    if (trial_yarn_factor(r) > 0)
        launch_variable(l, a, "FATHOM_YARN", trial_yarn_text(a, r));
}

static struct str own_or(const struct settings *s, const char *name, struct str shipped)
{
    const struct setting *item = settings_find_z(s, name);
    return item ? item->value : shipped;
}

static void put_command(struct launch *l, struct arena *a, const struct trial_request *r)
{
    struct str config = str_format(a, "%.*s/trinity_capacity.yaml", STR_ARGS(r->shipped));
    struct str plugins = str_format(a, "%.*s/trinity_plugin", STR_ARGS(r->shipped));
    launch_argument(l, a, own_or(r->cell, "python", STR("python3")));
    launch_argument(l, a, STR("-u"));
    launch_argument(l, a, str_format(a, "%.*s/trinity_trial.py", STR_ARGS(r->shipped)));
    launch_argument(l, a, STR("--config"));
    launch_argument(l, a, path_as_argument(a, own_or(r->cell, "trinity-config", config)));
    launch_argument(l, a, STR("--plugin-dir"));
    launch_argument(l, a, path_as_argument(a, own_or(r->cell, "plugin-dir", plugins)));
    if (settings_find_z(r->cell, "dlc"))
        launch_argument(l, a, STR("--dlc"));
}

// Under the names of the published script, so that a configuration made for it works here too.
static bool put_trial(struct launch *l, struct arena *a, const struct trial_request *r,
                      struct error *e)
{
    const struct settings *s = r->cell;
    const struct setting *offload = settings_find_z(s, "offload");
    struct setting offloaded = {STR("offload"), STR("on"), STR("--offload")};
    bool offloads = offload && str_is(offload->value, "all");
    put_count(l, a, "GPU_NUM", l->gpus);
    put_count(l, a, "ENGINE_NUM", rollout_gpus(r->gpus));
    put_count(l, a, "SP_NUM", r->sp);
    put_count(l, a, "REPEAT_TIMES", r->gpus / r->sp * SEQUENCES);
    launch_variable(l, a, "MODEL_PATH", r->model);
    put_count(l, a, "MAX_MODEL_LEN", r->context);
    launch_variable(l, a, "SAVE_HF_CHECKPOINT", own_or(s, "save-hf", STR("last")));
    launch_variable(l, a, "TRAINER_STRATEGY", strategy_of(s));
    launch_variable(l, a, "TRINITY_CHECKPOINT_ROOT_DIR", r->checkpoints);
    put_rope(l, a, r);
    return put_switch(l, a, "OFFLOAD", offloads ? &offloaded : NULL, e) &&
           put_switch(l, a, "ENTROPY_SAVING", settings_find_z(s, "entropy-saving"), e) &&
           put_switch(l, a, "FATHOM_FUSED_KERNELS", settings_find_z(s, "fused-kernels"), e);
}

bool trinity_build(struct launch *l, struct arena *a, const struct trial_request *r,
                   struct error *e)
{
    const struct settings *s = r->cell;
    const struct setting *expandable = settings_find_z(s, "expandable");
    const struct setting *lonely = settings_find_z(s, "train-only");
    bool on = false, alone = false;
    if (!check_settings(s, e) || (expandable && !setting_switch(&on, expandable, e)) ||
        (lonely && !setting_switch(&alone, lonely, e)))
        return false;
    l->gpus = alone ? r->gpus : r->gpus + rollout_gpus(r->gpus);
    if (!put_trial(l, a, r, e))
        return false;
    launch_variable(l, a, "FATHOM_MODE", alone ? STR("train") : STR("both"));
    launch_variable(l, a, "FATHOM_SAMPLES", alone ? STR("fathom_synthetic") : STR("default"));
    if (on)
        launch_variable(l, a, "PYTORCH_CUDA_ALLOC_CONF", STR("expandable_segments:True"));
    put_command(l, a, r);
    return true;
}
