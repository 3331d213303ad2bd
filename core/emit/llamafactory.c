// LLaMA-Factory 0.9.5: one YAML for its command line, whose parser refuses keys it does not know
// (hparams/parser.py). Under fsdp Accelerate launches it, with a file of its own; else
// llamafactory-cli, which starts torchrun and turns expandable segments on unless OPTIM_TORCH is 0.
#include "core/base/num.h"
#include "core/emit/emit.h"

static const struct row rows[] = {
    {"", ROW_NOTE,
     .note =
         "LLaMA-Factory, @task@: @name@, @context@ tokens a sequence, on @gpus@ x @gpu@; @step@.\n"
         "@predicted@\n@needs@"},
    {"model_name_or_path", ROW_TEXT, "@model@"},
    {"flash_attn", ROW_TEXT, "auto", 0, IS_FLASH2 | IS_EAGER | IS_SDPA},
    {"flash_attn", ROW_TEXT, "sdpa", IS_SDPA},
    {"flash_attn", ROW_TEXT, "fa2", IS_FLASH2},
    {"flash_attn", ROW_TEXT, "disabled", IS_EAGER},
    {"enable_liger_kernel", ROW_LITERAL, "true", IS_LIGER, 0, "Layer kernels and the fused loss."},
    {"quantization_method", ROW_TEXT, "bnb", IS_NF4},
    {"quantization_bit", ROW_LITERAL, "4", IS_NF4},
    {"double_quantization", ROW_LITERAL, "true", IS_NF4, IS_NF4_SINGLE},
    {"double_quantization", ROW_LITERAL, "false", IS_NF4_SINGLE},
    {"disable_gradient_checkpointing", ROW_LITERAL, "false", IS_CHECKPOINTING},
    {"disable_gradient_checkpointing", ROW_LITERAL, "true", 0, IS_CHECKPOINTING},
    {"use_reentrant_gc", ROW_TRAIT, NULL, IS_CHECKPOINTING, 0, NULL, IS_REENTRANT},

    {"stage", ROW_TEXT, "sft", IS_SFT},
    {"stage", ROW_TEXT, "rm", IS_REWARD},
    {"stage", ROW_TEXT, "dpo", IS_DPO},
    {"stage", ROW_TEXT, "kto", IS_KTO},
    {"do_train", ROW_LITERAL, "true"},
    {"finetuning_type", ROW_TEXT, "full", 0, IS_LORA},
    {"finetuning_type", ROW_TEXT, "lora", IS_LORA},
    {"lora_rank", ROW_LITERAL, "@lora@", IS_LORA},
    {"lora_dropout", ROW_LITERAL, "0.0", IS_LORA, IS_LORA_DROPOUT},
    {"lora_dropout", ROW_LITERAL, "0.05", IS_LORA_DROPOUT},
    {"use_dora", ROW_LITERAL, "true", IS_DORA},
    {"lora_target", ROW_TEXT, "all", IS_LORA, IS_LORA_TARGETS},
    {"lora_target", ROW_TEXT, "@lora_target@", IS_LORA | IS_LORA_TARGETS},
    {"additional_target", ROW_TEXT, "@additional_target@", IS_LORA_WHOLE},
    {"pure_bf16", ROW_LITERAL, "true", IS_BF16, IS_LORA, "bf16 weights, and nothing to cast."},
    {"bf16", ROW_LITERAL, "true", IS_BF16 | IS_LORA, 0,
     "The frozen model stays in bf16; adapters are fp32, products bf16."},
    {"bf16", ROW_LITERAL, "true", 0, IS_BF16, "fp32 weights, bf16 compute."},

    {"dataset_dir", ROW_TEXT, ".", 0, 0, "Where dataset_info.json is."},
    {"dataset", ROW_TEXT, "data", 0, IS_NO_DATASET, "Its columns are in dataset_info.json."},
    {"dataset", ROW_TEXT, "data", IS_NO_DATASET, 0,
     "An example: put your own into dataset_info.json."},
    {"cutoff_len", ROW_LITERAL, "@context@"},
    {"template", ROW_TEXT, "@template@", IS_VISION, 0, "How it reads images, too."},
    {"image_max_pixels", ROW_LITERAL, "@image_pixels@", IS_IMAGES, 0,
     "@images@ a row of @image-size@ pixels are meant; larger ones are made smaller."},
    {"freeze_vision_tower", ROW_TRAIT, NULL, IS_VISION, 0, NULL, IS_FROZEN_VISION},
    {"freeze_multi_modal_projector", ROW_TRAIT, NULL, IS_VISION, 0, NULL, IS_FROZEN_VISION},
    {"freeze_language_model", ROW_TRAIT, NULL, IS_VISION, 0, NULL, IS_FROZEN_LANGUAGE},
    {"packing", ROW_LITERAL, "false", IS_SFT | IS_IMAGES, 0,
     "Rows with images are padded to the longest of their batch."},
    {"packing", ROW_LITERAL, "true", IS_SFT, IS_IMAGES,
     "Rows are joined until they are as long as cutoff_len: what is predicted."},

    {"per_device_train_batch_size", ROW_LITERAL, "@batch@", IS_PAIRS, 0,
     "Pairs; each is two rows."},
    {"per_device_train_batch_size", ROW_LITERAL, "@batch@", 0, IS_PAIRS},
    {"gradient_accumulation_steps", ROW_LITERAL, "@accum@"},
    {"accelerator_config.gradient_accumulation_kwargs.sync_each_batch", ROW_LITERAL, "true",
     IS_FSDP | IS_ACCUMULATES | IS_SYNCED, 0,
     "Without it every GPU keeps the whole gradient between micro-batches."},
    {"deepspeed", ROW_TEXT, "deepspeed.json", IS_ZERO},
    {"optim", ROW_TEXT, "adamw_torch", IS_ADAMW, IS_FUSED},
    {"optim", ROW_TEXT, "adamw_torch_fused", IS_FUSED},
    {"optim", ROW_TEXT, "sgd", IS_SGD},
    {"optim", ROW_TEXT, "adafactor", IS_ADAFACTOR},
    {"optim", ROW_TEXT, "adamw_8bit", IS_8BIT, IS_PAGED},
    {"optim", ROW_TEXT, "paged_adamw_8bit", IS_8BIT | IS_PAGED},
    {"optim", ROW_TEXT, "paged_adamw_32bit", IS_PAGED, IS_8BIT},
    {"max_grad_norm", ROW_LITERAL, "1.0"},
    {"learning_rate", ROW_LITERAL, "1.0e-4", IS_LORA},
    {"learning_rate", ROW_LITERAL, "1.0e-5", 0, IS_LORA},
    {"num_train_epochs", ROW_LITERAL, "1"},
    {"logging_steps", ROW_LITERAL, "10"},
    {"save_steps", ROW_LITERAL, "500"},
    {"output_dir", ROW_TEXT, "@save-to@"},
    {"report_to", ROW_TEXT, "none"},
};

