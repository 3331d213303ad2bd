// TRL 1.10 to 1.14 (1.16 reads the same files; 1.14.1 is the first whose scripts hand
// resume_from_checkpoint on to the trainer): arguments in the YAML that its own command line
// takes, launched by Accelerate. Its training scripts ignore keys they do not know, so every key
// here is a field of the task's configuration class or of TRL's ModelConfig and ScriptArguments.
#include <string.h>

#include "core/base/num.h"
#include "core/emit/emit.h"

#define ANY_FILE (IS_FILE_DATASET | IS_NO_DATASET)

static const struct row rows[] = {
    {"", ROW_NOTE,
     .note = "TRL, @task@: @name@, @context@ tokens a sequence, on @gpus@ x @gpu@; @step@.\n"
             "@predicted@\n@needs@"},
    {"model_name_or_path", ROW_TEXT, "@model@"},
    {"dtype", ROW_TEXT, "bfloat16", IS_BF16, 0, "bf16 weights, and nothing to cast."},
    {"dtype", ROW_TEXT, "bfloat16", IS_BF16_AUTOCAST, IS_LORA, "bf16 weights, under autocast."},
    {"dtype", ROW_TEXT, "bfloat16", IS_BF16_AUTOCAST | IS_LORA, 0,
     "The frozen model in bf16; adapters are fp32, products bf16."},
    {"dtype", ROW_TEXT, "bfloat16", IS_ZERO, IS_FP16, "DeepSpeed keeps the fp32 masters."},
    {"dtype", ROW_TEXT, "float16", IS_ZERO | IS_FP16, 0, "DeepSpeed keeps the fp32 masters."},
    {"dtype", ROW_TEXT, "bfloat16", IS_NF4 | IS_FSDP2, 0,
     "As packed weights are stored: fsdp casts what is of another type."},
    {"dtype", ROW_TEXT, "float32", 0, IS_BF16 | IS_BF16_AUTOCAST | IS_ZERO | IS_FP16 | IS_NF4,
     "fp32 weights, bf16 compute."},
    {"dtype", ROW_TEXT, "float32", IS_FP16, IS_ZERO,
     "fp32 weights, fp16 compute; torch's scaler refuses gradients in fp16."},
    {"bf16", ROW_LITERAL, "false", IS_BF16},
    {"bf16", ROW_LITERAL, "false", IS_FP16},
    {"bf16", ROW_LITERAL, "true", 0, IS_BF16 | IS_FP16},
    {"fp16", ROW_LITERAL, "true", IS_FP16},
    {"attn_implementation", ROW_TEXT, "@attn_implementation@", 0, IS_FLASH2 | IS_EAGER},
    {"attn_implementation", ROW_TEXT, "flash_attention_2", IS_FLASH2},
    {"attn_implementation", ROW_TEXT, "eager", IS_EAGER, 0, "With scores of all pairs of tokens."},
    {"model_init_kwargs.distributed_config.tp_size", ROW_LITERAL, "@tp@", IS_TP, 0,
     "Every GPU has a part of each layer's matrices, and reads the same sequences."},
    {"teacher_model_name_or_path", ROW_TEXT, "@teacher@", IS_OPD, 0,
     "Beside the student, on every GPU."},
    {"teacher_model_init_kwargs.dtype", ROW_TEXT, "bfloat16", IS_OPD, 0,
     "Without it the teacher would be loaded in the student's dtype."},

    {"datasets.0.path", ROW_TEXT, "json", IS_FILE_DATASET},
    {"datasets.0.data_files", ROW_TEXT, "@dataset@", IS_FILE_DATASET},
    {"dataset_name", ROW_TEXT, "@dataset@", 0, ANY_FILE},
    {"dataset_name", ROW_TEXT, "trl-lib/Capybara", IS_NO_DATASET | IS_SFT, IS_IMAGES,
     "An example: put your own here."},
    {"dataset_name", ROW_TEXT, "trl-lib/ultrafeedback_binarized", IS_NO_DATASET | IS_PAIRS,
     IS_IMAGES, "An example: put your own here."},
    {"dataset_name", ROW_TEXT, "trl-lib/kto-mix-14k", IS_NO_DATASET | IS_COMPARED, IS_PAIRS,
     "An example: put your own here."},
    {"dataset_name", ROW_TEXT, "HuggingFaceH4/llava-instruct-mix-vsft",
     IS_NO_DATASET | IS_SFT | IS_IMAGES, 0, "An example with images: put your own here."},
    {"dataset_name", ROW_TEXT, "HuggingFaceH4/rlaif-v_formatted",
     IS_NO_DATASET | IS_DPO | IS_IMAGES, 0, "An example with images: put your own here."},
    {"dataset_name", ROW_TEXT, "trl-lib/DeepMath-103K", IS_NO_DATASET | IS_ROLLOUT, IS_OPD,
     "An example: put your own here."},
    {"dataset_name", ROW_TEXT, "trl-lib/ultrafeedback-prompt", IS_NO_DATASET | IS_OPD, 0,
     "An example: put your own here."},

    {"max_length", ROW_LITERAL, "@context@", 0, IS_ROLLOUT | IS_IMAGES},
    {"", ROW_NOTE, NULL, IS_IMAGES, 0,
     "Predicted for @images@ images a row of @image-size@ pixels, two markers each: what the data "
     "has decides."},
    {"max_length", ROW_LITERAL, "null", IS_IMAGES, IS_ROLLOUT,
     "Nothing is cut: a cut may go through an image's tokens. Rows must be no longer than "
     "@context@ "
     "tokens."},
    {"max_completion_length", ROW_LITERAL, "@response@", IS_ROLLOUT, 0,
     "Of the @context@ tokens; the rest is for prompts, which TRL does not cut here."},
    {"packing", ROW_LITERAL, "false", IS_SFT, IS_PACKED | IS_PADDED,
     "Rows are padded to the longest of their batch."},
    {"packing", ROW_LITERAL, "false", IS_SFT | IS_PADDED, 0,
     "Rows are padded to the longest of their batch: the prediction has the mask that this takes."},
    {"packing", ROW_LITERAL, "true", IS_SFT | IS_PACKED, 0,
     "The rows of a batch follow each other; with sdpa a mask of all pairs keeps samples apart."},
    {"pad_to_multiple_of", ROW_LITERAL, "@pad@", IS_SP, 0,
     "Every rank takes an equal share of a sequence."},
    {"pad_to_multiple_of", ROW_LITERAL, "@pad@", IS_CP, 0,
     "Ring attention cuts a sequence into 2 x cp pieces."},
    {"loss_type", ROW_TEXT, "nll", IS_SFT, IS_CHUNKED,
     "All logits at once, before TRL 1.15; later ones compute it in tiles and need less."},
    {"loss_type", ROW_TEXT, "chunked_nll", IS_SFT | IS_CHUNKED, 0,
     "The head and the loss in chunks of 256 tokens; from 1.15 on, TRL calls this nll too."},
    {"use_liger_kernel", ROW_LITERAL, "@use_liger_kernel@"},
    {"precompute_ref_log_probs", ROW_LITERAL, "true", IS_COMPARED | IS_PRECOMPUTED, 0,
     "The model itself is asked once, before training, and no reference is held."},
    {"precompute_ref_log_probs", ROW_LITERAL, "false", IS_COMPARED, IS_PRECOMPUTED,
     "A reference model is held beside the trained one; true would save its memory."},
    {"num_generations", ROW_LITERAL, "@repeat_times@", IS_ROLLOUT, IS_OPD,
     "Must divide the @sequences@ completions of a step."},
    {"beta", ROW_LITERAL, "0.0", IS_ROLLOUT, IS_KL | IS_OPD,
     "Without a KL term no reference model is held."},
    {"beta", ROW_LITERAL, "@beta@", IS_KL, 0, "A reference model is held for the KL term."},
    {"reward_funcs.0", ROW_TEXT, "accuracy_reward", IS_ROLLOUT, IS_OPD},
    {"use_vllm", ROW_LITERAL, "false", IS_ROLLOUT, 0,
     "Answers are generated by transformers; vLLM would take GPU memory that is not predicted."},

    {"per_device_train_batch_size", ROW_LITERAL, "@batch@", IS_PAIRS, 0,
     "Pairs; each is two rows, and @micro_rows@ rows are computed at once."},
    {"per_device_train_batch_size", ROW_LITERAL, "@batch@", 0, IS_PAIRS},
    {"gradient_accumulation_steps", ROW_LITERAL, "@accum@"},
    {"accelerator_config.gradient_accumulation_kwargs.sync_each_batch", ROW_LITERAL, "true",
     IS_FSDP | IS_ACCUMULATES | IS_SYNCED, 0,
     "Without it every GPU keeps the whole gradient between micro-batches."},
    {"gradient_checkpointing", ROW_TRAIT, NULL, 0, 0, NULL, IS_CHECKPOINTING},
    {"gradient_checkpointing_kwargs.use_reentrant", ROW_TRAIT, NULL, IS_CHECKPOINTING, 0, NULL,
     IS_REENTRANT},
    {"ddp_find_unused_parameters", ROW_LITERAL, "false", IS_REENTRANT | IS_DDP | IS_LORA, 0,
     "Without it ddp finds parameters that are ready twice, and the run dies."},
    {"optim", ROW_TEXT, "adamw_torch", IS_ADAMW, IS_FUSED},
    {"optim", ROW_TEXT, "adamw_torch_fused", IS_FUSED},
    {"optim", ROW_TEXT, "sgd", IS_SGD},
    {"optim", ROW_TEXT, "adafactor", IS_ADAFACTOR},
    {"optim", ROW_TEXT, "adamw_8bit", IS_8BIT, IS_PAGED},
    {"optim", ROW_TEXT, "paged_adamw_8bit", IS_8BIT | IS_PAGED},
    {"optim", ROW_TEXT, "paged_adamw_32bit", IS_PAGED, IS_8BIT},
    {"max_grad_norm", ROW_LITERAL, "1.0"},
    {"learning_rate", ROW_LITERAL, "2.0e-5", IS_SFT},
    {"learning_rate", ROW_LITERAL, "1.0e-5", IS_REWARD},
    {"learning_rate", ROW_LITERAL, "1.0e-6", 0, IS_SFT | IS_REWARD},
    {"num_train_epochs", ROW_LITERAL, "1"},
    {"logging_steps", ROW_LITERAL, "10"},
    {"eval_strategy", ROW_TEXT, "steps", IS_EVALUATED},
    {"eval_steps", ROW_LITERAL, "500", IS_EVALUATED},
    {"per_device_eval_batch_size", ROW_LITERAL, "@eval-batch@", IS_EVALUATED},
    {"save_steps", ROW_LITERAL, "500"},
    {"output_dir", ROW_TEXT, "@save-to@"},
    {"report_to", ROW_TEXT, "none"},
    {"use_peft", ROW_LITERAL, "true", IS_LORA},
    {"lora_r", ROW_LITERAL, "@lora@", IS_LORA},
    {"lora_dropout", ROW_LITERAL, "0.0", IS_LORA, IS_LORA_DROPOUT,
     "Not TRL's 0.05, which --lora-dropout on is."},
    {"lora_dropout", ROW_LITERAL, "0.05", IS_LORA_DROPOUT},
    {"use_dora", ROW_LITERAL, "true", IS_DORA},
    {"lora_task_type", ROW_TEXT, "SEQ_CLS", IS_LORA | IS_REWARD},
};

