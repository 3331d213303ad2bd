// Reading a job. What no framework could run is refused here; what one of them cannot is refused in
// that target's own table.
#include "core/emit/draft.h"

#include "core/base/num.h"

// A value of a setting and what it says of the job.
struct trait_row {
    const char *setting, *value;
    uint64_t traits;
};

static const struct trait_row trait_rows[] = {
    {"strategy", "ddp", IS_DDP},
    {"strategy", "fsdp1", IS_FSDP | IS_FSDP1},
    {"strategy", "fsdp2", IS_FSDP | IS_FSDP2},
    {"strategy", "zero1", IS_ZERO | IS_ZERO1},
    {"strategy", "zero2", IS_ZERO | IS_ZERO2},
    {"strategy", "zero3", IS_ZERO | IS_ZERO3},
    {"precision", "bf16", IS_BF16},
    {"precision", "autocast", IS_AUTOCAST},
    {"precision", "mixed", IS_MIXED},
    {"offload", "optimizer", IS_OFFLOAD_OPTIMIZER},
    {"offload", "all", IS_OFFLOAD_OPTIMIZER | IS_OFFLOAD_ALL},
    {"optimizer", "adamw", IS_ADAMW},
    {"optimizer", "adamw-fused", IS_ADAMW | IS_FUSED},
    {"optimizer", "sgd", IS_SGD},
    {"task", "sft", IS_SFT},
    {"task", "reward", IS_REWARD | IS_PAIRS},
    {"task", "dpo", IS_DPO | IS_PAIRS},
    {"task", "grpo", IS_GRPO | IS_ROLLOUT},
    {"task", "opd", IS_OPD | IS_ROLLOUT},
    {"task", "capacity", IS_CAPACITY | IS_GRPO | IS_ROLLOUT},
    {"verl", "0.5", IS_LEGACY},
    {"torch", "2.9", IS_TORCH_NEW},
    {"torch", "2.10", IS_TORCH_NEW},
    {"torch", "2.11", IS_TORCH_NEW},
    {"loss", "none", IS_NO_LOSS},
    {"loss", "chunked:256", IS_TRL_LOSS},
    {"for", "deepspeed", IS_CONFIG},
    {"around", "deepspeed", IS_CONFIG},
    {"for", "trinity", IS_RAY | IS_TRINITY},
    {"around", "trinity", IS_RAY | IS_TRINITY},
    {"for", "verl", IS_RAY},
    {"around", "verl", IS_RAY},
    {"for", "slime", IS_RAY},
    {"around", "slime", IS_RAY},
    {"for", "slurm", IS_SLURM},
};

static const struct {
    const char *setting;
    bool fallback;
    uint64_t trait;
} switch_rows[] = {
    {"checkpointing", true, IS_CHECKPOINTING},
    {"reshard", true, IS_RESHARD},
    {"expandable", false, IS_EXPANDABLE},
};

static const struct {
    enum feature feature;
    uint64_t trait;
} feature_rows[] = {
    {FEATURE_EXPERTS, IS_EXPERTS},
    {FEATURE_TIED, IS_TIED},
    {FEATURE_QK_NORM, IS_QK_NORM},
    {FEATURE_QKV_BIAS, IS_QKV_BIAS},
};

bool draft_is(const struct draft *j, uint64_t when, uint64_t unless)
{
    return (j->traits & when) == when && !(j->traits & unless);
}

static struct str setting_or(const struct draft *j, const char *name, const char *fallback)
{
    const struct setting *item = settings_find_z(j->settings, name);
    return item ? item->value : str_from(fallback);
}

static void take_choice(struct draft *j, const char *name, const char *fallback)
{
    struct str value = setting_or(j, name, fallback);
    for (ptrdiff_t i = 0; i < COUNT_OF(trait_rows); i++)
        if (str_is(str_from(trait_rows[i].setting), name) && str_is(value, trait_rows[i].value))
            j->traits |= trait_rows[i].traits;
    draft_fact(j, name, value);
}

