#!/usr/bin/env bash
# verl, GRPO: Qwen3-VL-8B-Instruct, 16384 tokens a sequence; answers a step: 128.
# Peak not predicted: Qwen3-VL is modelled in the plain step, transformers' Trainer and TRL's sft; for texts, with --freeze vision, in those of axolotl and llamafactory.
# Needs verl >= 0.8 (the layout of keys), with the vLLM that it names.
set -euo pipefail
cd "$(dirname "$0")"
overrides=(
    algorithm.adv_estimator=grpo
    algorithm.use_kl_in_reward=false
    # An example with images, as verl's examples/data_preprocess/geo3k.py writes it.
    data.train_files="$HOME/data/geo3k/train.parquet"
    data.val_files="$HOME/data/geo3k/test.parquet"
    data.image_key=images
    # Prompts a step; times rollout.n they are the 128 answers of one update.
    data.train_batch_size=16
    data.max_prompt_length=2048
    data.max_response_length=14336
    data.filter_overlong_prompts=true
    actor_rollout_ref.model.path=Qwen/Qwen3-VL-8B-Instruct
    actor_rollout_ref.model.use_remove_padding=true
    actor_rollout_ref.model.enable_gradient_checkpointing=true
    actor_rollout_ref.actor.strategy=fsdp2
    actor_rollout_ref.actor.fsdp_config.strategy=fsdp2
    actor_rollout_ref.ref.fsdp_config.strategy=fsdp2
    actor_rollout_ref.actor.optim.lr=1e-6
    actor_rollout_ref.actor.ppo_mini_batch_size=16
    # 1 sequences of full length in a micro-batch, divided by sp.
    actor_rollout_ref.actor.use_dynamic_bsz=true
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384
    actor_rollout_ref.actor.ulysses_sequence_parallel_size=1
    actor_rollout_ref.actor.use_kl_loss=true
    actor_rollout_ref.actor.kl_loss_coef=0.001
    actor_rollout_ref.actor.kl_loss_type=low_var_kl
    actor_rollout_ref.actor.entropy_coeff=0
    # The reference model waits in host memory.
    actor_rollout_ref.ref.fsdp_config.param_offload=true
    # The engine shares the GPUs and gives its memory back while training.
    actor_rollout_ref.rollout.name=vllm
    # GPUs an engine: 1. Each has 16.33 GiB of bf16 weights, 2.25 GiB of keys and values a full sequence
    # and 4.00 GiB for vLLM itself, in 47.46 GiB (0.6 of the card): room for 12 of them at once.
    actor_rollout_ref.rollout.tensor_model_parallel_size=1
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6
    actor_rollout_ref.rollout.free_cache_engine=true
    actor_rollout_ref.rollout.n=8
    trainer.n_gpus_per_node=8
    trainer.nnodes=1
    trainer.logger=console
    trainer.project_name=fathom
    trainer.experiment_name=Qwen3-VL-8B-Instruct-grpo
    trainer.default_local_dir=checkpoints
    trainer.save_freq=100
    trainer.test_freq=-1
    trainer.val_before_train=false
    trainer.total_epochs=1
)
python3 -m verl.trainer.main_ppo "${overrides[@]}" "$@"
