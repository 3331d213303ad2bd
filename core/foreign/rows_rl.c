// The tables of RL: Trinity-RFT 0.4 to 0.6 (common/config.py and its verl_config.py), verl 0.5 to
// 0.7 (trainer/config), and what verl's workers take in both.
#include "core/foreign/rows.h"

#define NO_LORA      "LoRA is not read from files of RL"
#define ONLY_ADAMW   "of verl's optimizers only torch's AdamW is modelled"
#define NO_OTHER_LOG "only the trainer's micro-batches and the reference's are modelled"

#define NO_EAGER "verl's entropy is modelled where it is compiled: use_torch_compile=True"

#define NO_MEGATRON                                                                          \
    "verl's Megatron workers are not modelled; its FSDP is, and slime's Megatron: --recipe " \
    "megatron"

#define NO_ALGORITHM                                                                      \
    "of Trinity's algorithms those with grpo's losses and no critic are modelled: grpo, " \
    "multi_step_grpo, gigpo, grpo_verl, rloo, reinforceplusplus"

// Those have the models and losses of grpo, other advantages (algorithm/algorithm.py). The explorer
// has GPUs of its own, and only their number matters.
const struct foreign_row trinity_rows[] = {
    {"mode", "both", FACT, "mode"},
    {"mode", "train", FACT, "mode"},
    {"mode", NULL, REFUSED, NULL, "of Trinity's modes both and train are modelled"},
    {"algorithm.algorithm_type", "grpo", SETS, "task"},
    {"algorithm.algorithm_type", "multi_step_grpo", SETS, "task", "grpo"},
    {"algorithm.algorithm_type", "gigpo", SETS, "task", "grpo"},
    {"algorithm.algorithm_type", "grpo_verl", SETS, "task", "grpo"},
    {"algorithm.algorithm_type", "rloo", SETS, "task", "grpo"},
    {"algorithm.algorithm_type", "reinforceplusplus", SETS, "task", "grpo"},
    {"algorithm.algorithm_type", "on_policy_distill", SETS, "task", "opd"},
    {"algorithm.algorithm_type", "sft", SETS, "task"},
    {"algorithm.algorithm_type", "dpo", SETS, "task"},
    {"algorithm.algorithm_type", NULL, REFUSED, NULL, NO_ALGORITHM},
    {"algorithm.policy_loss_fn", "ppo", NOTHING},
    {"algorithm.policy_loss_fn", NULL, REFUSED, NULL, "of the policy losses ppo is modelled"},
    {"algorithm.entropy_loss_fn", "default", NOTHING},
    {"algorithm.entropy_loss_fn", NULL, REFUSED, NULL,
     "of the entropy losses default is modelled; without one, Trinity 0.5 and later need less"},
    {"algorithm.optimizer.optimizer_type", "adam", NOTHING},
    {"algorithm.optimizer.optimizer_type", "adamw", NOTHING},
    {"algorithm.optimizer.optimizer_type", NULL, REFUSED, NULL, ONLY_ADAMW},
    {"algorithm.bypass_old_logprobs", "true", NOTHING},
    {"algorithm.bypass_old_logprobs", NULL, REFUSED, NULL, NO_OTHER_LOG},
    {"algorithm.rollout_correction.bypass_mode", "true", NOTHING},
    {"algorithm.rollout_correction.bypass_mode", NULL, REFUSED, NULL, NO_OTHER_LOG},
    {"algorithm.enable_router_replay", "false", NOTHING},
    {"algorithm.enable_router_replay", NULL, REFUSED, NULL,
     "routers that are replayed are not modelled"},
    {"algorithm.repeat_times", NULL, FACT, "answers"},
    {"algorithm.optimizer.*", NULL, NOTHING},
    {"algorithm.sample_strategy*", NULL, NOTHING},
    {"algorithm.advantage_fn*", NULL, NOTHING},
    {"algorithm.kl_penalty_fn*", NULL, NOTHING}, // the reference is there whatever they say
    {"algorithm.kl_loss_fn*", NULL, NOTHING},
    {"algorithm.policy_loss_fn_args.*", NULL, NOTHING},
    {"algorithm.entropy_loss_fn_args.*", NULL, NOTHING},
    {"algorithm.rollout_correction.*", NULL, NOTHING},
    {"algorithm.loss_agg_mode", NULL, NOTHING},

    {"model.model_path", NULL, SETS, "model"},
    {"model.max_model_len", NULL, SETS, "context"},
    {"model.max_prompt_tokens", NULL, FACT, "prompt"},
    {"model.max_response_tokens", NULL, FACT, "response"},
    {"model.critic_model_path", NULL, NOTHING},
    {"model.lora_configs.*", NULL, REFUSED, NULL, NO_LORA},
    {"model.tinker.enable", "true", REFUSED, NULL, "Tinker trains elsewhere: nothing to predict"},
    {"model.tinker.*", NULL, NOTHING},
    {"model.external_model.enable", "true", REFUSED, NULL,
     "an external model is not trained: nothing to predict"},
    {"model.external_model.*", NULL, NOTHING},
    {"model.custom_chat_template", NULL, NOTHING},
    {"model.chat_template_path", NULL, NOTHING},
    {"model.temperature", NULL, NOTHING},
    {"model.top_p", NULL, NOTHING},
    {"model.top_k", NULL, NOTHING},
    {"model.logprobs", NULL, NOTHING},
    {"model.min_response_tokens", NULL, NOTHING},
    {"model.enable_prompt_truncation", NULL, NOTHING},
    {"model.enable_thinking", NULL, NOTHING},
    {"model.repetition_penalty", NULL, NOTHING},
    {"model.trust_remote_code", NULL, NOTHING},
    {"model.fully_sharded_loras", NULL, NOTHING},
    {"model.max_cpu_loras", NULL, NOTHING},
    {"model.rope_scaling.*", NULL, NOTHING},
    {"model.rope_theta", NULL, NOTHING},

    {"cluster.node_num", NULL, FACT, "cluster-nodes"},
    {"cluster.gpu_per_node", NULL, FACT, "cluster-gpus"},
    {"cluster.*", NULL, NOTHING}, // an address, and what Trinity fills in itself

    {"buffer.train_batch_size", NULL, FACT, "sequences"},
    {"buffer.batch_size", NULL, FACT, "prompts"},
    {"buffer.*", NULL, NOTHING},
    {"explorer.rollout_model.engine_num", NULL, FACT},
    {"explorer.rollout_model.tensor_parallel_size", NULL, FACT},
    {"explorer.rollout_model.data_parallel_size", NULL, FACT},
    {"explorer.rollout_model.pipeline_parallel_size", NULL, FACT},
    {"explorer.auxiliary_models.*", NULL, FACT},
    {"explorer.*", NULL, NOTHING},

    {"trainer.trainer_type", "verl", NOTHING},
    {"trainer.trainer_type", NULL, REFUSED, NULL, "of Trinity's trainers verl is modelled"},
    {"trainer.trainer_strategy", "fsdp", SETS, "strategy", "fsdp1"},
    {"trainer.trainer_strategy", "fsdp2", SETS, "strategy", "fsdp2"},
    {"trainer.trainer_strategy", NULL, REFUSED, NULL, "only fsdp and fsdp2 are modelled"},
    {"trainer.ulysses_sequence_parallel_size", NULL, SETS, "sp"},
    {"trainer.optimizer_offload", "true", SETS, "offload", "optimizer"},
    {"trainer.optimizer_offload", "false", NOTHING},
    {"trainer.param_offload", "true", SETS, "offload", "all"},
    {"trainer.param_offload", "false", NOTHING},
    {"trainer.offload_policy", "true", SETS, "offload", "all"},
    {"trainer.offload_policy", "false", NOTHING},
    {"trainer.grad_offload", NULL, NOTHING}, // of Megatron
    {"trainer.save_hf_checkpoint", "last", NOTHING},
    {"trainer.save_hf_checkpoint", NULL, SETS, "save-hf"},
    {"trainer.use_dynamic_bsz", NULL, FACT, "dynamic"},
    {"trainer.max_token_len_per_gpu", NULL, FACT, "limit"},
    {"trainer.use_remove_padding", "true", NOTHING},
    {"trainer.trainer_config_path", "", NOTHING},
    {"trainer.trainer_config_path", NULL, REFUSED, NULL,
     "what matters is in that file: put it under trainer_config"},
    {"trainer.name", NULL, NOTHING},
    {"trainer.save_interval", NULL, NOTHING},
    {"trainer.save_strategy", NULL, NOTHING},
    {"trainer.max_checkpoints_to_keep", NULL, NOTHING},
    {"trainer.total_steps", NULL, NOTHING},
    {"trainer.enable_preview", NULL, NOTHING},
    {"trainer.grad_clip", NULL, NOTHING},
    {"trainer.balance_batch", NULL, NOTHING},
    {"trainer.critic_warmup", NULL, NOTHING},
    {"trainer.fix_actor_microbatch_loss_scale", NULL, NOTHING},
    {"trainer.trust_remote_code", NULL, NOTHING},
    {"trainer.megatron.*", NULL, NOTHING}, // the strategy says whether it is meant
    {"trainer.trainer_config.data.*", NULL, NOTHING},
    {"trainer.trainer_config.algorithm.*", NULL, NOTHING},
    {"trainer.trainer_config.trainer.*", NULL, NOTHING},
    {"trainer.trainer_config.custom_reward_function.*", NULL, NOTHING},
    {"trainer.trainer_config.global_profiler.*", NULL, NOTHING},
    {"trainer.trainer_config.synchronizer.*", NULL, NOTHING},
    {"trainer.trainer_config.enable_preview", NULL, NOTHING},

    {"stages.*", NULL, REFUSED, NULL, "a file of several stages is not read; one stage is"},
    {"data_processor.*", NULL, NOTHING},
    {"synchronizer.sync_method", "nccl", NOTHING},
    {"synchronizer.sync_method", NULL, NOTED, NULL,
     "in the answer weights go to the explorer by nccl"},
    {"synchronizer.*", NULL, NOTHING},
    {"service.*", NULL, NOTHING},
    {"monitor.*", NULL, NOTHING},
    {"log.*", NULL, NOTHING},
    {"project", NULL, NOTHING},
    {"group", NULL, NOTHING},
    {"name", NULL, NOTHING},
    {"checkpoint_root_dir", NULL, NOTHING},
    {"checkpoint_job_dir", NULL, NOTHING},
    {"ray_namespace", NULL, NOTHING},
    {"continue_from_checkpoint", NULL, NOTHING},
    {"ignore_validator_suggestions", NULL, NOTHING},
};
const ptrdiff_t trinity_row_count = COUNT_OF(trinity_rows);

