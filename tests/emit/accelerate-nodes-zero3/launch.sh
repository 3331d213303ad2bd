#!/usr/bin/env bash
# Qwen3-14B, 16384 tokens a sequence; sequences a step: 32.
# Predicted: safe. Peak 71.38 GiB reserved, 43.59 GiB allocated, of the 77.63 GiB that torch may take.
# With --trial: three steps on random weights and tokens, and the measured peaks.
# Predicted with --recipe hf
set -euo pipefail
cd "$(dirname "$0")"
: "${MASTER_ADDR:?set it to the address of the first node}"
: "${NODE_RANK:?set it to 0 on the first node, 1 on the second, and so on}"
launch=(--machine_rank "$NODE_RANK" --main_process_ip "$MASTER_ADDR"
        --main_process_port "${MASTER_PORT:-29500}")
arguments=(
    --model Qwen/Qwen3-14B
    --context 16384
    --batch 1
    --accum 1
    --precision mixed
    --optimizer adamw
    --checkpointing
    --save-to checkpoints
)
accelerate launch --config_file accelerate.yaml "${launch[@]}" train.py "${arguments[@]}" "$@"
