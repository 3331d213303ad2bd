#!/usr/bin/env bash
# Qwen3-8B, 32768 tokens a sequence; sequences a step: 2.
# Predicted: safe. Peak 48.16 GiB reserved, 33.68 GiB allocated, of the 74.10 GiB that torch may take. Not measured: jobs of this kind.
# With --trial: three steps on random weights and tokens, and the measured peaks.
# Predicted with --recipe hf
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-8B
    --context 32768
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw
    --checkpointing
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