// Of verl by itself; what its workers take is below.
const struct foreign_row verl_rows[] = {
    {"actor_rollout_ref.model.path", NULL, SETS, "model"},
    {"actor_rollout_ref.actor.ppo_mini_batch_size", NULL, FACT, "prompts"},
    {"actor_rollout_ref.rollout.n", NULL, FACT, "answers"},
    {"actor_rollout_ref.hybrid_engine", "true", NOTHING},
    {"actor_rollout_ref.nccl_timeout", NULL, NOTHING},
    // Between updates they are in host memory, in an update on the card (workers/fsdp_workers.py,
    // update_actor: load_fsdp_model_to_gpu, load_fsdp_optimizer).
    {"actor_rollout_ref.actor.fsdp_config.param_offload", "true", FACT, "parked"},
    {"actor_rollout_ref.actor.fsdp_config.optimizer_offload", "true", FACT, "parked"},
    {"actor_rollout_ref.actor.fsdp_config.fsdp_size", NULL, FACT, "fsdp-size"},
    // Of those that differ from grpo in advantages alone, and need no critic
    // (trainer/ppo/core_algos.py).
    {"algorithm.adv_estimator",
     "grpo grpo_vectorized grpo_passk rloo rloo_vectorized reinforce_plus_plus "
     "reinforce_plus_plus_baseline remax opo gpg",
     SETS, "task", "grpo"},
    {"algorithm.adv_estimator", "gae", REFUSED, NULL,
     "a critic beside the policy (adv_estimator gae) is not modelled"},
    {"algorithm.adv_estimator", NULL, REFUSED, NULL,
     "of verl's algorithms those with grpo's losses and no critic are read"},
    {"algorithm.*", NULL, NOTHING},
    {"data.max_prompt_length", NULL, FACT, "prompt"},
    {"data.max_response_length", NULL, FACT, "response"},
    {"data.*", NULL, NOTHING},
    {"trainer.n_gpus_per_node", NULL, OPEN, "cluster-gpus"},
    {"trainer.nnodes", NULL, OPEN, "cluster-nodes"},
    {"trainer.device", "cuda", NOTHING},
    {"trainer.device", NULL, REFUSED, NULL, "of verl's devices cuda is modelled"},
    {"trainer.*", NULL, NOTHING},
    {"critic.enable", "true", REFUSED, NULL, "a critic beside the policy is not modelled"},
    {"critic.*", NULL, NOTHING}, // grpo has none
    {"reward_model.enable", "true", REFUSED, NULL, "a reward model beside it is not modelled"},
    {"reward_model.*", NULL, NOTHING},
    {"reward_manager*", NULL, NOTHING},
    {"reward.reward_model.enable", "true", REFUSED, NULL,
     "a reward model beside it is not modelled"},
    {"reward.*", NULL, NOTHING},
    {"custom_reward_function.*", NULL, NOTHING},
    {"global_profiler.*", NULL, NOTHING},
    {"transfer_queue.*", NULL, NOTHING},
    {"ray_kwargs.*", NULL, NOTHING},
    {"ray_init.*", NULL, NOTHING},
    {"program", "verl.trainer.main_ppo main_ppo.py recipe.dapo.main_dapo main_dapo.py", FACT,
     "verl-program"},
    {"program", "verl.trainer.fsdp_sft_trainer verl.trainer.sft_trainer", REFUSED, NULL,
     "verl's supervised trainer is not modelled; its GRPO is"},
    {"program", "verl.trainer.main_generation verl.trainer.main_generation_server", REFUSED, NULL,
     "this generates answers and trains nothing"},
    {"program", NULL, REFUSED, NULL, "of verl's programs main_ppo is read"},
    {"hydra.config_name", "ppo_trainer ppo_trainer.yaml", NOTHING},
    {"hydra.config_name", "ppo_megatron_trainer ppo_megatron_trainer.yaml", REFUSED, NULL,
     NO_MEGATRON},
    {"hydra.config_name", NULL, FACT, "hydra-file"},
    {"defaults.*", "ppo_megatron_trainer", REFUSED, NULL, NO_MEGATRON},
    {"defaults.*", NULL, FACT, "hydra-tree"},
    {"hydra.*", NULL, NOTHING},
};
const ptrdiff_t verl_row_count = COUNT_OF(verl_rows);