static const struct row packed_rows[] = {
    {"load_in_4bit", ROW_LITERAL, "true"},
    {"use_bnb_nested_quant", ROW_LITERAL, "true", 0, IS_NF4_SINGLE},
    {"use_bnb_nested_quant", ROW_LITERAL, "false", IS_NF4_SINGLE},
    {"bnb_4bit_quant_storage", ROW_TEXT, "bfloat16", IS_FSDP2, 0,
     "Without it every GPU keeps all packed weights."},
    {"bnb_4bit_quant_storage", ROW_TEXT, "bfloat16", IS_ZERO3},
};

static const char *const target_modules[TARGET_COUNT] = {
    [TARGET_Q] = "q_proj",       [TARGET_K] = "k_proj",       [TARGET_V] = "v_proj",
    [TARGET_O] = "o_proj",       [TARGET_GATE] = "gate_proj", [TARGET_UP] = "up_proj",
    [TARGET_DOWN] = "down_proj",
};

struct more_rows {
    struct row rows[COUNT_OF(rows) + COUNT_OF(packed_rows) + TARGET_COUNT + WHOLE_HEAD + 2];
    ptrdiff_t count;
};

static void add_module(struct more_rows *all, struct arena *a, const char *list, int number,
                       const char *module)
{
    struct str path = str_format(a, "%s.%d", list, number);
    all->rows[all->count++] = (struct row){str_z(a, path), ROW_TEXT, module};
}

