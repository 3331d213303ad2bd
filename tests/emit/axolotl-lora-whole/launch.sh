#!/usr/bin/env bash
# axolotl, sft: Llama-3.1-8B, 4096 tokens a sequence; sequences a step: 1.
# Predicted: safe. Peak 30.56 GiB reserved, 28.33 GiB allocated, of the 78.35 GiB that torch may take. Not measured: jobs of this kind.
# Arguments given here win over the file: bash launch.sh --max-steps 3
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
export NNODES=1
export NPROC_PER_NODE=1
accelerate launch --num_machines "$NNODES" --num_processes $((NNODES * NPROC_PER_NODE)) "${launch[@]}" \
    -m axolotl.cli.train axolotl.yaml "$@"
