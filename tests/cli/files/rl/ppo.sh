# A run of verl, put together out of variables.
prompt=$((1024 * 2))
answer=$((1024 * 6))
backend=fsdp2
ACTOR="
    actor_rollout_ref.model.path=$HOME/models/Qwen3-8B \
    actor_rollout_ref.actor.strategy=$backend \
    actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$(((prompt + answer) * 2)) \
    actor_rollout_ref.actor.ppo_mini_batch_size=32"
if [[ $backend == "megatron" ]]; then
    CONFIG=ppo_megatron_trainer
else
    CONFIG=ppo_trainer
fi
python3 -m verl.trainer.main_ppo \
    --config-name=$CONFIG \
    algorithm.adv_estimator=rloo \
    data.max_prompt_length=$prompt \
    data.max_response_length=$answer \
    actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.actor.fsdp_config.param_offload=True \
    trainer.n_gpus_per_node=$GPUS_OF_A_NODE \
    $ACTOR $@
