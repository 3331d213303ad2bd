// What each recipe sets, as rows. A row never overrides what the user gave; rows that hang on the
// strategy come after those that set it. hf has none: it is the plain step that fathom simulates,
// written by hand around transformers' models.
#include "core/job/recipe.h"

#include "core/base/buf.h"

const char *const recipe_words[RECIPES] = {
    [RECIPE_HF] = "hf",
    [RECIPE_TRANSFORMERS] = "transformers",
    [RECIPE_TRL] = "trl",
    [RECIPE_DEEPSPEED] = "deepspeed",
    [RECIPE_TRINITY] = "trinity",
    [RECIPE_VERL] = "verl",
    [RECIPE_MEGATRON] = "megatron",
    [RECIPE_AXOLOTL] = "axolotl",
    [RECIPE_LLAMAFACTORY] = "llamafactory",
};

const struct recipe_def recipe_defs[RECIPES] = {
    [RECIPE_HF] = {"a loop of one's own around transformers", {"5.17"}},
    [RECIPE_TRANSFORMERS] = {"transformers' Trainer",
                             {"4.41", "4.42", "4.45", "4.46", "4.48", "4.49", "4.57", "5.0",
                              "5.17"}},
    [RECIPE_TRL] = {"TRL", {"1.13", "1.16"}},
    [RECIPE_DEEPSPEED] = {"DeepSpeed", {"0.19"}},
    [RECIPE_TRINITY] = {"Trinity-RFT", {"0.4", "0.6"}}, // on verl 0.5, on verl 0.8
    [RECIPE_VERL] = {"verl", {"0.5", "0.8", "0.9"}},
    [RECIPE_MEGATRON] = {"Megatron", {"0.13"}},
    [RECIPE_AXOLOTL] = {"axolotl", {"0.19"}}, // on transformers 5.16
    [RECIPE_LLAMAFACTORY] = {"LLaMA-Factory",
                             {"0.9.1", "0.9.5"}}, // on transformers 4.41 to 4.46, 4.55 to 5.6
};

static const char cut_alone[] = "single"; // not the text of another row (recipe_row_holds)

