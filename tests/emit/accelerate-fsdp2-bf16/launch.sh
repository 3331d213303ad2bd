#!/usr/bin/env bash
# Qwen3-8B, 16384 tokens a sequence; sequences a step: 8.
# Predicted not to fit: it would need 174.09 GiB of the 77.63 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-8B
    --context 16384
    --batch 1
    --accum 1
    --precision bf16
    --optimizer adamw-fused
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
