// axolotl 0.19: one YAML, validated by its pydantic models (utils/schemas), which ignore keys they
// do not know: every key here is a field of one. It sets fsdp and DeepSpeed up by itself.
#include "core/emit/emit.h"

static const struct row rows[] = {
    {"", ROW_NOTE,
     .note = "axolotl, @task@: @name@, @context@ tokens a sequence, on @gpus@ x @gpu@; @step@.\n"
             "@predicted@\n@needs@"},
    {"base_model", ROW_TEXT, "@model@"},
    {"model_type", ROW_TEXT, "AutoModelForSequenceClassification", IS_REWARD},
    {"num_labels", ROW_LITERAL, "1", IS_REWARD},
    {"reward_model", ROW_LITERAL, "true", IS_REWARD},
    {"rl", ROW_TEXT, "dpo", IS_DPO},
    {"rl", ROW_TEXT, "kto", IS_KTO},
    {"bf16", ROW_LITERAL, "true", IS_BF16, 0, "axolotl loads the weights in bf16, too."},
    {"bf16", ROW_LITERAL, "true", 0, IS_BF16, "fp32 shards or masters, bf16 compute."},
    {"attn_implementation", ROW_TEXT, "flash_attention_2", IS_FLASH2},
    {"attn_implementation", ROW_TEXT, "eager", IS_EAGER},
    {"attn_implementation", ROW_TEXT, "sdpa", 0, IS_FLASH2 | IS_EAGER},
    {"plugins.0", ROW_TEXT, "axolotl.integrations.liger.LigerPlugin", IS_LIGER},
    {"plugins.0", ROW_TEXT, "axolotl.integrations.liger.LigerPlugin", IS_LIGER_LAYERS, IS_LIGER},
    {"liger_rope", ROW_LITERAL, "true", IS_LIGER_LAYERS},
    {"liger_rms_norm", ROW_LITERAL, "true", IS_LIGER_LAYERS},
    {"liger_glu_activation", ROW_LITERAL, "true", IS_LIGER_LAYERS},
    {"liger_fused_linear_cross_entropy", ROW_LITERAL, "true", IS_LIGER},
    {"adapter", ROW_TEXT, "lora", IS_LORA, IS_NF4},
    {"adapter", ROW_TEXT, "qlora", IS_LORA | IS_NF4},
    {"load_in_4bit", ROW_LITERAL, "true", IS_NF4},
    {"lora_r", ROW_LITERAL, "@lora@", IS_LORA},
    {"lora_alpha", ROW_LITERAL, "@lora@", IS_LORA},
    {"lora_dropout", ROW_LITERAL, "0.0", IS_LORA, IS_LORA_DROPOUT},
    {"lora_dropout", ROW_LITERAL, "0.05", IS_LORA_DROPOUT},
    {"peft_use_dora", ROW_LITERAL, "true", IS_DORA},
    {"lora_target_linear", ROW_LITERAL, "true", IS_LORA, IS_LORA_TARGETS},
    {"lora_mlp_kernel", ROW_LITERAL, "false", IS_LORA, 0,
     "axolotl's own kernels for adapters, which are not predicted; true may need less."},
    {"lora_qkv_kernel", ROW_LITERAL, "false", IS_LORA},
    {"lora_o_kernel", ROW_LITERAL, "false", IS_LORA},
    {"lora_embedding_kernel", ROW_LITERAL, "false", IS_LORA},

    {"datasets.0.path", ROW_TEXT, "@dataset@", 0, IS_NO_DATASET},
    {"datasets.0.path", ROW_TEXT, "trl-lib/Capybara", IS_NO_DATASET | IS_SFT, IS_IMAGES,
     "An example: put your own here."},
    {"datasets.0.path", ROW_TEXT, "HuggingFaceH4/llava-instruct-mix-vsft",
     IS_NO_DATASET | IS_SFT | IS_IMAGES, 0, "An example with images: put your own here."},
    {"datasets.0.path", ROW_TEXT, "trl-lib/ultrafeedback_binarized", IS_NO_DATASET | IS_PAIRS, 0,
     "An example: put your own here."},
    {"datasets.0.path", ROW_TEXT, "argilla/ultrafeedback-binarized-preferences-cleaned-kto",
     IS_NO_DATASET | IS_KTO, 0, "An example: put your own here."},
    {"datasets.0.ds_type", ROW_TEXT, "json", IS_FILE_DATASET},
    {"datasets.0.split", ROW_TEXT, "train"},
    {"datasets.0.type", ROW_TEXT, "chat_template", IS_SFT},
    {"datasets.0.field_messages", ROW_TEXT, "messages", IS_SFT},
    {"datasets.0.type", ROW_TEXT, "chat_template.default", IS_DPO},
    {"datasets.0.type", ROW_TEXT, "bradley_terry.chat_template", IS_REWARD},
    {"datasets.0.type", ROW_TEXT, "chatml.argilla", IS_KTO},
    {"processor_type", ROW_TEXT, "AutoProcessor", IS_IMAGES},
    {"chat_template", ROW_TEXT, "tokenizer_default", IS_IMAGES},
    {"image_size.0", ROW_LITERAL, "@image_width@", IS_IMAGES, 0,
     "@images@ a row of this size are meant."},
    {"image_size.1", ROW_LITERAL, "@image_height@", IS_IMAGES},
    {"image_resize_algorithm", ROW_TEXT, "bilinear", IS_IMAGES},
    {"skip_prepare_dataset", ROW_LITERAL, "true", IS_IMAGES},
    {"remove_unused_columns", ROW_LITERAL, "false", IS_IMAGES},
    {"unfrozen_parameters.0", ROW_TEXT, "^model.language_model", IS_FROZEN_VISION, 0,
     "All else, the tower and its mergers, is frozen."},
    {"unfrozen_parameters.1", ROW_TEXT, "^lm_head", IS_FROZEN_VISION},
    {"unfrozen_parameters.0", ROW_TEXT, "@tower@", IS_FROZEN_LANGUAGE, 0,
     "All else, the language model, is frozen."},
    {"dataset_prepared_path", ROW_TEXT, "prepared"},
    {"sequence_len", ROW_LITERAL, "@context@"},
    {"sample_packing", ROW_LITERAL, "true", IS_SFT | IS_FLASH2, IS_IMAGES,
     "Every row is filled up to sequence_len: what is predicted."},
    {"sample_packing", ROW_LITERAL, "false", IS_SFT, IS_FLASH2},
    {"sample_packing", ROW_LITERAL, "false", IS_SFT | IS_FLASH2 | IS_IMAGES},
    {"pad_to_sequence_len", ROW_LITERAL, "true", IS_SFT, IS_IMAGES},
    {"pad_to_sequence_len", ROW_LITERAL, "false", IS_SFT | IS_IMAGES},
    {"pad_to_sequence_len", ROW_LITERAL, "true", IS_REWARD},
    {"remove_unused_columns", ROW_LITERAL, "false", IS_KTO},

    {"micro_batch_size", ROW_LITERAL, "@batch@", IS_PAIRS, 0, "Pairs; each is two rows."},
    {"micro_batch_size", ROW_LITERAL, "@batch@", 0, IS_PAIRS},
    {"gradient_accumulation_steps", ROW_LITERAL, "@accum@"},
    {"accelerator_config.gradient_accumulation_kwargs.sync_each_batch", ROW_LITERAL, "true",
     IS_FSDP | IS_ACCUMULATES | IS_SYNCED, 0,
     "Without it every GPU keeps the whole gradient between micro-batches."},
    {"gradient_checkpointing", ROW_TRAIT, NULL, 0, 0, NULL, IS_CHECKPOINTING},
    {"gradient_checkpointing_kwargs.use_reentrant", ROW_TRAIT, NULL, IS_CHECKPOINTING, 0, NULL,
     IS_REENTRANT},
    {"deepspeed", ROW_TEXT, "deepspeed.json", IS_ZERO},
    {"fsdp_version", ROW_LITERAL, "1", IS_FSDP1},
    {"fsdp_version", ROW_LITERAL, "2", IS_FSDP2},
    {"fsdp_config.offload_params", ROW_TRAIT, NULL, IS_FSDP, 0, NULL, IS_OFFLOAD_ALL},
    {"fsdp_config.cpu_ram_efficient_loading", ROW_LITERAL, "true", IS_FSDP | IS_LOADED_ONCE, 0,
     "The weights are read by one process and sent to the others."},
    {"fsdp_config.cpu_ram_efficient_loading", ROW_LITERAL, "false", IS_FSDP, IS_LOADED_ONCE,
     "Every process reads the weights."},
    {"fsdp_config.sync_module_states", ROW_LITERAL, "true", IS_FSDP1},
    {"fsdp_config.use_orig_params", ROW_LITERAL, "true", IS_FSDP1},
    {"fsdp_config.auto_wrap_policy", ROW_TEXT, "TRANSFORMER_BASED_WRAP", IS_FSDP, IS_NAMED,
     "One unit a decoder layer: the class is the model's own _no_split_modules."},
    {"fsdp_config.auto_wrap_policy", ROW_TEXT, "TRANSFORMER_BASED_WRAP", IS_FSDP | IS_NAMED},
    {"fsdp_config.transformer_layer_cls_to_wrap", ROW_TEXT, "@wrapped@", IS_FSDP | IS_NAMED, 0,
     "The model's own _no_split_modules names a class that it lacks."},
    {"fsdp_config.state_dict_type", ROW_TEXT, "FULL_STATE_DICT", IS_FSDP, IS_SAVED_SHARDS},
    {"fsdp_config.state_dict_type", ROW_TEXT, "SHARDED_STATE_DICT", IS_FSDP | IS_SAVED_SHARDS},
    {"fsdp_config.reshard_after_forward", ROW_LITERAL, "true", IS_FSDP2},
    {"optimizer", ROW_TEXT, "adamw_torch", IS_ADAMW, IS_FUSED},
    {"optimizer", ROW_TEXT, "adamw_torch_fused", IS_FUSED},
    {"optimizer", ROW_TEXT, "sgd", IS_SGD},
    {"optimizer", ROW_TEXT, "adafactor", IS_ADAFACTOR},
    {"optimizer", ROW_TEXT, "adamw_8bit", IS_8BIT, IS_PAGED},
    {"optimizer", ROW_TEXT, "paged_adamw_8bit", IS_8BIT | IS_PAGED},
    {"optimizer", ROW_TEXT, "paged_adamw_32bit", IS_PAGED, IS_8BIT},
    {"max_grad_norm", ROW_LITERAL, "1.0"},
    {"learning_rate", ROW_LITERAL, "1.0e-4", IS_LORA},
    {"learning_rate", ROW_LITERAL, "1.0e-5", 0, IS_LORA},
    {"num_epochs", ROW_LITERAL, "1"},
    {"logging_steps", ROW_LITERAL, "10"},
    {"save_steps", ROW_LITERAL, "500"},
    {"auto_resume_from_checkpoints", ROW_LITERAL, "true"},
    {"output_dir", ROW_TEXT, "@save-to@"},
};