const struct recipe_row recipe_rows[] = {
    {.recipe = "trl",
     .setting = "strategy",
     .value = cut_alone,
     .several = true,
     .cut = true,
     .evidence = "transformers 5.17, distributed/mixin.py: tp_size times fsdp_size is all GPUs"},
    {.recipe = "hf",
     .setting = "strategy",
     .value = cut_alone,
     .several = true,
     .cut = true,
     .evidence = "transformers 5.17, distributed/mixin.py: tp_size times fsdp_size is all GPUs"},
    {.recipe = "transformers",
     .setting = "strategy",
     .value = cut_alone,
     .several = true,
     .cut = true,
     .evidence = "transformers 5.17, distributed/mixin.py: tp_size times fsdp_size is all GPUs"},
    {.recipe = "trl",
     .setting = "strategy",
     .value = "ddp",
     .several = true,
     .packed = true,
     .evidence = "trl/trainer/sft_trainer.py: without a launcher's word MULTI_GPU; bytes of packed "
                 "weights are not what FSDP shards unless bnb_4bit_quant_storage says so"},
    {.recipe = "trl",
     .setting = "strategy",
     .value = "fsdp2",
     .several = true,
     .evidence = "trl/accelerate_configs/fsdp2.yaml, the one that context parallel needs"},
    {.recipe = "trl",
     .setting = "precision",
     .value = "mixed",
     .strategies = "fsdp1|fsdp2",
     .evidence = "bf16 is SFTConfig's default; accelerate 1.15 casts the shards to fp32"},
    {.recipe = "trl",
     .setting = "precision",
     .value = "bf16",
     .packed = true,
     .strategies = "single|ddp",
     .evidence = "trl/trainer/utils.py, get_quantization_config: products over packed weights are "
                 "in dtype, which QLoRA's users set to bfloat16 (q1 to q3 of real_trainers.jsonl)"},
    {.recipe = "trl",
     .setting = "precision",
     .value = "autocast",
     .strategies = "single|ddp",
     .evidence = "models are loaded in float32 (trl/trainer/utils.py), bf16 is autocast"},
    {.recipe = "trl",
     .setting = "checkpointing",
     .value = "on",
     .evidence = "trl/trainer/base_config.py: gradient_checkpointing = True"},
    {.recipe = "trl",
     .setting = "batch",
     .value = "2",
     .tasks = "kto",
     .evidence = "trl 1.16, kto_trainer.py: a batch of one row is refused; such a job died"},
    {.recipe = "trl",
     .setting = "batch",
     .value = "2",
     .tasks = "grpo|rloo",
     .alone = true,
     .evidence = "trl 1.16, grpo_config.py and rloo_config.py: fewer than two generations a prompt "
                 "are refused"},
    {.recipe = "trl",
     .setting = "optimizer",
     .value = "adamw-fused",
     .evidence = "transformers/training_args.py: adamw_torch_fused since torch 2.8"},
    {.recipe = "trl",
     .setting = "loss",
     .value = "chunked:256",
     .evidence = "trl 1.13, sft_trainer.py: chunked_nll; 1.16 has a fused head instead"},
    {.recipe = "trl",
     .setting = "overlap-comm",
     .value = "on",
     .evidence = "the DeepSpeed file of tests/runs/real_trainers.jsonl, z4, z12 and z14"},
    {.recipe = "trl",
     .setting = "backward-prefetch",
     .value = "off",
     .evidence = "accelerate's default, NO_PREFETCH; tests/runs/real_trainers.jsonl, r5 and r15"},
    {.recipe = "transformers",
     .setting = "backward-prefetch",
     .value = "off",
     .evidence = "accelerate's default, NO_PREFETCH; tests/runs/real_trainers.jsonl, r5 and r15"},
    {.recipe = "axolotl",
     .setting = "backward-prefetch",
     .value = "off",
     .evidence = "accelerate's default, NO_PREFETCH; tests/runs/real_trainers.jsonl, r5 and r15"},
    {.recipe = "llamafactory",
     .setting = "backward-prefetch",
     .value = "off",
     .evidence = "accelerate's default, NO_PREFETCH; tests/runs/real_trainers.jsonl, r5 and r15"},
    {.recipe = "trl",
     .setting = "sync-each-batch",
     .value = "off",
     .evidence = "accelerate's default, no_sync; tests/runs/real_trainers.jsonl, a1 beside a2"},
    {.recipe = "transformers",
     .setting = "sync-each-batch",
     .value = "off",
     .evidence = "accelerate's default, no_sync; tests/runs/real_trainers.jsonl, a4 beside a5"},
    {.recipe = "transformers",
     .setting = "strategy",
     .value = "ddp",
     .several = true,
     .evidence =
         "transformers/trainer.py: DistributedDataParallel unless FSDP or DeepSpeed is set"},
    {.recipe = "transformers",
     .setting = "precision",
     .value = "autocast",
     .packed = true,
     .strategies = "single|ddp",
     .evidence =
         "peft/utils/other.py, prepare_model_for_kbit_training: what is not packed to fp32"},
    {.recipe = "transformers",
     .setting = "precision",
     .value = "bf16-autocast",
     .strategies = "single|ddp",
     .adapted = true,
     .evidence = "weights as they are saved, bf16: true; five jobs on an H200 that ran so"},
    {.recipe = "transformers",
     .setting = "checkpointing",
     .value = "off",
     .evidence = "transformers/training_args.py: gradient_checkpointing = False"},
    {.recipe = "transformers",
     .setting = "optimizer",
     .value = "adamw",
     .versions = "4.41|4.42|4.45|4.46|4.48|4.49",
     .evidence = "transformers/training_args.py of 4.41 to 4.53: default_optim is adamw_torch"},
    {.recipe = "transformers",
     .setting = "optimizer",
     .value = "adamw-fused",
     .evidence = "transformers/training_args.py: adamw_torch_fused since torch 2.8"},
    {.recipe = "axolotl",
     .setting = "strategy",
     .value = "ddp",
     .several = true,
     .evidence = "axolotl/utils/config: ddp where world_size is not 1; fsdp_config is the user's"},
    {.recipe = "axolotl",
     .setting = "attention",
     .value = "flash2",
     .evidence = "ours, as in its examples; its own default is transformers', which is sdpa"},
    {.recipe = "axolotl",
     .setting = "checkpointing",
     .value = "off",
     .evidence = "axolotl/utils/schemas/config.py: gradient_checkpointing = False"},
    {.recipe = "axolotl",
     .setting = "optimizer",
     .value = "adamw-fused",
     .evidence = "axolotl/utils/schemas/training.py: optimizer = adamw_torch_fused"},
    {.recipe = "axolotl",
     .setting = "expandable",
     .value = "on",
     .evidence = "axolotl/utils/__init__.py: set_pytorch_cuda_alloc_conf, from its command line"},
    {.recipe = "axolotl",
     .setting = "sync-each-batch",
     .value = "off",
     .evidence = "axolotl/core/builders/base.py: accelerate's own AcceleratorConfig()"},
    {.recipe = "llamafactory",
     .setting = "strategy",
     .value = "ddp",
     .several = true,
     .evidence = "llamafactory/launcher.py: torchrun on all GPUs"},
    {.recipe = "llamafactory",
     .setting = "precision",
     .value = "bf16",
     .strategies = "single|ddp",
     .adapted = true,
     .evidence = "llamafactory/model/loader.py: torch_dtype auto; only what is trained gets fp32"},
    {.recipe = "llamafactory",
     .setting = "precision",
     .value = "autocast",
     .strategies = "single|ddp",
     .evidence =
         "llamafactory/model/adapter.py: trainable parameters to float32, bf16 is autocast"},
    {.recipe = "llamafactory",
     .setting = "checkpointing",
     .value = "on",
     .evidence = "llamafactory/hparams/model_args.py: disable_gradient_checkpointing = False"},
    {.recipe = "llamafactory",
     .setting = "optimizer",
     .value = "adamw",
     .versions = "0.9.1",
     .evidence = "transformers/training_args.py of 4.46: default_optim is adamw_torch"},
    {.recipe = "llamafactory",
     .setting = "expandable",
     .value = "off",
     .versions = "0.9.1",
     .evidence = "llamafactory/launcher.py of 0.9.1 sets no PYTORCH_CUDA_ALLOC_CONF"},
    {.recipe = "llamafactory",
     .setting = "overlap-comm",
     .value = "on",
     .versions = "0.9.1",
     .strategies = "zero1|zero2|zero3",
     .evidence = "LLaMA-Factory 0.9.1, examples/deepspeed/ds_z2_config.json and ds_z3_config.json"},
    {.recipe = "llamafactory",
     .setting = "optimizer",
     .value = "adamw-fused",
     .evidence = "transformers/training_args.py: adamw_torch_fused since torch 2.8"},
    {.recipe = "llamafactory",
     .setting = "sync-each-batch",
     .value = "off",
     .evidence = "accelerate's default, no_sync"},
    {.recipe = "llamafactory",
     .setting = "expandable",
     .value = "on",
     .several = true,
     .strategies = "ddp|zero1|zero2|zero3",
     .evidence = "llamafactory/launcher.py: expandable segments for torchrun unless OPTIM_TORCH=0"},
    {.recipe = "trl",
     .setting = "save",
     .value = "sharded",
     .strategies = "fsdp1|fsdp2",
     .evidence = "ours, as accelerate's default is for FSDP2 (utils/dataclasses.py)"},
    {.recipe = "trl",
     .setting = "save",
     .value = "full",
     .evidence = "transformers/trainer.py, save_model"},
    {.recipe = "transformers",
     .setting = "save",
     .value = "sharded",
     .strategies = "fsdp1|fsdp2",
     .evidence = "ours, as accelerate's default is for FSDP2 (utils/dataclasses.py)"},
    {.recipe = "transformers",
     .setting = "save",
     .value = "full",
     .evidence = "transformers/trainer.py, save_model"},
    {.recipe = "axolotl",
     .setting = "save",
     .value = "full",
     .evidence = "transformers/trainer.py, save_model; under fsdp as in axolotl's examples"},
    {.recipe = "llamafactory",
     .setting = "save",
     .value = "sharded",
     .strategies = "fsdp1|fsdp2",
     .evidence = "ours, as accelerate's default is for FSDP2 (utils/dataclasses.py)"},
    {.recipe = "llamafactory",
     .setting = "save",
     .value = "full",
     .evidence = "transformers/trainer.py, save_model"},
    {.recipe = "deepspeed",
     .setting = "strategy",
     .value = "zero3",
     .evidence = "trl/accelerate_configs/zero3.yaml"},
    {.recipe = "deepspeed",
     .setting = "layer-kernels",
     .value = "liger",
     .fused = true,
     .strategies = "zero3",
     .evidence = "liger_kernel/transformers/monkey_patch.py: rope, rms_norm and swiglu are on "
                 "wherever the fused loss is, by use_liger_kernel and AutoLigerKernelForCausalLM"},
    {.recipe = "deepspeed",
     .setting = "zero-buckets",
     .value = "deepspeed",
     .stretched = true,
     .evidence = "ArcticTraining, which has both: its files say no sizes, and "
                 "deepspeed/runtime/zero/config.py has these"},
    {.recipe = "trinity",
     .setting = "strategy",
     .value = "fsdp2",
     .offloaded = true,
     .evidence = "trinity's capacity test: --offload needs trainer_strategy fsdp2"},
    {.recipe = "trinity",
     .setting = "strategy",
     .value = "fsdp1",
     .evidence = "trinity's capacity test: trainer_strategy fsdp"},
    {.recipe = "trinity",
     .setting = "batch",
     .value = "2",
     .evidence = "trinity's capacity test: max_token_len_per_gpu holds two sequences"},
    {.recipe = "trinity",
     .setting = "accum",
     .value = "4",
     .evidence = "trinity's capacity test: eight sequences for each sequence parallel group"},
    {.recipe = "trinity", .setting = "torch", .value = "2.8", .evidence = "what verl 0.5 runs on"},
    {.recipe = "trinity",
     .setting = "loss",
     .value = "policy",
     .evidence = "verl/workers/actor/dp_actor.py: a policy gradient"},
    {.recipe = "trinity", .setting = "task", .value = "grpo", .evidence = "its capacity test"},
    {.recipe = "verl",
     .setting = "strategy",
     .value = "fsdp2",
     .several = true,
     .evidence = "ours, as in its examples; its own default is fsdp"},
    {.recipe = "verl",
     .setting = "strategy",
     .value = "fsdp1",
     .evidence = "verl/workers/fsdp_workers.py: a single GPU is wrapped too"},
    {.recipe = "verl",
     .setting = "precision",
     .value = "mixed",
     .evidence = "verl/workers/fsdp_workers.py: fp32 shards, bf16 compute"},
    {.recipe = "verl",
     .setting = "loss",
     .value = "policy",
     .evidence = "verl/workers/actor/dp_actor.py: a policy gradient"},
    {.recipe = "verl",
     .setting = "accum",
     .value = "16",
     .evidence = "ours: a step of enough answers to compare"},
    {.recipe = "verl", .setting = "task", .value = "grpo", .evidence = "what is written for it"},
    {.recipe = "megatron", .setting = "task", .value = "grpo", .evidence = "what slime trains"},
    {.recipe = "megatron",
     .setting = "precision",
     .value = "mixed",
     .evidence = "megatron/core/optimizer: fp32 masters of bf16 weights"},
    {.recipe = "megatron",
     .setting = "strategy",
     .value = "megatron",
     .evidence = "slime/backends/megatron_utils/arguments.py: use_distributed_optimizer"},
    {.recipe = "megatron",
     .setting = "loss",
     .value = "full",
     .tasks = "sft|pretrain",
     .evidence = "megatron/training/arguments.py: cross_entropy_loss_fusion is off"},
    {.recipe = "megatron",
     .setting = "checkpointing",
     .value = "off",
     .tasks = "sft|pretrain",
     .evidence = "megatron/training/arguments.py: recompute_granularity is None"},
    {.recipe = "megatron",
     .setting = "loss",
     .value = "policy",
     .evidence = "slime/backends/megatron_utils/loss.py: a policy gradient"},
    {.recipe = "megatron",
     .setting = "attention",
     .value = "auto",
     .tasks = "sft|pretrain",
     .evidence = "megatron/training/arguments.py: attention_backend is auto"},
    {.recipe = "megatron",
     .setting = "attention",
     .value = "flash2",
     .evidence = "slime/scripts: --attention-backend flash"},
    {.recipe = "megatron",
     .setting = "accum",
     .value = "16",
     .evidence = "ours: a step of enough answers to compare"},
    {.setting = "strategy",
     .value = "ddp",
     .several = true,
     .packed = true,
     .evidence = "bytes of packed weights are not what FSDP shards; users of QLoRA run ddp"},
    {.setting = "strategy",
     .value = "fsdp2",
     .several = true,
     .evidence = "whatever does not fit on one GPU needs it, and it costs little"},
    {.setting = "strategy", .value = "single", .evidence = "one GPU shards nothing"},
    {.setting = "precision",
     .value = "mixed",
     .strategies = "fsdp1|fsdp2|zero1|zero2|zero3",
     .evidence = "what their examples do: fp32 shards, bf16 compute"},
    {.setting = "precision", .value = "bf16", .evidence = "as models are loaded by default"},
    {.setting = "optimizer", .value = "adamw", .evidence = "torch.optim.AdamW: foreach"},
    {.recipe = "trl",
     .setting = "reentrant",
     .value = "on",
     .recomputed = true,
     .adapted = true,
     .strategies = "zero3",
     .evidence = "trl 1.16, trainer/sft_trainer.py and the others: forced with PEFT and ZeRO-3"},
    {.recipe = "transformers",
     .setting = "reentrant",
     .value = "on",
     .recomputed = true,
     .versions = "4.41|4.42|4.45|4.46|4.48|4.49|4.57",
     .evidence = "transformers/modeling_utils.py of 4: gradient_checkpointing_kwargs are "
                 "use_reentrant True, and of 5 False"},
    {.recipe = "axolotl",
     .setting = "reentrant",
     .value = "on",
     .recomputed = true,
     .tasks = "sft|pretrain|reward",
     .evidence = "axolotl 0.19, utils/config/__init__.py: use_reentrant True unless rl is set"},
    {.recipe = "llamafactory",
     .setting = "reentrant",
     .value = "on",
     .recomputed = true,
     .strategies = "single|ddp|fsdp1|zero1|zero2|zero3",
     .evidence = "LLaMA-Factory 0.9.1 to 0.9.5, model/model_utils/checkpointing.py: "
                 "use_reentrant_gc is on, but under FSDP2"},
    {.recipe = "llamafactory",
     .setting = "overlap-comm",
     .value = "off",
     .strategies = "zero3",
     .evidence = "LLaMA-Factory 0.9.5, examples/deepspeed/ds_z3_config.json"},
    {.setting = "overlap-comm",
     .value = "on",
     .strategies = "zero3",
     .evidence = "deepspeed/runtime/zero/config.py, overlap_comm_valid: on in stage 3"},
};

