#!/usr/bin/env bash
# LLaMA-Factory, sft: Qwen3-14B, 8192 tokens a sequence; sequences a step: 16.
# Predicted: safe. Peak 38.74 GiB reserved, 33.12 GiB allocated, of the 77.63 GiB that torch may take. Not measured: jobs of this kind.
# Arguments given here win over the file: bash launch.sh max_steps=3
set -euo pipefail
cd "$(dirname "$0")"
# Else llamafactory-cli turns expandable segments on for torchrun.
export OPTIM_TORCH=0
: "${MASTER_ADDR:?set it to the address of the first node}"
: "${NODE_RANK:?set it to 0 on the first node, 1 on the second, and so on}"
export MASTER_ADDR NODE_RANK MASTER_PORT="${MASTER_PORT:-29500}"
export NNODES=2
export FORCE_TORCHRUN=1
export NPROC_PER_NODE=8
llamafactory-cli train llamafactory.yaml "$@"