static const struct line head_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# axolotl, @task@: @name@, @context@ tokens a sequence; @step@.\n"
             "# @predicted@\n"
             "# Arguments given here win over the file: bash launch.sh --max-steps 3"},
    {IS_IMAGES, 0,
     "# Predicted with --images @images@\n# Predicted with --image-size @image-size@"},
    {IS_FROZEN_VISION, 0, "# Predicted with --freeze vision"},
    {IS_FROZEN_LANGUAGE, 0, "# Predicted with --freeze language"},
};

static const struct line run_lines[] = {
    {0, IS_EXPANDABLE,
     "# Where nothing is said axolotl turns expandable segments on.\n"
     "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False"},
    {.text = "export NNODES=@nodes@\n"
             "export NPROC_PER_NODE=@gpus_per_node@\n"
             "accelerate launch --num_machines \"$NNODES\" "
             "--num_processes $((NNODES * NPROC_PER_NODE)) \"${launch[@]}\" \\\n"
             "    -m axolotl.cli.train axolotl.yaml \"$@\""},
};

static bool prepare(struct draft *j, struct error *e)
{
    struct str dataset = draft_text(j, "dataset");
    bool file = str_ends(dataset, STR(".json")) || str_ends(dataset, STR(".jsonl"));
    j->traits |= file ? IS_FILE_DATASET : 0;
    bool siglip = model_has(&j->job->model, FEATURE_VISION_SIGLIP);
    draft_count(j, "image_width", j->job->image_width);
    draft_count(j, "image_height", j->job->image_height);
    draft_fact(j, "tower",
               siglip ? STR("^model.(vision_tower|multi_modal_projector)") : STR("^model.visual"));
    return draft_deepspeed(j, e);
}

