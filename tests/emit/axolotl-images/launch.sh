#!/usr/bin/env bash
# axolotl, sft: Qwen2.5-VL-7B-Instruct, 4096 tokens a sequence; sequences a step: 8.
# Peak not predicted: Qwen2.5-VL is modelled in the plain step, transformers' Trainer and TRL's sft; for texts, with --freeze vision, in those of axolotl and llamafactory.
# Arguments given here win over the file: bash launch.sh --max-steps 3
# Predicted with --images 2
# Predicted with --image-size 640x480
# Predicted with --freeze vision
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
export NNODES=1
export NPROC_PER_NODE=8
accelerate launch --num_machines "$NNODES" --num_processes $((NNODES * NPROC_PER_NODE)) "${launch[@]}" \
    -m axolotl.cli.train axolotl.yaml "$@"
