#!/usr/bin/env bash
# axolotl, sft: Qwen3-8B, 16384 tokens a sequence; sequences a step: 32.
# Predicted: safe. Peak 48.93 GiB reserved, 41.68 GiB allocated, of the 77.63 GiB that torch may take. Not measured: jobs of this kind.
# Arguments given here win over the file: bash launch.sh --max-steps 3
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
: "${MASTER_ADDR:?set it to the address of the first node}"
: "${NODE_RANK:?set it to 0 on the first node, 1 on the second, and so on}"
launch=(--machine_rank "$NODE_RANK" --main_process_ip "$MASTER_ADDR"
        --main_process_port "${MASTER_PORT:-29500}")
export NNODES=2
export NPROC_PER_NODE=8
accelerate launch --num_machines "$NNODES" --num_processes $((NNODES * NPROC_PER_NODE)) "${launch[@]}" \
    -m axolotl.cli.train axolotl.yaml "$@"
