// Trinity-RFT 0.6 and verl 0.9: one Ray cluster has all GPUs, and the framework starts the teacher.
// Keys as Trinity's config.py and verl's trainer/config (distillation/distillation.yaml) have them.
#include "core/emit/division.h"

// ------------------------------------------------------------------ trinity

static const struct row trinity_rows[] = {
    {"", ROW_NOTE, NULL, 0, 0,
     "Trinity-RFT, on-policy distillation: @teacher@ teaches @weights@. @train_says@."},
    {"mode", ROW_TEXT, "both"},
    {"project", ROW_TEXT, "fathom"},
    {"name", ROW_TEXT, "distill"},
    {"checkpoint_root_dir", ROW_TEXT, "${oc.env:TRINITY_CHECKPOINT_ROOT_DIR,./checkpoints}"},
    {"algorithm.algorithm_type", ROW_TEXT, "on_policy_distill"},
    {"algorithm.repeat_times", ROW_LITERAL, "@samples@"},
    {"algorithm.advantage_fn_args.kl_coef", ROW_LITERAL, "1.0"},
    {"algorithm.optimizer.lr", ROW_LITERAL, "1.0e-06"},
    {"model.model_path", ROW_TEXT, "@weights@"},
    {"model.max_model_len", ROW_LITERAL, "@context@"},
    {"model.max_prompt_tokens", ROW_LITERAL, "@prompt@"},
    {"model.max_response_tokens", ROW_LITERAL, "@response@"},
    {"cluster.node_num", ROW_LITERAL, "@nodes@", 0, 0,
     "@train_gpus@ train, @rollout_gpus@ generate, @teacher_gpus@ teach."},
    {"cluster.gpu_per_node", ROW_LITERAL, "@per_node@"},
    {"buffer.batch_size", ROW_LITERAL, "@prompts@"},
    {"buffer.train_batch_size", ROW_LITERAL, "@sequences@"},
    {"buffer.total_epochs", ROW_LITERAL, "1"},
    {"buffer.explorer_input.taskset.name", ROW_TEXT, "taskset"},
    {"buffer.explorer_input.taskset.storage_type", ROW_TEXT, "file"},
    {"buffer.explorer_input.taskset.path", ROW_TEXT, "@dataset@"},
    {"buffer.explorer_input.taskset.split", ROW_TEXT, "train"},
    {"buffer.explorer_input.taskset.format.prompt_key", ROW_TEXT, "question"},
    {"buffer.explorer_input.taskset.format.response_key", ROW_TEXT, "answer"},
    {"buffer.explorer_input.taskset.rollout_args.temperature", ROW_LITERAL, "1.0"},
    {"buffer.explorer_input.default_workflow_type", ROW_TEXT, "on_policy_distill_math_workflow"},
    {"buffer.trainer_input.experience_buffer.name", ROW_TEXT, "experience_buffer"},
    {"buffer.trainer_input.experience_buffer.storage_type", ROW_TEXT, "queue"},
    {"explorer.runner_per_model", ROW_LITERAL, "8"},
    {"explorer.rollout_model.engine_num", ROW_LITERAL, "@rollout_engines@", 0, 0, "@rollout_says@"},
    {"explorer.rollout_model.tensor_parallel_size", ROW_LITERAL, "@rollout_tp@"},
    {"explorer.rollout_model.gpu_memory_utilization", ROW_LITERAL, "@rollout_memory@"},
    {"explorer.rollout_model.dtype", ROW_TEXT, "bfloat16"},
    {"explorer.auxiliary_models.0.model_path", ROW_TEXT, "@teacher@", 0, 0,
     "The teacher: @teacher_says@"},
    {"explorer.auxiliary_models.0.engine_num", ROW_LITERAL, "@teacher_engines@"},
    {"explorer.auxiliary_models.0.tensor_parallel_size", ROW_LITERAL, "@teacher_tp@"},
    {"explorer.auxiliary_models.0.gpu_memory_utilization", ROW_LITERAL, "@teacher_memory@"},
    {"explorer.auxiliary_models.0.dtype", ROW_TEXT, "bfloat16"},
    {"explorer.auxiliary_models.0.max_model_len", ROW_LITERAL, "@teacher_context@"},
    {"trainer.trainer_type", ROW_TEXT, "verl"},
    {"trainer.trainer_strategy", ROW_TEXT, "fsdp2"},
    {"trainer.save_interval", ROW_LITERAL, "100"},
    {"trainer.use_dynamic_bsz", ROW_LITERAL, "true"},
    {"trainer.max_token_len_per_gpu", ROW_LITERAL, "@context@", 0, 0,
     "One sequence of full length; a smaller batch would take nothing off this."},
    {"trainer.ulysses_sequence_parallel_size", ROW_LITERAL, "1"},
    {"synchronizer.sync_method", ROW_TEXT, "nccl"},
    {"synchronizer.sync_interval", ROW_LITERAL, "1"},
    {"synchronizer.sync_timeout", ROW_LITERAL, "1200"},
    {"monitor.monitor_type", ROW_TEXT, "tensorboard"},
};

static const struct line trinity_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# Trinity-RFT 0.6, on-policy distillation: @teacher@ teaches @weights@."},
};

static const struct line trinity_run[] = {
    {.text = "cd \"$here\"\n"
             "exec trinity run --config trinity.yaml \"$@\""},
};