// TRL takes a list of layers; all of them are one word.
static void add_modules(struct more_rows *all, const struct draft *j)
{
    static const char list[] = "lora_target_modules";
    int number = 0;
    if (j->job->lora_targets == LORA_ALL_TARGETS) {
        add_module(all, j->arena, list, 0, "all-linear");
        return;
    }
    for (int i = 0; i < TARGET_COUNT; i++)
        if (j->job->lora_targets & 1u << i)
            add_module(all, j->arena, list, number++, target_modules[i]);
}

static void add_whole_modules(struct more_rows *all, const struct draft *j)
{
    struct words names = words_of(str_z(j->arena, draft_whole(j)), ',');
    for (int i = 0; words_next(&names); i++)
        add_module(all, j->arena, "lora_modules_to_save", i, str_z(j->arena, names.word));
}

static void emit_arguments(struct emit_files *files, const struct draft *j, const char *name)
{
    struct more_rows all = {.count = COUNT_OF(rows)};
    memcpy(all.rows, rows, sizeof rows);
    if (j->job->lora_rank)
        add_modules(&all, j);
    add_whole_modules(&all, j);
    for (ptrdiff_t i = 0; j->job->packed && i < COUNT_OF(packed_rows); i++)
        all.rows[all.count++] = packed_rows[i];
    if (j->job->activation_offload)
        all.rows[all.count++] = (struct row){"activation_offloading", ROW_LITERAL, "true"};
    emit_yaml(files, j, name, all.rows, all.count);
}