static const char *usual_task(const struct draft *j)
{
    return draft_is(j, IS_RAY, 0) ? "grpo" : "sft";
}

static const char *usual_strategy(const struct draft *j)
{
    if (draft_is(j, IS_CONFIG, 0))
        return "zero3";
    return j->gpus > 1 ? "fsdp2" : "single";
}

static void take_choices(struct draft *j)
{
    j->traits |= j->gpus > 1 ? IS_SEVERAL : 0;
    j->traits |= j->hardware.nodes > 1 ? IS_NODES : 0;
    take_choice(j, "for", "");
    take_choice(j, "around", draft_is(j, IS_SLURM, 0) ? "accelerate" : "");
    take_choice(j, "strategy", usual_strategy(j));
    take_choice(j, "precision", j->traits & (IS_FSDP | IS_ZERO | IS_RAY) ? "mixed" : "bf16");
    take_choice(j, "offload", "off");
    take_choice(j, "optimizer", "adamw");
    take_choice(j, "task", usual_task(j));
    take_choice(j, "verl", "0.8");
    take_choice(j, "save-hf", "last");
    take_choice(j, "torch", draft_is(j, IS_TRINITY, 0) ? "2.8" : "2.11"); // as the recipe's
    take_choice(j, "loss", "full");
    j->traits |= str_starts(draft_text(j, "loss"), STR("chunked")) ? IS_CHUNKED : 0;
    j->traits |= settings_find_z(j->settings, "strategy") ? IS_STRATEGY_GIVEN : 0;
}

static bool take_switches(struct draft *j, struct error *e)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(switch_rows); i++) {
        const struct setting *item = settings_find_z(j->settings, switch_rows[i].setting);
        bool on = switch_rows[i].fallback;
        if (item && !setting_switch(&on, item, e))
            return false;
        j->traits |= on ? switch_rows[i].trait : 0;
    }
    return true;
}

static bool take_count(uint64_t *value, struct draft *j, const char *name, struct error *e)
{
    const struct setting *item = settings_find_z(j->settings, name);
    const struct setting_def *def = setting_def_find(str_from(name));
    if (item && !setting_number(value, item, UNIT_COUNT, (struct range){def->min, def->max}, e))
        return false;
    draft_count(j, name, *value);
    return true;
}

// Texts that become words of a command must not look like options.
static bool take_text(struct draft *j, const char *name, const char *fallback, struct error *e)
{
    const struct setting *item = settings_find_z(j->settings, name);
    if (item && str_starts(item->value, STR("-")))
        return FAIL(e, BAD_INPUT, item->where, "%s must not begin with a dash", name);
    draft_fact(j, name, item ? item->value : str_from(fallback));
    return true;
}

// As the hub spells it: the row's own name, or the one among its others.
static struct str hub_id(struct arena *a, const struct catalog_model *row, struct str name)
{
    struct str bare = str_cut(name, '/').found ? str_cut(name, '/').tail : name;
    struct words others = words_of(row->also, ' ');
    while (words_next(&others))
        if (str_equal_nocase(others.word, bare))
            return str_format(a, "%s/%.*s", row->owner, STR_ARGS(others.word));
    return str_format(a, "%s/%s", row->owner, row->name);
}

// Where the weights are: the hub's id of a catalogue row, or what the user named.
static struct str weights_of(const struct draft *j, const char *setting)
{
    struct str name = setting_or(j, setting, "");
    const struct catalog_model *row = catalog_model_find(name);
    if (row)
        return hub_id(j->arena, row, name);
    if (str_ends(name, STR("/config.json")))
        return str_slice(name, 0, name.n - STR("/config.json").n);
    return name;
}