static void emit_trinity(struct emit_files *files, const struct draft *j)
{
    struct buf out = buf_in(j->arena);
    emit_yaml(files, j, "trinity.yaml", trinity_rows, COUNT_OF(trinity_rows));
    lines_into(&out, j, trinity_lines, COUNT_OF(trinity_lines));
    lines_into(&out, j, division_head_lines, division_head_count);
    lines_into(&out, j, division_ray_lines, division_ray_count);
    lines_into(&out, j, trinity_run, COUNT_OF(trinity_run));
    emit_add(files, "launch.sh", buf_str(&out));
}

static const struct refusal trinity_refusals[] = {
    {IS_VISION, 0, "student", "Trinity-RFT distils models of text only, in every version so far"},
};

const struct division_writer division_trinity = {
    .framework = "trinity",
    .refusals = trinity_refusals,
    .refusal_count = COUNT_OF(trinity_refusals),
    .emit = emit_trinity,
};

// ------------------------------------------------------------------ verl

static const struct line verl_lines[] = {
    {.text =
         "#!/usr/bin/env bash\n"
         "# verl 0.9, on-policy distillation: @teacher@ teaches @weights@; rollout and training\n"
         "# on the same GPUs, the engine asleep while they train."},
};

static const struct line verl_run[] = {
    {.text = "overrides=(\n"
             "    algorithm.adv_estimator=grpo\n"
             "    data.train_files=@dataset@\n"
             "    data.val_files=@dataset@"},
    {IS_VISION, 0, "    data.image_key=images"},
    {.text = "    data.train_batch_size=@prompts@\n"
             "    data.max_prompt_length=@prompt@\n"
             "    data.max_response_length=@response@\n"
             "    data.filter_overlong_prompts=true\n"
             "    actor_rollout_ref.model.path=@weights@\n"
             "    actor_rollout_ref.model.use_remove_padding=true\n"
             "    actor_rollout_ref.model.enable_gradient_checkpointing=true\n"
             "    actor_rollout_ref.actor.strategy=fsdp2\n"
             "    actor_rollout_ref.actor.fsdp_config.strategy=fsdp2\n"
             "    actor_rollout_ref.actor.optim.lr=1e-6\n"
             "    actor_rollout_ref.actor.ppo_mini_batch_size=@mini_prompts@\n"
             "    # One sequence of full length; a smaller batch would take nothing off this.\n"
             "    actor_rollout_ref.actor.use_dynamic_bsz=true\n"
             "    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=@context@\n"
             "    actor_rollout_ref.actor.use_kl_loss=false\n"
             "    actor_rollout_ref.actor.entropy_coeff=0"},
    {IS_OFFLOAD_ALL, 0,
     "    # Weights and optimizer wait in host memory while answers are made.\n"
     "    actor_rollout_ref.actor.fsdp_config.param_offload=true\n"
     "    actor_rollout_ref.actor.fsdp_config.optimizer_offload=true"},
    {.text = "    # @rollout_says@"},
    {.text = "    actor_rollout_ref.rollout.name=vllm\n"
             "    actor_rollout_ref.rollout.tensor_model_parallel_size=@rollout_tp@\n"
             "    actor_rollout_ref.rollout.gpu_memory_utilization=@rollout_memory@\n"
             "    actor_rollout_ref.rollout.free_cache_engine=true\n"
             "    actor_rollout_ref.rollout.n=@samples@"},
    {.text = "    # @teacher_says@"},
    {.text = "    distillation.enabled=true\n"
             "    distillation.n_gpus_per_node=@teacher_per_node@\n"
             "    distillation.nnodes=@teacher_nodes@\n"
             "    distillation.teacher_models.teacher_model.model_path=@teacher@\n"
             "    distillation.teacher_models.teacher_model.num_replicas=@teacher_engines@\n"
             "    distillation.teacher_models.teacher_model.inference.tensor_model_parallel_size="
             "@teacher_tp@\n"
             "    distillation.teacher_models.teacher_model.inference.gpu_memory_utilization="
             "@teacher_memory@\n"
             "    distillation.teacher_models.teacher_model.inference.max_model_len="
             "@teacher_context@\n"
             "    distillation.distillation_loss.loss_mode=k1\n"
             "    distillation.distillation_loss.use_policy_gradient=true\n"
             "    distillation.distillation_loss.use_task_rewards=false\n"
             "    trainer.n_gpus_per_node=@train_per_node@\n"
             "    trainer.nnodes=@train_nodes@\n"
             "    trainer.logger=console\n"
             "    trainer.project_name=fathom\n"
             "    trainer.experiment_name=distill\n"
             "    trainer.default_local_dir=\"$here/checkpoints\"\n"
             "    trainer.save_freq=100\n"
             "    trainer.test_freq=-1\n"
             "    trainer.val_before_train=false\n"
             "    trainer.total_epochs=1\n"
             ")\n"
             "exec python3 -m verl.trainer.main_ppo \"${overrides[@]}\" \"$@\""},
};

static void emit_verl(struct emit_files *files, const struct draft *j)
{
    struct buf out = buf_in(j->arena);
    lines_into(&out, j, verl_lines, COUNT_OF(verl_lines));
    lines_into(&out, j, division_head_lines, division_head_count);
    lines_into(&out, j, division_ray_lines, division_ray_count);
    lines_into(&out, j, verl_run, COUNT_OF(verl_run));
    emit_add(files, "launch.sh", buf_str(&out));
}

const struct division_writer division_verl = {.framework = "verl", .emit = emit_verl};