const ptrdiff_t recipe_row_count = COUNT_OF(recipe_rows);

static bool unknown_version(enum recipe recipe, struct str version, struct str where,
                            struct error *e)
{
    char block[64];
    struct buf known = buf_over(block, sizeof block);
    const char *const *versions = recipe_defs[recipe].versions;
    for (int i = 0; i < RECIPE_MOST_VERSIONS && versions[i]; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", versions[i]);
    return FAIL(e, BAD_INPUT, where,
                "of %s the versions %.*s are known, each up to the next, not '%.*s'",
                recipe_defs[recipe].title, STR_ARGS(buf_str(&known)), STR_ARGS(str_short(version)));
}

// "4.46.1" to 4046001, or -1.
static int version_number(struct str s)
{
    enum { PARTS = 3, PART = 1000 };
    int number = 0;
    for (int i = 0; i < PARTS; i++) {
        struct str_cut cut = str_cut(s, '.');
        int part = 0;
        for (ptrdiff_t k = 0; k < cut.head.n; k++) {
            if (!char_is_digit(cut.head.p[k]) || k > 2)
                return -1;
            part = part * 10 + (cut.head.p[k] - '0');
        }
        if (i > 0 ? s.n == 0 && s.p : cut.head.n == 0)
            return -1;
        number = number * PART + part;
        s = cut.tail;
    }
    return s.n ? -1 : number;
}

static int newest_of(int recipe)
{
    const char *const *versions = recipe_defs[recipe].versions;
    int newest = 0;
    while (newest + 1 < RECIPE_MOST_VERSIONS && versions[newest + 1])
        newest++;
    return newest;
}

// The last that is not newer than what is asked for, or -1; of the newest only its patches.
static int version_reaching(int recipe, struct str asked)
{
    enum { PATCHES = 1000 };
    const char *const *versions = recipe_defs[recipe].versions;
    int wanted = version_number(asked), newest = newest_of(recipe), found = -1;
    for (int i = 0; i <= newest && version_number(str_from(versions[i])) <= wanted; i++)
        found = i;
    bool later = wanted / PATCHES > version_number(str_from(versions[newest])) / PATCHES;
    return later ? -1 : found;
}

static int recipe_named(struct str name)
{
    int found = 0;
    while (found < RECIPES && !str_is(name, recipe_words[found]))
        found++;
    return found;
}

bool recipe_parse(enum recipe *recipe, int *version, const struct setting *item, struct error *e)
{
    struct str_cut cut = str_cut(item->value, '@');
    int found = recipe_named(cut.head);
    ASSERT(found < RECIPES); // the table's check has been there
    int asked = cut.found ? version_reaching(found, cut.tail) : newest_of(found);
    if (asked < 0)
        return unknown_version((enum recipe)found, cut.tail, item->where, e);
    *recipe = (enum recipe)found;
    *version = asked;
    return true;
}

// As the rows have it.
static struct str recipe_version(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "recipe");
    struct str_cut cut = str_cut(item ? item->value : STR(""), '@');
    int found = recipe_named(cut.head), at = -1;
    if (cut.found && found < RECIPES)
        at = version_reaching(found, cut.tail);
    return at < 0 ? STR("") : str_from(recipe_defs[found].versions[at]);
}

