// Names are those of TRL 1.16 and before (trl/scripts, examples/scripts, trl/experimental), of
// transformers' examples and of the command lines of LLaMA-Factory 0.9.5 and axolotl 0.19.
#include "core/foreign/programs.h"

#include "core/base/arena.h"

#define UNMODELLED(name) {name, "trl", NULL, true}

// The first that matches is meant.
static const struct program programs[] = {
    UNMODELLED("dpo_online"),
    {"sft", "trl", "sft", false},
    {"dpo", "trl", "dpo", false},
    {"kto", "trl", "kto", false},
    {"reward", "trl", "reward", false},
    {"grpo", "trl", "grpo", false},
    {"rloo", "trl", "rloo", false},
    {"distillation", "trl", "distill", false},
    UNMODELLED("a2po"),
    UNMODELLED("alignprop"),
    UNMODELLED("async_distillation"),
    UNMODELLED("async_grpo"),
    UNMODELLED("bco"),
    UNMODELLED("cpo"),
    UNMODELLED("ddpo"),
    UNMODELLED("gfpo"),
    UNMODELLED("gkd"),
    UNMODELLED("gmpo"),
    UNMODELLED("gold"),
    UNMODELLED("gspo"),
    UNMODELLED("iw_opd"),
    UNMODELLED("minillm"),
    UNMODELLED("mpo"),
    UNMODELLED("nash"),
    UNMODELLED("online_dpo"),
    UNMODELLED("orpo"),
    UNMODELLED("papo"),
    UNMODELLED("ppo"),
    UNMODELLED("prm"),
    UNMODELLED("sdft"),
    UNMODELLED("sdpo"),
    UNMODELLED("server_distillation"),
    UNMODELLED("ssd"),
    UNMODELLED("tpo"),
    UNMODELLED("xpo"),
    UNMODELLED("run_clm_no_trainer"),
    {"run_clm", "transformers", NULL, false},
    {"llamafactory.launcher", "llamafactory", NULL, false},
    {"llamafactory.cli", "llamafactory", NULL, false},
    {"axolotl.cli.train", "axolotl", NULL, false},
};

static bool begins_with(struct str name, struct str beginning)
{
    if (!str_starts(name, beginning))
        return false;
    return name.n == beginning.n || name.p[beginning.n] == '_' || name.p[beginning.n] == '-';
}

const struct program *program_find(struct str name)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(programs); i++)
        if (begins_with(name, str_from(programs[i].name)))
            return &programs[i];
    return NULL;
}

// trl/trainer/sft_config.py and others; hparams of LLaMA-Factory, whose src/train.py takes them.
static const struct {
    const char *script; // begins so; "" any
    const char *keys, *trainer;
} evidence[] = {
    {"", "finetuning_type cutoff_len stage", "llamafactory"},
    {"run_",
     "max_length packing dataset_text_field padding_free assistant_only_loss completion_only_loss",
     "trl"},
};

const char *program_by_keys(struct str script, const struct settings *said)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(evidence); i++) {
        struct words keys = words_of(evidence[i].keys, ' ');
        while (str_starts(script, str_from(evidence[i].script)) && words_next(&keys))
            if (settings_find(said, keys.word))
                return evidence[i].trainer;
    }
    return NULL;
}

// Programs and Python's modules that start others.
static const char *const launchers[][2] = {
    {"accelerate", "accelerate.commands.launch"},
    {"torchrun", "torch.distributed.run"},
    {"torchrun", "torch.distributed.launch"},
    {"deepspeed", "deepspeed.launcher.runner"},
    {"python", ""},
    {"trl", "trl.cli"},
    {"llamafactory-cli", ""},
    {"axolotl", ""},
};

const char *launcher_find(struct str word)
{
    struct str_cut folder = str_cut_last(word, '/');
    struct str name = folder.found ? folder.tail : word;
    if (str_is(name, "python3"))
        return "python";
    for (ptrdiff_t i = 0; i < COUNT_OF(launchers); i++)
        if (str_is(name, launchers[i][0]))
            return launchers[i][0];
    return NULL;
}

const char *launcher_of_module(struct str module)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(launchers); i++)
        if (module.n && str_is(module, launchers[i][1]))
            return launchers[i][0];
    return NULL;
}

// accelerate/commands/launch.py: flags have the names of the keys in these sections.
static const char *const sections[][2] = {
    {"fsdp_", "fsdp_config."},          {"zero", "deepspeed_config."},
    {"offload_", "deepspeed_config."},  {"deepspeed_", "deepspeed_config."},
    {"gradient_", "deepspeed_config."}, {"parallelism_config_", "parallelism_config."},
};

const char *launcher_section(struct str flag)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(sections); i++)
        if (str_starts(flag, str_from(sections[i][0])))
            return sections[i][1];
    return "";
}

// trl/cli/commands/training.py: what TRL's own parser does not know. Trainers have fsdp_config and
// gradient_accumulation_steps themselves.
bool launcher_takes(struct str flag)
{
    static const char flags[] =
        "config_file multi_gpu use_fsdp use_deepspeed use_megatron_lm cpu tpu num_processes "
        "num_machines machine_rank main_process_ip main_process_port mixed_precision "
        "dynamo_backend gpu_ids same_network rdzv_backend num_cpu_threads_per_process";
    bool sectioned = *launcher_section(flag) && !str_starts(flag, STR("gradient_")) &&
                     !str_is(flag, "fsdp_config");
    return sectioned || words_have(flags, ' ', flag);
}
