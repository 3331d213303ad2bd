#!/usr/bin/env bash
# Qwen3-4B, 16384 tokens a sequence; sequences a step: 8.
# Predicted: safe. Peak 24.34 GiB reserved, 16.29 GiB allocated, of the 77.63 GiB that torch may take. Not measured: jobs of this kind.
# With --trial: three steps on random weights and tokens, and the measured peaks.
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-4B
    --context 16384
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw
    --checkpointing
    --liger-loss
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