static struct str recipe_name(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "recipe");
    return item ? str_cut(item->value, '@').head : STR("hf");
}

bool recipe_row_holds(const struct recipe_row *row, const struct settings *effective)
{
    const struct setting *item = settings_find_z(effective, row->setting);
    return item && row->recipe && str_is(recipe_name(effective), row->recipe) &&
           item->value.p == row->value; // a user's text lies elsewhere
}

// Without one, that of the rows for every recipe.
static bool has_strategy(const struct settings *s, const char *strategies, bool several)
{
    const struct setting *given = settings_find_z(s, "strategy");
    struct str strategy = given ? given->value : several ? STR("fsdp2") : STR("single");
    return words_have(strategies, '|', strategy);
}

static bool is_offloaded(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "offload");
    return item && !str_is(item->value, "off");
}

static bool has_adapters(const struct settings *s)
{
    return settings_find_z(s, "lora") != NULL;
}

static bool is_packed(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "quantize");
    return item && !str_is(item->value, "off");
}

static bool has_fused_loss(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "loss");
    return item && str_is(item->value, "liger");
}

static bool is_on(const struct settings *s, const char *name)
{
    const struct setting *item = settings_find_z(s, name);
    return item && str_is(item->value, "on");
}

// Without one, the table's.
static bool has_task(const struct settings *s, const char *tasks)
{
    const struct setting *item = settings_find_z(s, "task");
    return words_have(tasks, '|', item ? item->value : STR("sft"));
}

