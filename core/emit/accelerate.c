// Accelerate 1.15: its YAML, a launch script and a training script. Unknown keys at the top are
// rejected by its loader; nested ones are silently ignored, so every nested key here is one that
// its launcher exports (commands/launch.py and utils/launch.py).
#include "core/emit/emit.h"

static const struct row accelerate_rows[] = {
    {"", ROW_NOTE,
     .note = "Accelerate: @strategy@ on @gpus@ x @gpu@, @name@, @context@ tokens a sequence.\n"
             "@predicted@\n@needs@"},
    {"compute_environment", ROW_TEXT, "LOCAL_MACHINE"},
    {"distributed_type", ROW_TEXT, "NO", 0, IS_SEVERAL | IS_ZERO},
    {"distributed_type", ROW_TEXT, "MULTI_GPU", IS_DDP},
    {"distributed_type", ROW_TEXT, "MULTI_GPU", IS_TP, IS_FSDP | IS_ZERO | IS_DDP,
     "One process a GPU; that they share one model says the training script. Accelerate's launcher "
     "takes a parallelism_config with FSDP2 only."},
    {"distributed_type", ROW_TEXT, "FSDP", IS_FSDP},
    {"distributed_type", ROW_TEXT, "DEEPSPEED", IS_ZERO},
    {"mixed_precision", ROW_TEXT, "no", IS_BF16, 0,
     "The weights themselves are bf16: nothing to cast."},
    {"mixed_precision", ROW_TEXT, "fp16", IS_FP16, IS_ZERO},
    {"mixed_precision", ROW_TEXT, "bf16", 0, IS_BF16 | IS_ZERO | IS_FP16},
    {"num_machines", ROW_LITERAL, "@nodes@"},
    {"num_processes", ROW_LITERAL, "@gpus@", IS_NODES, 0, "Of all machines together, one a GPU."},
    {"num_processes", ROW_LITERAL, "@gpus@", 0, IS_NODES},
    {"machine_rank", ROW_LITERAL, "0", IS_NODES, 0,
     "Each machine passes its own with --machine_rank, and the first one's address with "
     "--main_process_ip: see launch.sh."},
    {"machine_rank", ROW_LITERAL, "0", 0, IS_NODES},
    {"rdzv_backend", ROW_TEXT, "static"},
    {"same_network", ROW_LITERAL, "true"},
    {"main_training_function", ROW_TEXT, "main"},

    {"fsdp_config.fsdp_version", ROW_LITERAL, "1", IS_FSDP1},
    {"fsdp_config.fsdp_version", ROW_LITERAL, "2", IS_FSDP2},
    {"fsdp_config.fsdp_sharding_strategy", ROW_TEXT, "FULL_SHARD", IS_FSDP1 | IS_RESHARD,
     IS_REPLICATED},
    {"fsdp_config.fsdp_sharding_strategy", ROW_TEXT, "SHARD_GRAD_OP", IS_FSDP1,
     IS_RESHARD | IS_REPLICATED, "Parameters stay gathered between forward and backward."},
    {"fsdp_config.fsdp_sharding_strategy", ROW_TEXT, "HYBRID_SHARD",
     IS_FSDP1 | IS_RESHARD | IS_REPLICATED, 0, "Each node has all shards."},
    {"fsdp_config.fsdp_sharding_strategy", ROW_TEXT, "HYBRID_SHARD_ZERO2", IS_FSDP1 | IS_REPLICATED,
     IS_RESHARD, "Each node has all shards; parameters stay gathered between the passes."},
    {"fsdp_config.fsdp_reshard_after_forward", ROW_TRAIT, NULL, IS_FSDP2 | IS_RESHARD, 0,
     "A layer's parameters are let go after its forward pass and gathered again.", IS_RESHARD},
    {"fsdp_config.fsdp_reshard_after_forward", ROW_TRAIT, NULL, IS_FSDP2, IS_RESHARD,
     "A layer's parameters stay gathered between forward and backward.", IS_RESHARD},
    {"fsdp_config.fsdp_auto_wrap_policy", ROW_TEXT, "TRANSFORMER_BASED_WRAP", IS_FSDP, IS_NAMED,
     "One unit a decoder layer: the class is the model's own _no_split_modules."},
    {"fsdp_config.fsdp_auto_wrap_policy", ROW_TEXT, "TRANSFORMER_BASED_WRAP", IS_FSDP | IS_NAMED},
    {"fsdp_config.fsdp_transformer_layer_cls_to_wrap", ROW_TEXT, "@wrapped@", IS_FSDP | IS_NAMED, 0,
     "The model's own _no_split_modules names a class that it lacks."},
    {"fsdp_config.fsdp_offload_params", ROW_TRAIT, NULL, IS_FSDP, 0, NULL, IS_OFFLOAD_ALL},
    {"fsdp_config.fsdp_activation_checkpointing", ROW_LITERAL, "false", IS_FSDP | IS_CHECKPOINTING,
     0, "Layers are recomputed, but the trainer sees to it: transformers refuses both."},
    {"fsdp_config.fsdp_activation_checkpointing", ROW_LITERAL, "false", IS_FSDP, IS_CHECKPOINTING},
    {"fsdp_config.fsdp_backward_prefetch", ROW_TEXT, "BACKWARD_PRE", IS_FSDP1 | IS_PREFETCHED},
    {"fsdp_config.fsdp_backward_prefetch", ROW_TEXT, "NO_PREFETCH", IS_FSDP1, IS_PREFETCHED},
    {"fsdp_config.fsdp_use_orig_params", ROW_LITERAL, "true", IS_FSDP1},
    {"fsdp_config.fsdp_sync_module_states", ROW_LITERAL, "true", IS_FSDP1},
    {"fsdp_config.fsdp_cpu_ram_efficient_loading", ROW_LITERAL, "true", IS_FSDP | IS_LOADED_ONCE, 0,
     "The weights are read by one process and sent to the others."},
    {"fsdp_config.fsdp_cpu_ram_efficient_loading", ROW_LITERAL, "false", IS_FSDP, IS_LOADED_ONCE,
     "Every process reads the weights."},
    {"fsdp_config.fsdp_state_dict_type", ROW_TEXT, "SHARDED_STATE_DICT", IS_FSDP, IS_SAVED_WHOLE},
    {"fsdp_config.fsdp_state_dict_type", ROW_TEXT, "FULL_STATE_DICT", IS_FSDP | IS_SAVED_WHOLE, 0,
     "Gathered tensor by tensor, into the first process's memory."},

    {"deepspeed_config.deepspeed_config_file", ROW_TEXT, "deepspeed.json", IS_ZERO, 0,
     "Stage, precision, clipping, buckets and offload are there; Accelerate refuses them in both "
     "files."},
    {"deepspeed_config.zero3_init_flag", ROW_TRAIT, NULL, IS_ZERO, 0, NULL, IS_ZERO3},
    {"deepspeed_config.deepspeed_multinode_launcher", ROW_TEXT, "standard", IS_ZERO | IS_NODES, 0,
     "One launcher a node; the default, pdsh, wants a hostfile and ssh."},

    {"parallelism_config.parallelism_config_dp_replicate_size", ROW_LITERAL, "@replicate@",
     IS_REPLICATED, IS_FSDP1, "So many groups of GPUs have all shards each."},
    {"parallelism_config.parallelism_config_dp_shard_size", ROW_LITERAL, "@dp_shard@",
     IS_REPLICATED, IS_CP | IS_FSDP1},
    {"parallelism_config.parallelism_config_dp_replicate_size", ROW_LITERAL, "1", IS_CP,
     IS_REPLICATED},
    {"parallelism_config.parallelism_config_dp_shard_size", ROW_LITERAL, "@dp_shard@",
     IS_CP | IS_REPLICATED, 0, "Shards are over dp_shard x cp GPUs."},
    {"parallelism_config.parallelism_config_dp_shard_size", ROW_LITERAL, "@replicas@", IS_CP,
     IS_REPLICATED, "Shards are over dp_shard x cp = @gpus@ GPUs."},
    {"parallelism_config.parallelism_config_tp_size", ROW_LITERAL, "1", IS_CP},
    {"parallelism_config.parallelism_config_cp_size", ROW_LITERAL, "@cp@", IS_CP, 0,
     "A sequence of @context@ tokens is spread over @cp@ GPUs."},
    {"parallelism_config.parallelism_config_cp_comm_strategy", ROW_TEXT, "allgather", IS_CP},
    {"parallelism_config.parallelism_config_dp_replicate_size", ROW_LITERAL, "1", IS_SP},
    {"parallelism_config.parallelism_config_dp_shard_size", ROW_LITERAL, "@replicas@", IS_SP, 0,
     "dp_shard x sp = @gpus@ GPUs; DeepSpeed checks the batch against it."},
    {"parallelism_config.parallelism_config_sp_size", ROW_LITERAL, "@sp@", IS_SP, 0,
     "A sequence of @context@ tokens is spread over @sp@ GPUs, heads during attention."},
    {"parallelism_config.parallelism_config_sp_backend", ROW_TEXT, "deepspeed", IS_SP},
    {"parallelism_config.parallelism_config_sp_seq_length_is_variable", ROW_LITERAL, "true", IS_SP},
    {"parallelism_config.parallelism_config_sp_attn_implementation", ROW_TEXT,
     "@attn_implementation@", IS_SP, IS_FLASH2},
    {"parallelism_config.parallelism_config_sp_attn_implementation", ROW_TEXT, "flash_attention_2",
     IS_SP | IS_FLASH2},
};