static const struct row data_rows[] = {
    {"data.file_name", ROW_TEXT, "@dataset@", IS_FILE_DATASET},
    {"data.hf_hub_url", ROW_TEXT, "@dataset@", 0, IS_FILE_DATASET | IS_NO_DATASET},
    {"data.hf_hub_url", ROW_TEXT, "llamafactory/alpaca_en", IS_NO_DATASET | IS_SFT, IS_IMAGES},
    {"data.hf_hub_url", ROW_TEXT, "BUAADreamer/llava-en-zh-300k",
     IS_NO_DATASET | IS_SFT | IS_IMAGES},
    {"data.subset", ROW_TEXT, "en", IS_NO_DATASET | IS_SFT | IS_IMAGES},
    {"data.formatting", ROW_TEXT, "sharegpt", IS_SFT | IS_IMAGES},
    {"data.columns.messages", ROW_TEXT, "messages", IS_SFT | IS_IMAGES},
    {"data.columns.images", ROW_TEXT, "images", IS_SFT | IS_IMAGES},
    {"data.tags.role_tag", ROW_TEXT, "role", IS_SFT | IS_IMAGES},
    {"data.tags.content_tag", ROW_TEXT, "content", IS_SFT | IS_IMAGES},
    {"data.tags.user_tag", ROW_TEXT, "user", IS_SFT | IS_IMAGES},
    {"data.tags.assistant_tag", ROW_TEXT, "assistant", IS_SFT | IS_IMAGES},
    {"data.hf_hub_url", ROW_TEXT, "llamafactory/ultrafeedback_binarized", IS_NO_DATASET | IS_PAIRS},
    {"data.hf_hub_url", ROW_TEXT, "argilla/ultrafeedback-binarized-preferences-cleaned-kto",
     IS_NO_DATASET | IS_KTO},
    {"data.ranking", ROW_LITERAL, "true", IS_PAIRS},
    {"data.columns.prompt", ROW_TEXT, "instruction", 0, IS_KTO | IS_IMAGES},
    {"data.columns.query", ROW_TEXT, "input", IS_SFT, IS_IMAGES},
    {"data.columns.response", ROW_TEXT, "output", IS_SFT, IS_IMAGES},
    {"data.columns.chosen", ROW_TEXT, "chosen", IS_PAIRS},
    {"data.columns.rejected", ROW_TEXT, "rejected", IS_PAIRS},
    {"data.columns.prompt", ROW_TEXT, "prompt", IS_KTO},
    {"data.columns.response", ROW_TEXT, "completion", IS_KTO},
    {"data.columns.kto_tag", ROW_TEXT, "label", IS_KTO},
};