static bool is_recomputed(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "checkpointing");
    return !item || !str_is(item->value, "off");
}

static bool is_cut(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "tp");
    return item && !str_is(item->value, "1");
}

static bool is_stretched(const struct settings *s)
{
    return is_on(s, "tiled-mlp") || is_on(s, "checkpoint-offload");
}

static bool applies(const struct recipe_row *row, struct str recipe, const struct settings *s,
                    bool several)
{
    return (!row->recipe || str_is(recipe, row->recipe)) && !settings_find_z(s, row->setting) &&
           (!row->versions || words_have(row->versions, '|', recipe_version(s))) &&
           (several || !row->several) && (!several || !row->alone) &&
           (is_offloaded(s) || !row->offloaded) && (has_adapters(s) || !row->adapted) &&
           (is_packed(s) || !row->packed) && (has_fused_loss(s) || !row->fused) &&
           (is_stretched(s) || !row->stretched) && (is_cut(s) || !row->cut) &&
           (is_recomputed(s) || !row->recomputed) && (!row->tasks || has_task(s, row->tasks)) &&
           (!row->strategies || has_strategy(s, row->strategies, several));
}

static bool add_default(struct settings *s, const struct setting_def *def, const char *value,
                        struct error *e)
{
    struct str name = str_from(def->name);
    struct setting item = {name, str_from(value), str_join(s->arena, STR("--"), name)};
    return setting_check(def, &item, e) && settings_add(s, item, e);
}

