#!/bin/bash
set -ex
HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
source "${HERE}/models/small.sh"
if [ -z "$CARDS" ] || [ "$CARDS" -le 0 ]; then
    CARDS=8
fi
SIZES=(
   --tensor-model-parallel-size 2
   --sequence-parallel
   # --micro-batch-size 1
   --use-dynamic-batch-size
   --max-tokens-per-gpu $((1024 * 9))
)
LAYERS=12
MODEL_ARGS=(--num-layers $((LAYERS * 3)) --rotary-base "${BASE:-1000000}")
for i in 1 2; do SIZES+=(--odd $i); done
VARIABLES="{
  \"env_vars\": {
    \"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True\"
  }
}"
cat <<'END' >/dev/null
--never "read
END
ray job submit --runtime-env-json="${VARIABLES}" \
   -- python3 train.py \
   --actor-num-nodes 1 \
   --actor-num-gpus-per-node ${CARDS} \
   --hf-checkpoint ${ROOT:-/root}/Qwen3-4B-FP8 \
   --global-batch-size 64 --rollout-max-response-len 8192 \
   --attention-dropout 0.0 --hidden-dropout 0.0 --entropy-coef 0.00 \
   --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
   ${MODEL_ARGS[@]} "${SIZES[@]}" ${NONE[@]} 2>&1 | tee log
