#!/usr/bin/env bash
# axolotl, sft: Qwen3-14B, 8192 tokens a sequence; sequences a step: 8.
# Predicted: safe. Peak 24.40 GiB reserved, 19.36 GiB allocated, of the 77.63 GiB that torch may take. Host memory of a node: 333.30 GiB. Not measured: jobs of this kind.
# Arguments given here win over the file: bash launch.sh --max-steps 3
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
export NNODES=1
export NPROC_PER_NODE=8
accelerate launch --num_machines "$NNODES" --num_processes $((NNODES * NPROC_PER_NODE)) "${launch[@]}" \
    -m axolotl.cli.train axolotl.yaml "$@"
