#!/usr/bin/env bash
# LLaMA-Factory, reward: Qwen3-4B, 4096 tokens a sequence; pairs a step: 8, which are 16 rows.
# Peak not predicted: the training step of this task is not modelled here; of --recipe trl those of sft, reward, dpo, kto, grpo, rloo and distill are, and llamafactory's reward and dpo with adapters. A step has 8 pairs, which are 16 rows.
# Arguments given here win over the file: bash launch.sh max_steps=3
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
export OPTIM_TORCH=1
export FORCE_TORCHRUN=1
export NPROC_PER_NODE=8
llamafactory-cli train llamafactory.yaml "$@"