bool recipe_fill(struct settings *effective, const struct settings *given, bool several,
                 struct error *e)
{
    for (ptrdiff_t i = 0; i < given->count; i++)
        if (!settings_add(effective, given->items[i], e))
            return false;
    struct str recipe = recipe_name(given);
    for (ptrdiff_t i = 0; i < recipe_row_count; i++)
        if (applies(&recipe_rows[i], recipe, effective, several) &&
            !add_default(effective, setting_def_find(str_from(recipe_rows[i].setting)),
                         recipe_rows[i].value, e))
            return false;
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        if (def->uses & USE_JOB && def->fallback && !settings_find_z(effective, def->name) &&
            !add_default(effective, def, def->fallback, e))
            return false;
    }
    return true;
}

// Over adapters and packed weights each recipe has words of its own for a precision; three have
// their own way to recompute.
static bool is_choice(const struct recipe_row *row, const struct settings *s)
{
    bool worded = str_is(str_from(row->setting), "precision") && (has_adapters(s) || is_packed(s));
    bool own = str_is(str_from(row->setting), "reentrant") &&
               words_have("trinity|verl|megatron", '|', recipe_name(s));
    return row->recipe && !worded && !own &&
           words_have("strategy|precision|checkpointing|reentrant|optimizer|expandable", '|',
                      str_from(row->setting));
}

bool recipe_choices(struct settings *more, const struct settings *s, struct str source,
                    bool several, struct error *e)
{
    struct settings all = settings_in(s->arena);
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (!settings_add(&all, s->items[i], e))
            return false;
    for (ptrdiff_t i = 0; i < recipe_row_count; i++) {
        const struct recipe_row *row = &recipe_rows[i];
        if (!is_choice(row, s) || !applies(row, source, &all, several))
            continue;
        struct setting item = {str_from(row->setting), str_copy(s->arena, str_from(row->value)),
                               source};
        if (!settings_add(more, item, e) || !settings_add(&all, item, e))
            return false;
    }
    return true;
}
