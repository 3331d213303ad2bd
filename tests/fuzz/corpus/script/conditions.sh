backend=fsdp
case $1 in a|b) x=1;; *) x=2;; esac
if [[ $backend == "megatron" ]]; then
    CONFIG=ppo_megatron_trainer
elif (( x > 1 )); then CONFIG=other
else # fsdp
    CONFIG=ppo_trainer
fi
[ -d "$x" ] || x=$(ls) && y=`pwd`
ACTOR="
    actor_rollout_ref.model.path=$HOME/models/Qwen3-8B \
    +actor_rollout_ref.actor.strategy=${backend}2
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=$((2 * (3 - 1)))"
while read -r line; do echo "$line"; done <hosts
python3 -m verl.trainer.main_ppo --config-name=$CONFIG algorithm.adv_estimator=grpo \
    trainer.n_gpus_per_node=$CARDS $ACTOR "${MORE[@]}" $@
