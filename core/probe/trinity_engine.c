// Trinity-RFT's own trainer, with a configuration and a source of synthetic data that come with
// Fathom (share/trinity_*). What changes from trial to trial goes through the environment, and a
// script of ours does what `trinity run` does, because that ends with 0 whatever happened.
#include "core/base/buf.h"
#include "core/probe/engine.h"

// One more GPU runs the rollout engine; eight do from eight trainer GPUs on.
static uint64_t rollout_gpus(uint64_t trainer_gpus)
{
    return trainer_gpus >= 8 ? 8 : 1;
}

static void put_count(struct launch *l, struct arena *a, const char *name, uint64_t value)
{
    launch_variable(l, a, name, str_format(a, "%llu", (unsigned long long)value));
}

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
                                        "tied",      "device", "one-gpu",       "memory-limit"};
    for (ptrdiff_t i = 0; i < COUNT_OF(fixed); i++) {
        const struct setting *item = settings_find_z(s, fixed[i]);
        if (item)
            return FAIL(e, BAD_INPUT, item->where,
                        "the trinity engine runs the published test, which sets %s itself",
                        fixed[i]);
    }
    static const struct engine_setting choices[] = {
        {"strategy", "fsdp1|fsdp2"}, {"offload", "off|all"}, {0}};
    return engine_check_values("trinity", choices, s, e);
}

static void put_rope(struct launch *l, struct arena *a, const struct trial_request *r)
{
    double factor = trial_yarn_factor(r);
    if (factor > 0)
        launch_variable(l, a, "FATHOM_ROPE_SCALING",
                        str_format(a,
                                   "{rope_type: yarn, factor: %.15g, "
                                   "original_max_position_embeddings: %llu}",
                                   factor, (unsigned long long)r->max_position));
}

static void put_command(struct launch *l, struct arena *a, const struct trial_request *r)
{
    const struct setting *python = settings_find_z(r->cell, "python");
    launch_argument(l, a, python ? python->value : STR("python3"));
    launch_argument(l, a, STR("-u"));
    launch_argument(l, a, str_format(a, "%.*s/trinity_trial.py", STR_ARGS(r->shipped)));
    launch_argument(l, a, STR("--config"));
    launch_argument(l, a, str_format(a, "%.*s/trinity_capacity.yaml", STR_ARGS(r->shipped)));
    launch_argument(l, a, STR("--plugin-dir"));
    launch_argument(l, a, str_format(a, "%.*s/trinity_plugin", STR_ARGS(r->shipped)));
    if (settings_find_z(r->cell, "dlc"))
        launch_argument(l, a, STR("--dlc"));
}

bool trinity_build(struct launch *l, struct arena *a, const struct trial_request *r,
                   struct error *e)
{
    const struct settings *s = r->cell;
    const struct setting *save = settings_find_z(s, "save-hf");
    const struct setting *offload = settings_find_z(s, "offload");
    struct setting offloaded = {STR("offload"), STR("on"), STR("--offload")};
    const struct setting *expandable = settings_find_z(s, "expandable");
    const struct setting *lonely = settings_find_z(s, "train-only");
    bool on = false, alone = false, offloads = offload && str_is(offload->value, "all");
    if (!check_settings(s, e) || (expandable && !setting_switch(&on, expandable, e)) ||
        (lonely && !setting_switch(&alone, lonely, e)) ||
        !put_switch(l, a, "FATHOM_OFFLOAD", offloads ? &offloaded : NULL, e) ||
        !put_switch(l, a, "FATHOM_ENTROPY_SAVING", settings_find_z(s, "entropy-saving"), e) ||
        !put_switch(l, a, "FATHOM_FUSED_KERNELS", settings_find_z(s, "fused-kernels"), e))
        return false;
    uint64_t rollout = rollout_gpus(r->gpus);
    l->gpus = alone ? r->gpus : r->gpus + rollout;
    launch_variable(l, a, "FATHOM_MODE", alone ? STR("train") : STR("both"));
    launch_variable(l, a, "FATHOM_SAMPLES", alone ? STR("fathom_synthetic") : STR("default"));
    put_count(l, a, "FATHOM_GPUS", l->gpus);
    put_count(l, a, "FATHOM_ROLLOUT_GPUS", rollout);
    put_count(l, a, "FATHOM_SP", r->sp);
    put_count(l, a, "FATHOM_SEQUENCES", r->gpus / r->sp * 8);
    put_count(l, a, "FATHOM_CONTEXT", r->context);
    launch_variable(l, a, "FATHOM_MODEL", r->model);
    launch_variable(l, a, "FATHOM_STRATEGY", strategy_of(s));
    launch_variable(l, a, "FATHOM_SAVE_HF", save ? save->value : STR("last"));
    launch_variable(l, a, "FATHOM_CHECKPOINTS", r->checkpoints);
    put_rope(l, a, r);
    if (on)
        launch_variable(l, a, "PYTORCH_CUDA_ALLOC_CONF", STR("expandable_segments:True"));
    put_command(l, a, r);
    return true;
}