// The worker puts its own strategy and size over those of its engine.
#define FSDP_ROWS(part)                                                                           \
    {part ".fsdp_config.wrap_policy.min_num_params", "0", NOTHING},                               \
        {part ".fsdp_config.fsdp_size", "-1", NOTHING},                                           \
        {part ".fsdp_config.fsdp_size", NULL, REFUSED, NULL, NO_REPLICAS},                        \
        {part ".fsdp_config.forward_prefetch", "false", NOTHING},                                 \
        {part ".fsdp_config.model_dtype", "fp32", NOTHING},                                       \
        {part ".fsdp_config.model_dtype", "float32", NOTHING},                                    \
        {part ".fsdp_config.dtype", "bfloat16", NOTHING},                                         \
        {part ".fsdp_config.mixed_precision.param_dtype", "bf16", NOTHING},                       \
        {part ".fsdp_config.mixed_precision.reduce_dtype", "fp32", NOTHING},                      \
        {part ".fsdp_config.mixed_precision.buffer_dtype", "fp32", NOTHING},                      \
        {part ".fsdp_config.use_orig_params", "false", NOTHING},                                  \
        {part ".fsdp_config.use_torch_compile", "true", NOTHING},                                 \
        {part ".fsdp_config.entropy_from_logits_with_chunking", "false", NOTHING},                \
        {part ".fsdp_config.entropy_checkpointing", "false", NOTHING},                            \
        {part ".fsdp_config.ulysses_sequence_parallel_size", NULL, NOTHING},                      \
        {part ".fsdp_config.strategy", NULL, NOTHING}, {part ".fsdp_config.seed", NULL, NOTHING}, \
        {part ".fsdp_config.full_determinism", "false", NOTHING},                                 \
        {part ".fsdp_config._target_", NULL, NOTHING}, {part "._target_", NULL, NOTHING},         \
        {part ".checkpoint.*", NULL, NOTHING}, {part ".profile.use_profile", "false", NOTHING},   \
        {part ".profile.*", NULL, NOTHING}, {part ".profiler.*", NULL, NOTHING},                  \
        {part ".megatron.*", NULL, NOTHING}, {part ".load_weight", NULL, NOTHING},                \
        {part ".router_replay.mode", "disabled", NOTHING},                                        \
        {part ".use_prefix_grouper", "false", NOTHING},                                           \
        {part ".use_remove_padding", "true", NOTHING},                                            \
        {part ".use_torch_compile", "true", NOTHING},                                             \
        {part ".use_torch_compile", NULL, REFUSED, NULL, NO_EAGER},                               \
        {part ".rollout_n", NULL, NOTHING},                                                       \
    {                                                                                             \
        part ".use_rollout_log_probs", NULL, NOTHING                                              \
    }

