#!/usr/bin/env bash
# Qwen3-8B, 262144 tokens a sequence; sequences a step: 1.
# Predicted not to fit: it would need 91.05 GiB of the 77.63 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
set -euo pipefail
cd "$(dirname "$0")"
# The model has 40960 positions; YaRN stretches them by 6.4000.
python3 yarn.py Qwen/Qwen3-8B model-yarn 6.4000
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model model-yarn
    --context 262144
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw
    --checkpointing
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