// context / max_position, rounded up to four decimals.
static struct str yarn_factor(const struct draft *j)
{
    uint64_t scaled = u64_divide_up(sat_mul(j->context, 10000), j->model.max_position);
    return str_format(j->arena, "%llu.%04llu", (unsigned long long)(scaled / 10000),
                      (unsigned long long)(scaled % 10000));
}

static void take_model(struct draft *j)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(feature_rows); i++)
        j->traits |= model_has(&j->model, feature_rows[i].feature) ? feature_rows[i].trait : 0;
    struct str weights = weights_of(j, "model");
    struct str name = str_cut_last(weights, '/').found ? str_cut_last(weights, '/').tail : weights;
    draft_fact(j, "weights", weights);
    draft_fact(j, "teacher", weights_of(j, "teacher"));
    draft_fact(j, "name", name.n ? name : STR("model"));
    bool longer = j->model.max_position && j->context > j->model.max_position;
    j->traits |= longer ? IS_YARN : 0;
    draft_fact(j, "model", longer ? STR("model-yarn") : weights);
    draft_fact(j, "yarn_factor", longer ? yarn_factor(j) : STR_NONE);
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"max_position", j->model.max_position},
        {"layers", j->model.layers},
        {"hidden", j->model.hidden},
        {"intermediate", j->model.intermediate},
        {"heads", j->model.heads},
        {"kv_heads", j->model.kv_heads},
        {"head_dim", j->model.head_dim},
        {"vocab", j->model.vocab},
        {"experts", j->model.experts.count},
        {"experts_per_token", j->model.experts.per_token},
        {"expert_intermediate", j->model.experts.intermediate},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(counts); i++)
        draft_count(j, counts[i].name, counts[i].value);
}

struct division {
    const char *option; // whose size must divide
    uint64_t size, whole;
    const char *what;
};

static bool divides(struct draft *j, const struct division *d, struct error *e)
{
    if (d->size && d->whole % d->size == 0)
        return true;
    return FAIL(e, BAD_INPUT, str_format(j->arena, "--%s", d->option),
                "%s %llu does not divide the %llu %s", d->option, (unsigned long long)d->size,
                (unsigned long long)d->whole, d->what);
}

