#!/usr/bin/env bash
# Qwen3-0.6B, 8192 tokens a sequence; sequences a step: 1.
# Predicted: safe. Peak 32.88 GiB reserved, 32.72 GiB allocated, of the 139.05 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
# Predicted with --recipe transformers
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-0.6B
    --context 8192
    --batch 1
    --accum 1
    --precision bf16-autocast
    --optimizer adamw-fused
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