static const struct line launch_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# @name@, @context@ tokens a sequence; sequences a step: @sequences@.\n"
             "# @predicted@\n"
             "# With --trial: three steps on random weights and tokens, and the measured peaks."},
};

static const struct line run_lines[] = {
    {.text = "arguments=(\n"
             "    --model @model@\n"
             "    --context @context@\n"
             "    --batch @batch@\n"
             "    --accum @accum@\n"
             "    --precision @precision@\n"
             "    --optimizer @optimizer@"},
    {IS_CHECKPOINTING, 0, "    --checkpointing"},
    {IS_REENTRANT, 0, "    --reentrant"},
    {IS_FLASH2, 0, "    --attention flash_attention_2"},
    {IS_EAGER, 0, "    --attention eager"},
    {IS_LIGER, 0, "    --liger-loss"},
    {IS_LIGER_LAYERS, 0, "    --liger-layers"},
    {IS_TP, 0, "    --tp @tp@"},
    {0, IS_NO_DATASET, "    --dataset @dataset@"},
    {.text = "    --save-to @save-to@\n)\n"
             "accelerate launch --config_file accelerate.yaml \"${launch[@]}\" "
             "train.py \"${arguments[@]}\" \"$@\""},
};

void emit_accelerate_yaml(struct emit_files *files, const struct draft *j)
{
    if (draft_is(j, IS_ZERO, 0))
        emit_deepspeed_json(files, j);
    emit_yaml(files, j, "accelerate.yaml", accelerate_rows, COUNT_OF(accelerate_rows));
}

// The same files are written for a loop of one's own, DeepSpeed's and transformers' Trainer, whose
// steps are not predicted alike, nor are those of its versions.
static void name_recipe(struct buf *out, const struct draft *j)
{
    const struct setting *given = settings_find_z(j->settings, "recipe");
    struct str recipe = given ? given->value : draft_text(j, "recipe");
    bool shared = j->job->target == FOR_ACCELERATE && draft_is(j, IS_ZERO, 0);
    if (j->job->target == FOR_TRANSFORMERS || shared)
        buf_printf(out, "# Predicted with --recipe %.*s\n", STR_ARGS(recipe));
}

void emit_accelerate_training(struct emit_files *files, const struct draft *j)
{
    struct buf launch = buf_in(j->arena);
    emit_accelerate_yaml(files, j);
    lines_into(&launch, j, launch_lines, COUNT_OF(launch_lines));
    name_recipe(&launch, j);
    lines_into(&launch, j, environment_lines, environment_line_count);
    lines_into(&launch, j, node_lines, node_line_count);
    lines_into(&launch, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&launch));
    emit_training_script(files);
    emit_yarn_script(files, j);
}

const struct writer writer_accelerate = {
    .prepare = draft_deepspeed,
    .emit = emit_accelerate_training,
};
