#!/usr/bin/env bash
# Qwen3-4B, 4096 tokens a sequence; sequences a step: 32.
# Predicted: safe. Peak 62.59 GiB reserved, 56.75 GiB allocated, of the 77.63 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
# Predicted with --recipe transformers
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-4B
    --context 4096
    --batch 1
    --accum 8
    --precision mixed
    --optimizer adamw-fused
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