static const struct line head_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# LLaMA-Factory, @task@: @name@, @context@ tokens a sequence; @step@.\n"
             "# @predicted@\n"
             "# Arguments given here win over the file: bash launch.sh max_steps=3"},
    {IS_IMAGES, 0,
     "# Predicted with --images @images@\n# Predicted with --image-size @image-size@"},
    {IS_FROZEN_VISION, 0, "# Predicted with --freeze vision"},
    {IS_FROZEN_LANGUAGE, 0, "# Predicted with --freeze language"},
};

static const struct line run_lines[] = {
    {IS_FSDP, 0,
     "accelerate launch --config_file accelerate.yaml \"${launch[@]}\" \\\n"
     "    -m llamafactory.launcher llamafactory.yaml \"$@\""},
    {IS_EXPANDABLE, IS_FSDP, "export OPTIM_TORCH=1"},
    {0, IS_FSDP | IS_EXPANDABLE,
     "# Else llamafactory-cli turns expandable segments on for torchrun.\n"
     "export OPTIM_TORCH=0"},
    {IS_NODES, IS_FSDP,
     ": \"${MASTER_ADDR:?set it to the address of the first node}\"\n"
     ": \"${NODE_RANK:?set it to 0 on the first node, 1 on the second, and so on}\"\n"
     "export MASTER_ADDR NODE_RANK MASTER_PORT=\"${MASTER_PORT:-29500}\"\n"
     "export NNODES=@nodes@"},
    {IS_SEVERAL, IS_FSDP, "export FORCE_TORCHRUN=1\nexport NPROC_PER_NODE=@gpus_per_node@"},
    {IS_ZERO, IS_SEVERAL, "export FORCE_TORCHRUN=1\nexport NPROC_PER_NODE=1"},
    {0, IS_FSDP, "llamafactory-cli train llamafactory.yaml \"$@\""},
};

// data/template.py of 0.9.5.
static struct str template_of(const struct model *m)
{
    static const struct {
        const char *family, *name;
    } templates[] = {{"qwen3_vl", "qwen3_vl"},   {"qwen3_vl_moe", "qwen3_vl"},
                     {"qwen2_5_vl", "qwen2_vl"}, {"gemma3", "gemma3"},
                     {"qwen3_5", "qwen3_5"},     {"qwen3_5_moe", "qwen3_5"}};
    for (ptrdiff_t i = 0; i < COUNT_OF(templates); i++)
        if (str_is(str_from(m->family->model_type), templates[i].family))
            return str_from(templates[i].name);
    return STR_NONE;
}

static bool prepare(struct draft *j, struct error *e)
{
    struct str dataset = draft_text(j, "dataset");
    bool file = str_ends(dataset, STR(".json")) || str_ends(dataset, STR(".jsonl"));
    j->traits |= file ? IS_FILE_DATASET : 0;
    draft_fact(j, "lora_target", draft_adapted(j, ","));
    draft_fact(j, "additional_target", draft_whole(j));
    draft_count(j, "image_pixels", sat_mul(j->job->image_width, j->job->image_height));
    draft_fact(j, "template", template_of(&j->job->model));
    return draft_deepspeed(j, e);
}

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf launch = buf_in(j->arena);
    emit_yaml(files, j, "llamafactory.yaml", rows, COUNT_OF(rows));
    emit_json(files, j, "dataset_info.json", data_rows, COUNT_OF(data_rows));
    if (draft_is(j, IS_FSDP, 0))
        emit_accelerate_yaml(files, j);
    if (draft_is(j, IS_ZERO, 0))
        emit_deepspeed_json(files, j);
    lines_into(&launch, j, head_lines, COUNT_OF(head_lines));
    lines_into(&launch, j, environment_lines, environment_line_count);
    if (draft_is(j, IS_FSDP, 0))
        lines_into(&launch, j, node_lines, node_line_count);
    lines_into(&launch, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&launch));
    emit_yarn_script(files, j);
}

const struct writer writer_llamafactory = {
    .prepare = prepare,
    .emit = emit,
};
