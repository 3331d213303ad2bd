#!/bin/bash
# A run of slime: its model's arguments are in a file beside it.
export PYTHONUNBUFFERED=1
HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
source "${HERE}/models/qwen3-4B.sh"
NUM_GPUS=${NUM_GPUS:-8}

CKPT_ARGS=(
   --hf-checkpoint ${BASE_FOLDER}/Qwen3-4B/
   --ref-load ${BASE_FOLDER}/Qwen3-4B_torch_dist
)
ROLLOUT_ARGS=(
   --prompt-data /data/prompts.jsonl
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len 8192
   --global-batch-size 256
)
PERF_ARGS=(
   --tensor-model-parallel-size 2
   --sequence-parallel
   --recompute-granularity full
   --recompute-method uniform
   --recompute-num-layers 1

   # --micro-batch-size 1
   --use-dynamic-batch-size
   --max-tokens-per-gpu $((1024 * 9))
)
MISC_ARGS=(
   --advantage-estimator grpo
   --entropy-coef 0.00
   --attention-dropout 0.0
   --hidden-dropout 0.0
   --attention-backend flash
)
VARIABLES="{
  \"env_vars\": {
    \"PYTHONPATH\": \"/opt/Megatron-LM/\"
  }
}"
ray job submit --runtime-env-json="${VARIABLES}" \
   -- python3 train.py \
   --actor-num-nodes 1 \
   --actor-num-gpus-per-node ${NUM_GPUS} \
   ${MODEL_ARGS[@]} \
   ${CKPT_ARGS[@]} \
   ${ROLLOUT_ARGS[@]} \
   "${PERF_ARGS[@]}" \
   "${MISC_ARGS[@]}" 2>&1 | tee run.log
