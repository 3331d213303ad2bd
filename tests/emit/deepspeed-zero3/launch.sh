#!/usr/bin/env bash
# Qwen3-8B, 16384 tokens a sequence; sequences a step: 4.
# Predicted: safe. Peak 44.83 GiB reserved, 33.64 GiB allocated, of the 75.54 GiB that torch may take. Not measured: jobs of this kind.
# With --trial: three steps on random weights and tokens, and the measured peaks.
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-8B
    --context 16384
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw
    --checkpointing
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
