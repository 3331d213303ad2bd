#!/usr/bin/env bash
# Qwen3-0.6B, 8192 tokens a sequence; sequences a step: 4.
# Predicted: safe. Peak 23.86 GiB reserved, 18.92 GiB allocated, of the 77.63 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-0.6B
    --context 8192
    --batch 1
    --accum 1
    --precision bf16
    --optimizer adamw
    --checkpointing
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