// As a list: a text would be a pattern.
static void name_modules(struct node *root, const struct draft *j, const char *list,
                         struct str modules)
{
    struct words names = words_of(str_z(j->arena, modules), ',');
    for (int i = 0; words_next(&names); i++) {
        struct str path = str_format(j->arena, "%s.%d", list, i);
        struct node *n = document_at(root, j->arena, path);
        n->kind = NODE_TEXT;
        n->value = names.word;
    }
}

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf launch = buf_in(j->arena), yaml = buf_in(j->arena);
    struct node *root = document_in(j->arena);
    rows_into(root, j, rows, COUNT_OF(rows));
    if (draft_is(j, IS_LORA | IS_LORA_TARGETS, 0))
        name_modules(root, j, "lora_target_modules", draft_adapted(j, ","));
    name_modules(root, j, "lora_modules_to_save", draft_whole(j));
    document_yaml(&yaml, root);
    emit_add(files, "axolotl.yaml", buf_str(&yaml));
    if (draft_is(j, IS_ZERO, 0))
        emit_deepspeed_json(files, j);
    lines_into(&launch, j, head_lines, COUNT_OF(head_lines));
    lines_into(&launch, j, environment_lines, environment_line_count);
    lines_into(&launch, j, node_lines, node_line_count);
    lines_into(&launch, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&launch));
    emit_yarn_script(files, j);
}

const struct writer writer_axolotl = {
    .prepare = prepare,
    .emit = emit,
};
