#!/usr/bin/env bash
# slime, distill: Qwen3-8B, 16384 tokens a sequence; answers a step: 16.
# Peak not predicted: launch.sh chooses Megatron's sizes by a rule of thumb; where --tp and --cp are both given, the job is predicted. Megatron's sizes follow a rule of thumb that launch.sh states; nothing says that they fit. Prompts get 4096 tokens of the context and answers 12288, unless --prompt or --response says otherwise.
# Needs slime at 624b824 (2026-08) or later, with the sglang and Megatron of its image.
# SLIME and MEGATRON name the two checkouts.
# Predicted with --model Qwen/Qwen3-8B
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
SLIME=${SLIME:-$HOME/slime}
MEGATRON=${MEGATRON:-$HOME/Megatron-LM}
save=checkpoints
[[ $save = /* ]] || save=$here/$save
data='my data.jsonl'
[[ $data = /* ]] || data=$here/$data
model=Qwen/Qwen3-8B
[[ ! -d $here/$model ]] || model=$here/$model
download='import sys, huggingface_hub as hub; print(hub.snapshot_download(sys.argv[1]))'
[ -d "$model" ] || model=$(python3 -c "$download" "$model")
load=$model
[ ! -f "$save/latest_checkpointed_iteration.txt" ] || load=$save
# Ray makes one line of shell text of a job's words and quotes only spaces (2.49).
special='[][:cntrl:]"'\''`$\;&|<>(){}[*?!#~^]'
for path in "$save" "$data" "$model"; do
    if [[ $path =~ $special ]]; then
        echo "Ray would run this path as text of a shell's: $path" >&2
        exit 2
    fi
done
# The teacher has its own GPUs; it is ended with this script, and nothing else is.
bash "$here/teacher.sh" >"$here/teacher.log" 2>&1 &
teacher=$!
trap 'kill "$teacher" 2>/dev/null || true' EXIT
TEACHER_URL=http://127.0.0.1:${TEACHER_PORT:-13141}
until curl -sf "$TEACHER_URL/health_generate" >/dev/null; do
    kill -0 "$teacher" || { tail -n 20 "$here/teacher.log"; exit 1; }
    sleep 5
done
source "$SLIME/scripts/models/qwen3-8B.sh"
arguments=(
    --actor-num-nodes 1
    --actor-num-gpus-per-node 4
    --num-gpus-per-node 4
    # One set of GPUs trains and generates in turn.
    --colocate
    # GPUs an engine: 1. Each has 15.26 GiB of bf16 weights, 2.25 GiB of keys and values a full sequence
    # in 55.37 GiB (0.7 of the card): room for 17 of them at once.
    --sglang-mem-fraction-static 0.7
    --rollout-num-gpus-per-engine 1
    "${MODEL_ARGS[@]}"
    --hf-checkpoint "$model"
    --load "$load"
    --save "$save"
    --save-interval 20
    --prompt-data "$data"
    --input-key prompt
    --apply-chat-template
    --rollout-shuffle
    --num-rollout 300
    # 2 prompts x 8 answers = 16: one update.
    --rollout-batch-size 2
    --n-samples-per-prompt 8
    --global-batch-size 16
    --balance-data
    --rollout-max-context-len 16384
    --rollout-max-prompt-len 4096
    --rollout-max-response-len 12288
    --rollout-temperature 1
    --advantage-estimator grpo
    --use-opd
    --opd-type sglang
    --opd-kl-coef 1.0
    --custom-rm-path slime.rollout.on_policy_distillation.reward_func
    --custom-reward-post-process-path slime.rollout.on_policy_distillation.post_process_rewards
    --rm-url "$TEACHER_URL/generate"
    --entropy-coef 0.00
    # No --use-kl-loss, not even with coefficient 0: it loads a reference model.
    # Not predicted, a rule of thumb: 45.77 GiB of weights, gradients and optimizer, 6.96 GiB of logits
    # and 2.31 GiB of activations are 55.04 GiB, under 63.28 GiB (80 % of the card).
    --tensor-model-parallel-size 2
    --sequence-parallel
    --pipeline-model-parallel-size 1
    --context-parallel-size 2
    --expert-model-parallel-size 1
    --expert-tensor-parallel-size 1
    --recompute-granularity full
    --recompute-method uniform
    --recompute-num-layers 1
    # 1 sequences of full length in a micro-batch, divided by cp.
    --use-dynamic-batch-size
    --max-tokens-per-gpu 8192
    --optimizer adam
    --lr 1e-6
    --lr-decay-style constant
    --weight-decay 0.1
    --adam-beta1 0.9
    --adam-beta2 0.98
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --accumulate-allreduce-grads-in-fp32
    --attention-softmax-in-fp32
    --attention-backend flash
)
# Ray gets these GPUs and no others.
export CUDA_VISIBLE_DEVICES="${RAY_DEVICES:-0,1,2,3}"
ray status >/dev/null 2>&1 ||
    ray start --head --node-ip-address 127.0.0.1 --num-gpus 4 --disable-usage-stats \
        --dashboard-host 127.0.0.1 --dashboard-port 8265
environment='{"env_vars": {"PYTHONPATH": "'$MEGATRON'", "CUDA_DEVICE_MAX_CONNECTIONS": "1"'
cd "$SLIME"
ray job submit --address="${RAY_DASHBOARD:-http://127.0.0.1:8265}" --runtime-env-json="$environment}}" \
    -- python3 train.py "${arguments[@]}" "$@"
