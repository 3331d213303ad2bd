#!/usr/bin/env bash
# Qwen3-8B, 65536 tokens a sequence; sequences a step: 2.
# Predicted: safe. Peak 60.35 GiB reserved, 45.50 GiB allocated, of the 77.63 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
set -euo pipefail
cd "$(dirname "$0")"
# The model has 40960 positions; YaRN stretches them by 1.6000.
python3 yarn.py Qwen/Qwen3-8B model-yarn 1.6000
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model model-yarn
    --context 65536
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw
    --checkpointing
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
