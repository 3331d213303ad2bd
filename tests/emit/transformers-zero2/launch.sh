#!/usr/bin/env bash
# Qwen3-0.6B, 4096 tokens a sequence; sequences a step: 4.
# Predicted: safe. Peak 19.99 GiB reserved, 17.50 GiB allocated, of the 77.63 GiB that torch may take. Not measured: jobs of this kind.
# With --trial: three steps on random weights and tokens, and the measured peaks.
# Predicted with --recipe transformers
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-0.6B
    --context 4096
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw-fused
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
