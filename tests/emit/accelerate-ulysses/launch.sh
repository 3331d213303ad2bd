#!/usr/bin/env bash
# Qwen3-8B, 32768 tokens a sequence; sequences a step: 2.
# Predicted: safe. Peak 48.16 GiB reserved, 33.68 GiB allocated, of the 74.10 GiB that torch may take. Not measured: jobs of this kind. DeepSpeed's default bucket, up to 1.86 GiB more, is not in it; --for deepspeed writes a smaller one.
# With --trial: three steps on random weights and tokens, and the measured peaks.
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
