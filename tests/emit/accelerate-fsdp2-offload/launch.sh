#!/usr/bin/env bash
# Qwen3-32B, 8192 tokens a sequence; sequences a step: 8.
# Predicted: safe. Peak 27.12 GiB reserved, 20.74 GiB allocated, of the 77.63 GiB that torch may take. Host memory of a node: 488.19 GiB.
# With --trial: three steps on random weights and tokens, and the measured peaks.
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
arguments=(
    --model Qwen/Qwen3-32B
    --context 8192
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw
    --checkpointing
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
