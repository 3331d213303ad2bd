#!/usr/bin/env bash
# Qwen3-8B, 32768 tokens a sequence; sequences a step: 8.
# Predicted: safe. Peak 34.74 GiB reserved, 27.73 GiB allocated, of the 77.63 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
# Predicted with --recipe transformers
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-8B
    --context 32768
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw-fused
    --checkpointing
    --liger-loss
    --liger-layers
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
