#!/usr/bin/env bash
# LLaMA-Factory, sft: Llama-3.1-8B, 4096 tokens a sequence; sequences a step: 8.
# Predicted: safe. Peak 42.43 GiB reserved, 40.25 GiB allocated, of the 77.63 GiB that torch may take. Not measured: jobs of this kind.
# Arguments given here win over the file: bash launch.sh max_steps=3
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
export OPTIM_TORCH=1
export FORCE_TORCHRUN=1
export NPROC_PER_NODE=8
llamafactory-cli train llamafactory.yaml "$@"
