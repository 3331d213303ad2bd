#!/usr/bin/env bash
# slime, grpo: Qwen3-30B-A3B, 32768 tokens a sequence; answers a step: 64.
# Peak not predicted: launch.sh chooses Megatron's sizes by a rule of thumb; where --tp and --cp are both given, the job is predicted. Megatron's sizes follow a rule of thumb that launch.sh states; nothing says that they fit. Prompts get 8192 tokens of the context and answers 24576, unless --prompt or --response says otherwise.
# Needs slime at 624b824 (2026-08) or later, with the sglang and Megatron of its image.
# SLIME and MEGATRON name the two checkouts.
# Predicted with --model Qwen/Qwen3-30B-A3B
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
SLIME=${SLIME:-$HOME/slime}
MEGATRON=${MEGATRON:-$HOME/Megatron-LM}
save=checkpoints
[[ $save = /* ]] || save=$here/$save
data=/data/prompts.jsonl
[[ $data = /* ]] || data=$here/$data
model=Qwen/Qwen3-30B-A3B
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
source "$SLIME/scripts/models/qwen3-30B-A3B.sh"
arguments=(
    --actor-num-nodes 2
    --actor-num-gpus-per-node 8
    --num-gpus-per-node 8
    --rollout-num-gpus 8
    # GPUs an engine: 1. Each has 56.87 GiB of bf16 weights, 3.00 GiB of keys and values a full sequence
    # in 67.23 GiB (0.85 of the card): room for 3 of them at once.
    --sglang-mem-fraction-static 0.85
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
    # 8 prompts x 8 answers = 64: one update.
    --rollout-batch-size 8
    --n-samples-per-prompt 8
    --global-batch-size 64
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
    # Not predicted, a rule of thumb: 22.40 GiB of weights, gradients and optimizer, 13.91 GiB of logits
    # and 2.69 GiB of activations are 39.00 GiB, under 63.28 GiB (80 % of the card).
    --tensor-model-parallel-size 4
    --sequence-parallel
    --pipeline-model-parallel-size 1
    --context-parallel-size 1
    --expert-model-parallel-size 8
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
    --optimizer-cpu-offload
    --overlap-cpu-optimizer-d2h-h2d
    --use-precision-aware-optimizer
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --accumulate-allreduce-grads-in-fp32
    --attention-softmax-in-fp32
    --attention-backend flash
)
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
# A Ray cluster of all nodes must be running: 'ray start --head' on the first, 'ray start
# --address' on the others; fathom emit --for slurm writes a job that does it.
# Ray's workers see what was exported before 'ray start' on their node, and nothing
# that is exported later: export the allocator's setting there before starting Ray.
environment='{"env_vars": {"PYTHONPATH": "'$MEGATRON'", "CUDA_DEVICE_MAX_CONNECTIONS": "1"'
environment+=', "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"'
environment+=', "PYTORCH_ALLOC_CONF": "expandable_segments:True"'
cd "$SLIME"
ray job submit --address="${RAY_DASHBOARD:-http://127.0.0.1:8265}" --runtime-env-json="$environment}}" \
    -- python3 train.py "${arguments[@]}" "$@"
