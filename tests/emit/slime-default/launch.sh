#!/usr/bin/env bash
# slime, grpo: Qwen3-8B, 32768 tokens a sequence; answers a step: 32.
# Peak not predicted: launch.sh chooses Megatron's sizes by a rule of thumb; where --tp and --cp are both given, the job is predicted. Megatron's sizes follow a rule of thumb that launch.sh states; nothing says that they fit. Prompts get 8192 tokens of the context and answers 24576, unless --prompt or --response says otherwise.
# Needs slime at 624b824 (2026-08) or later, with the sglang and Megatron of its image.
# SLIME and MEGATRON name the two checkouts.
# Predicted with --model Qwen/Qwen3-8B
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
SLIME=${SLIME:-$HOME/slime}
MEGATRON=${MEGATRON:-$HOME/Megatron-LM}
save=checkpoints
[[ $save = /* ]] || save=$here/$save
data=/data/prompts.jsonl
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
source "$SLIME/scripts/models/qwen3-8B.sh"
arguments=(
    --actor-num-nodes 1
    --actor-num-gpus-per-node 8
    --num-gpus-per-node 8
    # One set of GPUs trains and generates in turn.
    --colocate
    # GPUs an engine: 1. Each has 15.26 GiB of bf16 weights, 4.50 GiB of keys and values a full sequence
    # in 55.37 GiB (0.7 of the card): room for 8 of them at once.
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
    # 4 prompts x 8 answers = 32: one update.
    --rollout-batch-size 4
    --n-samples-per-prompt 8
    --global-batch-size 32
    --balance-data
    --rollout-max-context-len 32768
    --rollout-max-prompt-len 8192
    --rollout-max-response-len 24576
    --rollout-temperature 1
    --advantage-estimator grpo
    --label-key label
    --rm-type deepscaler
    --eps-clip 0.2
    --eps-clip-high 0.28
    --entropy-coef 0.00
    # No --use-kl-loss, not even with coefficient 0: it loads a reference model.
    # Not predicted, a rule of thumb: 22.88 GiB of weights, gradients and optimizer, 13.91 GiB of logits
    # and 4.63 GiB of activations are 41.42 GiB, under 63.28 GiB (80 % of the card).
    --tensor-model-parallel-size 4
    --sequence-parallel
    --pipeline-model-parallel-size 1
    --context-parallel-size 1
    --expert-model-parallel-size 1
    --expert-tensor-parallel-size 1
    --recompute-granularity full
    --recompute-method uniform
    --recompute-num-layers 1
    # 1 sequences of full length in a micro-batch, divided by cp.
    --use-dynamic-batch-size
    --max-tokens-per-gpu 32768
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
export CUDA_VISIBLE_DEVICES="${RAY_DEVICES:-0,1,2,3,4,5,6,7}"
ray status >/dev/null 2>&1 ||
    ray start --head --node-ip-address 127.0.0.1 --num-gpus 8 --disable-usage-stats \
        --dashboard-host 127.0.0.1 --dashboard-port 8265
environment='{"env_vars": {"PYTHONPATH": "'$MEGATRON'", "CUDA_DEVICE_MAX_CONNECTIONS": "1"'
cd "$SLIME"
ray job submit --address="${RAY_DASHBOARD:-http://127.0.0.1:8265}" --runtime-env-json="$environment}}" \
    -- python3 train.py "${arguments[@]}" "$@"