// The reference waits in host memory whatever its offload says (fsdp_workers.py: "We force
// reference policy to use CPUOffload").
const struct foreign_row worker_rows[] = {
    {"actor.strategy", "fsdp", FACT, "actor-strategy", "fsdp1"},
    {"actor.strategy", "fsdp2", FACT, "actor-strategy", "fsdp2"},
    {"actor.strategy", "megatron", REFUSED, NULL, NO_MEGATRON},
    {"actor.strategy", NULL, REFUSED, NULL, "only fsdp and fsdp2 are modelled"},
    {"actor.use_dynamic_bsz", NULL, FACT, "actor-dynamic"},
    {"actor.ppo_max_token_len_per_gpu", NULL, FACT, "actor-limit"},
    {"actor.ppo_micro_batch_size_per_gpu", NULL, FACT, "actor-micro"},
    {"actor.ppo_micro_batch_size", NULL, FACT, "actor-micro-all"},
    {"actor.ulysses_sequence_parallel_size", NULL, FACT, "actor-sp"},
    {"actor.fsdp_config.grad_offload", NULL, NOTHING}, // before verl 0.3, between steps
    {"actor.fsdp_config.optimizer_offload", "true", SETS, "offload", "optimizer"},
    {"actor.fsdp_config.optimizer_offload", "false", NOTHING},
    {"actor.fsdp_config.param_offload", "true", SETS, "offload", "all"},
    {"actor.fsdp_config.param_offload", "false", NOTHING},
    {"actor.fsdp_config.offload_policy", "true", SETS, "offload", "all"},
    {"actor.fsdp_config.offload_policy", "false", NOTHING},
    {"actor.fsdp_config.reshard_after_forward", "false", SETS, "reshard", "off"},
    {"actor.fsdp_config.reshard_after_forward", "true", NOTHING},
    {"actor.fsdp_config.forward_only", "false", NOTHING},
    {"actor.entropy_from_logits_with_chunking", "true", SETS, "entropy-saving", "on"},
    {"actor.entropy_from_logits_with_chunking", "false", NOTHING},
    {"actor.entropy_checkpointing", NULL, NOTHING}, // of itself a few values a token
    {"actor.use_fused_kernels", "true", SETS, "fused-kernels", "on"},
    {"actor.use_fused_kernels", "false", NOTHING},
    {"actor.calculate_sum_pi_squared", "false", NOTHING},
    {"actor.sum_pi_squared_checkpointing", "false", NOTHING},
    {"actor.freeze_vision_tower", NULL, NOTHING},
    {"actor.optim.optimizer", "adam", NOTHING},
    {"actor.optim.optimizer", "AdamW", NOTHING},
    {"actor.optim.optimizer", NULL, REFUSED, NULL, ONLY_ADAMW},
    {"actor.optim.optimizer_impl", "torch.optim", NOTHING},
    {"actor.optim.optimizer_impl", NULL, REFUSED, NULL, ONLY_ADAMW},
    {"actor.optim.override_optimizer_config.*", NULL, REFUSED, NULL, ONLY_ADAMW},
    {"actor.optim.*", NULL, NOTHING},
    {"actor.ppo_mini_batch_size", NULL, NOTHING}, // Trinity has its own
    {"actor.ppo_infer_max_token_len_per_gpu", NULL, NOTHING},
    {"actor.ppo_epochs", NULL, NOTHING},
    {"actor.shuffle", NULL, NOTHING},
    {"actor.data_loader_seed", NULL, NOTHING},
    {"actor.grad_clip", NULL, NOTHING},
    {"actor.fix_actor_microbatch_loss_scale", NULL, NOTHING},
    {"actor.loss_agg_mode", NULL, NOTHING},
    {"actor.loss_scale_factor", NULL, NOTHING},
    {"actor.clip_ratio*", NULL, NOTHING},
    {"actor.tau_*", NULL, NOTHING},
    {"actor.entropy_coeff", NULL, NOTHING},
    {"actor.use_kl_loss", NULL, NOTHING},
    {"actor.kl_loss_*", NULL, NOTHING},
    // Each makes a few numbers of a token's log-probability (trainer/ppo/core_algos.py).
    {"actor.policy_loss.loss_mode", "vanilla gspo sapo gpg clip_cov kl_cov geo_mean cispo",
     NOTHING},
    {"actor.policy_loss.loss_mode", NULL, REFUSED, NULL,
     "of verl's policy losses this is not read"},
    {"actor.policy_loss.*", NULL, NOTHING},
    FSDP_ROWS("actor"),

    {"ref.log_prob_use_dynamic_bsz", NULL, FACT, "ref-dynamic"},
    {"ref.log_prob_max_token_len_per_gpu", NULL, FACT, "ref-limit"},
    {"ref.log_prob_micro_batch_size_per_gpu", NULL, FACT, "ref-micro"},
    {"ref.log_prob_micro_batch_size", NULL, FACT, "ref-micro-all"},
    {"ref.ulysses_sequence_parallel_size", NULL, FACT, "ref-sp"},
    {"ref.strategy", "fsdp", FACT, "ref-strategy", "fsdp1"},
    {"ref.strategy", "fsdp2", FACT, "ref-strategy", "fsdp2"},
    {"ref.fsdp_config.param_offload", NULL, NOTHING},
    {"ref.fsdp_config.optimizer_offload", NULL, NOTHING},
    {"ref.fsdp_config.offload_policy", NULL, NOTHING},
    {"ref.fsdp_config.reshard_after_forward", "true", NOTHING},
    {"ref.fsdp_config.forward_only", "true", NOTHING},
    {"ref.entropy_from_logits_with_chunking", NULL, NOTHING}, // it computes no entropy
    {"ref.entropy_checkpointing", NULL, NOTHING},
    FSDP_ROWS("ref"),

    {"model.enable_gradient_checkpointing", "true", NOTHING},
    {"model.enable_gradient_checkpointing", "false", SETS, "checkpointing", "off"},
    {"model.use_fused_kernels", "true", SETS, "fused-kernels", "on"},
    {"model.use_fused_kernels", "false", NOTHING},
    {"model.fused_kernel_options.impl_backend", "torch", NOTHING},
    {"model.use_remove_padding", "true", NOTHING},
    {"model.use_remove_padding", "false", REFUSED, NULL,
     "padded batches are not modelled under verl: use_remove_padding=True"},
    {"model.enable_activation_offload", "false", NOTHING},
    {"model.enable_activation_offload", "true", REFUSED, NULL,
     "activations in host memory are not modelled under verl"},
    {"model.override_config.max_position_embeddings", NULL, NOTHING},
    {"model.use_liger", "false", NOTHING},
    {"model.lora_rank", "0", NOTHING},
    {"model.lora_rank", NULL, REFUSED, NULL, NO_LORA},
    {"model.lora_adapter_path", NULL, REFUSED, NULL, NO_LORA},
    {"model.lora_alpha", NULL, NOTHING},
    {"model.target_modules", NULL, NOTHING},
    {"model.exclude_modules", NULL, NOTHING},
    {"model.tiled_mlp.enabled", "false", NOTHING},
    {"model.tiled_mlp.num_shards", NULL, NOTHING},
    {"model.mtp.enable", "false", NOTHING},
    {"model.path", NULL, NOTHING}, // Trinity has its own
    {"model.tokenizer_path", NULL, NOTHING},
    {"model.custom_chat_template", NULL, NOTHING},
    {"model.trust_remote_code", NULL, NOTHING},
    {"model.use_shm", NULL, NOTHING},
    {"model.rope_scaling.*", NULL, NOTHING},
    {"model.rope_theta", NULL, NOTHING},
    {"model._target_", NULL, NOTHING},

    {"rollout.*", NULL, NOTHING}, // of the engine; Trinity's has GPUs of its own
    {"critic.enable", "true", REFUSED, NULL, "a critic beside the policy is not modelled"},
    {"critic.*", NULL, NOTHING}, // grpo has none
    {"reward_model.enable", "true", REFUSED, NULL, "a reward model beside it is not modelled"},
    {"reward_model.*", NULL, NOTHING},
    {"reward.reward_model.enable", "true", REFUSED, NULL,
     "a reward model beside it is not modelled"},
    {"reward.*", NULL, NOTHING},
    {"hybrid_engine", "true", NOTHING},
    {"nccl_timeout", NULL, NOTHING},
    {"synchronizer.*", NULL, NOTHING},
    {"explorer_name", NULL, NOTHING},
};
const ptrdiff_t worker_row_count = COUNT_OF(worker_rows);
