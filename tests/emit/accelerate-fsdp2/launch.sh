#!/usr/bin/env bash
# Qwen3-8B, 16384 tokens a sequence; sequences a step: 16.
# Predicted: safe. Peak 60.63 GiB reserved, 49.31 GiB allocated, of the 77.63 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-8B
    --context 16384
    --batch 1
    --accum 2
    --precision mixed
    --optimizer adamw
    --checkpointing
    --dataset data.jsonl
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
