#!/usr/bin/env bash
# axolotl, sft: gemma-3-4b-pt, 4096 tokens a sequence; sequences a step: 1.
# Peak not predicted: Gemma 3 with vision is modelled in the plain step, transformers' Trainer and TRL's sft; for texts, with --freeze vision, in those of axolotl and llamafactory.
# Arguments given here win over the file: bash launch.sh --max-steps 3
# Predicted with --images 1
# Predicted with --image-size 896x896
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
export NNODES=1
export NPROC_PER_NODE=1
accelerate launch --num_machines "$NNODES" --num_processes $((NNODES * NPROC_PER_NODE)) "${launch[@]}" \
    -m axolotl.cli.train axolotl.yaml "$@"