static bool all_divide(struct draft *j, uint64_t ep, struct error *e)
{
    const struct division rows[] = {
        {"sp", j->sp, j->gpus, "GPUs"},
        {"sp", j->sp, j->model.heads, "attention heads"},
        {"cp", j->cp, j->gpus, "GPUs"},
        {"ep", ep, j->gpus, "GPUs"},
        {"tp", j->tp, j->gpus / (j->sp * j->cp), "GPUs that share a sequence"},
        {"tp", j->tp, j->model.heads, "attention heads"},
        {"sp", j->sp, j->context, "tokens of the context"},
        {"cp", 2 * j->cp, j->cp > 1 ? j->context : 0,
         "tokens of the context: ring attention cuts it into 2 x cp pieces"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (!divides(j, &rows[i], e))
            return false;
    return true;
}

static bool is_possible(struct draft *j, uint64_t ep, struct error *e)
{
    uint64_t kv = j->model.kv_heads;
    if (!j->context)
        return FAIL(e, BAD_INPUT, STR("--context"),
                    "no context is given; --context 32k is an example");
    if (j->gpus > 1 && !(j->traits & (IS_DDP | IS_FSDP | IS_ZERO)))
        return FAIL(e, BAD_INPUT, STR("--strategy"),
                    "single trains on one GPU, not on %llu; fsdp2 shards over them",
                    (unsigned long long)j->gpus);
    if (j->gpus == 1 && j->traits & (IS_DDP | IS_FSDP))
        return FAIL(e, BAD_INPUT, STR("--strategy"),
                    "%.*s needs several GPUs; single trains on one",
                    STR_ARGS(draft_text(j, "strategy")));
    if (j->sp > 1 && j->cp > 1)
        return FAIL(e, BAD_INPUT, STR("--cp"), "sp and cp cannot be used together");
    if (!(j->traits & (IS_ADAMW | IS_SGD)))
        return FAIL(
            e, UNSUPPORTED, STR("--optimizer"),
            "files with an 8-bit optimizer are not written yet; with adamw, adamw-fused and "
            "sgd they are");
    if (str_is(draft_text(j, "loss"), "liger"))
        return FAIL(e, UNSUPPORTED, STR("--loss"),
                    "files with Liger's loss are not written yet; with the full loss they are");
    if (!all_divide(j, ep, e))
        return false;
    if (j->sp > 1 && kv % j->sp && j->sp % kv)
        return FAIL(e, BAD_INPUT, STR("--sp"),
                    "sp %llu and the %llu heads of keys and values do not divide each other",
                    (unsigned long long)j->sp, (unsigned long long)kv);
    return true;
}

static void take_spread(struct draft *j, uint64_t accum)
{
    uint64_t replicas = j->gpus / (j->sp * j->cp * j->tp);
    j->sequences = sat_mul(sat_mul(j->batch, accum), replicas);
    j->traits |= (j->sp > 1 ? IS_SP : 0) | (j->cp > 1 ? IS_CP : 0) | (j->tp > 1 ? IS_TP : 0);
    j->traits |= (accum > 1 ? IS_ACCUMULATES : 0) | (j->rollout_gpus ? IS_APART : 0);
    draft_count(j, "gpus", j->gpus);
    draft_count(j, "nodes", j->hardware.nodes);
    draft_count(j, "gpus_per_node", j->hardware.gpus_per_node);
    draft_count(j, "replicas", replicas);
    draft_count(j, "sequences", j->sequences);
    draft_count(j, "pad", j->sp > 1 ? j->sp : 2 * j->cp);
    draft_fact(j, "gpu", str_from(j->hardware.card.name));
}

static bool take_sizes(struct draft *j, struct error *e)
{
    // Trinity's own defaults are micro-batches of two sequences, eight a group of GPUs.
    uint64_t accum = draft_is(j, IS_TRINITY, 0) ? 4 : draft_is(j, IS_RAY, 0) ? 16 : 1, ep = 1;
    j->batch = draft_is(j, IS_TRINITY, 0) ? 2 : 1;
    if (!take_count(&j->context, j, "context", e) || !take_count(&j->batch, j, "batch", e) ||
        !take_count(&accum, j, "accum", e) || !take_count(&j->sp, j, "sp", e) ||
        !take_count(&j->cp, j, "cp", e) || !take_count(&j->tp, j, "tp", e) ||
        !take_count(&ep, j, "ep", e) || !take_count(&j->rollout_gpus, j, "rollout", e) ||
        !is_possible(j, ep, e))
        return false;
    take_spread(j, accum);
    return true;
}

static bool take_texts(struct draft *j, struct error *e)
{
    j->traits |= settings_find_z(j->settings, "nvme") ? IS_NVME : 0;
    j->traits |= settings_find_z(j->settings, "dataset") ? 0 : IS_NO_DATASET;
    return take_text(j, "model", "", e) && take_text(j, "nvme", "", e) &&
           take_text(j, "dataset", "", e) && take_text(j, "teacher", "", e) &&
           take_text(j, "save-to", "checkpoints", e);
}

bool draft_from_settings(struct draft *j, struct arena *a, const struct settings *s,
                         struct error *e)
{
    *j = (struct draft){.arena = a, .settings = s, .sp = 1, .cp = 1, .tp = 1};
    if (!model_from_settings(&j->model, a, s, e) ||
        !parameters_of(&j->parameters, a, &j->model, e) ||
        !hardware_from_settings(&j->hardware, a, s, e))
        return false;
    j->gpus = hardware_gpus(&j->hardware);
    take_choices(j);
    if (!take_texts(j, e) || !take_switches(j, e) || !take_sizes(j, e))
        return false;
    take_model(j);
    return true;
}