static const struct line head_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# TRL, @task@: @name@, @context@ tokens a sequence; @step@.\n"
             "# @predicted@\n"
             "# Arguments given here win over the file: bash launch.sh --max_steps 3"},
    {IS_IMAGES, 0,
     "# Predicted with --images @images@\n# Predicted with --image-size @image-size@"},
    {IS_IMAGES, IS_ROLLOUT, "# Predicted with --context @context@"}, // which cuts nothing here
    {IS_ROLLOUT, 0, "# Predicted with --context @context@"},         // which cuts answers alone
    {IS_PADDED, 0, "# Predicted with --batching padded"}, // the data's lengths, which no key says
};

static const struct line run_lines[] = {
    {.text =
         "# TRL 1.14.1 and later go on from the newest checkpoint; earlier ones take the option\n"
         "# and begin again."},
    {.text = "save=@save-to@\n"
             "newest=\n"
             "[ ! -d \"$save\" ] ||\n"
             "    newest=$(find \"$save\" -maxdepth 1 -name 'checkpoint-*' | sort -V | tail -n 1)\n"
             "[ -z \"$newest\" ] || set -- --resume_from_checkpoint \"$newest\" \"$@\""},
    {.text = "trl @trl_task@ --config @trl_task@.yaml --accelerate_config accelerate.yaml "
             "\"${launch[@]}\" \"$@\""},
};

// trl/scripts/sft.py of 1.16 trains all of the model, or adapters.
#define NO_FREEZING                                                                            \
    "trl's commands have no word for freezing a part of a model: --for llamafactory or --for " \
    "axolotl has"

static const struct refusal refusals[] = {
    {IS_IMAGES | IS_ROLLOUT | IS_NO_DATASET, 0, "dataset",
     "GRPO with images needs --dataset with prompts and images"},
    {IS_FROZEN_VISION, 0, "freeze", NO_FREEZING},
    {IS_FROZEN_LANGUAGE, 0, "freeze", NO_FREEZING},
};

static bool ends_as_file(struct str dataset)
{
    return str_ends(dataset, STR(".json")) || str_ends(dataset, STR(".jsonl"));
}

static bool prepare(struct draft *j, struct error *e)
{
    j->traits |= ends_as_file(draft_text(j, "dataset")) ? IS_FILE_DATASET : 0;
    bool liger = j->job->layer_kernels == KERNELS_OF_LIGER; // the loss stays TRL's own in 1.16
    draft_fact(j, "use_liger_kernel", liger ? STR("true") : STR("false"));
    const struct setting *beta = settings_find_z(j->settings, "beta");
    draft_fact(j, "beta", beta ? beta->value : STR("0.05")); // rloo_config.py
    bool taught = draft_is(j, IS_OPD, 0);                    // trl/scripts/distillation.py
    draft_fact(j, "trl_task", taught ? STR("distillation") : draft_text(j, "task"));
    const struct setting *samples = settings_find_z(j->settings, "samples");
    if (taught && !j->job->teacher)
        return FAIL(e, BAD_INPUT, STR("--teacher"), "distill needs a teacher, such as Qwen3-8B");
    if (taught && samples)
        return FAIL(e, BAD_INPUT, samples->where,
                    "TRL's distillation generates one answer a prompt; leave samples out");
    return draft_deepspeed(j, e) && (taught || !draft_is(j, IS_ROLLOUT, 0) || draft_samples(j, e));
}

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf launch = buf_in(j->arena);
    struct str config = draft_expand(j, STR("@trl_task@.yaml"), EXPAND_PLAIN);
    emit_arguments(files, j, str_z(j->arena, config));
    emit_accelerate_yaml(files, j);
    lines_into(&launch, j, head_lines, COUNT_OF(head_lines));
    if (j->job->prompt && !draft_is(j, IS_ROLLOUT, 0)) // which the data says, and no key
        lines_into(&launch, j, &(struct line){.text = "# Predicted with --prompt @prompt@"}, 1);
    lines_into(&launch, j, environment_lines, environment_line_count);
    lines_into(&launch, j, node_lines, node_line_count);
    lines_into(&launch, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&launch));
    emit_yarn_script(files, j);
}

const struct writer writer_trl = {
    .refusals = refusals,
    .refusal_count = COUNT_OF(refusals),
    .prepare = prepare,
    .emit = emit,
};
