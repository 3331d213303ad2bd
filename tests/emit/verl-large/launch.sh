#!/usr/bin/env bash
# verl, GRPO: Qwen3-32B, 16384 tokens a sequence; answers a step: 256.
# Predicted: tight. Peak 36.61 GiB reserved, 29.20 GiB allocated, of the 37.12 GiB that torch may take. Tight: 525 MiB is free, and 5.76 GiB should be: torch may reserve 4.39 GiB more than predicted, 12 % as in 20 of 21 jobs that others published, as this kind was not measured, and 1.37 GiB more may live outside it; after step 1 torch still flushes its cache to find room, once. Host memory of a node: 244.10 GiB. Not measured: jobs of this kind. Prompts get 4096 tokens of the context and answers 12288, unless --prompt or --response says otherwise.
# Needs verl >= 0.8 (the layout of keys), with the vLLM that it names.
set -euo pipefail
cd "$(dirname "$0")"
# A Ray cluster of all nodes must be running: 'ray start --head' on the first, 'ray start
# --address' on the others; fathom emit --for slurm writes a job that does it.
overrides=(
    algorithm.adv_estimator=grpo
    algorithm.use_kl_in_reward=false
    # An example: put your own here.
    data.train_files="$HOME/data/gsm8k/train.parquet"
    data.val_files="$HOME/data/gsm8k/test.parquet"
    # Prompts a step; times rollout.n they are the 256 answers of one update.
    data.train_batch_size=64
    data.max_prompt_length=4096
    data.max_response_length=12288
    data.filter_overlong_prompts=true
    actor_rollout_ref.model.path=Qwen/Qwen3-32B
    actor_rollout_ref.model.use_remove_padding=true
    actor_rollout_ref.model.enable_gradient_checkpointing=true
    actor_rollout_ref.actor.strategy=fsdp2
    actor_rollout_ref.actor.fsdp_config.strategy=fsdp2
    actor_rollout_ref.ref.fsdp_config.strategy=fsdp2
    actor_rollout_ref.actor.optim.lr=1e-6
    actor_rollout_ref.actor.ppo_mini_batch_size=64
    # 1 sequences of full length in a micro-batch, divided by sp.
    actor_rollout_ref.actor.use_dynamic_bsz=true
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384
    actor_rollout_ref.actor.ulysses_sequence_parallel_size=1
    actor_rollout_ref.actor.use_kl_loss=true
    actor_rollout_ref.actor.kl_loss_coef=0.001
    actor_rollout_ref.actor.kl_loss_type=low_var_kl
    actor_rollout_ref.actor.entropy_coeff=0
    actor_rollout_ref.actor.fsdp_config.param_offload=true
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=true
    actor_rollout_ref.actor.fsdp_config.offload_policy=true
    # The reference model waits in host memory.
    actor_rollout_ref.ref.fsdp_config.param_offload=true
    # The engine shares the GPUs and gives its memory back while training.
    actor_rollout_ref.rollout.name=vllm
    # GPUs an engine: 4. Each has 15.26 GiB of bf16 weights, 1.00 GiB of keys and values a full sequence
    # and 4.00 GiB for vLLM itself, in 23.63 GiB (0.6 of the card): room for 4 of them at once.
    actor_rollout_ref.rollout.tensor_model_parallel_size=4
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6
    actor_rollout_ref.rollout.free_cache_engine=true
    actor_rollout_ref.rollout.n=4
    trainer.n_gpus_per_node=8
    trainer.nnodes=2
    trainer.logger=console
    trainer.project_name=fathom
    trainer.experiment_name=Qwen3-32B-grpo
    trainer.default_local_dir=checkpoints
    trainer.save_freq=100
    trainer.test_freq=-1
    trainer.val_before_train=false
    trainer.total_epochs=1
)
python3 -m verl.trainer.main_ppo "${overrides[@]}" "$@"
