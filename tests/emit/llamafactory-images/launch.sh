#!/usr/bin/env bash
# LLaMA-Factory, sft: Qwen3-VL-8B-Instruct, 4096 tokens a sequence; sequences a step: 8.
# Peak not predicted: Qwen3-VL is modelled in the plain step, transformers' Trainer and TRL's sft; for texts, with --freeze vision, in those of axolotl and llamafactory.
# Arguments given here win over the file: bash launch.sh max_steps=3
# Predicted with --images 1
# Predicted with --image-size 1280x960
# Predicted with --freeze vision
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
export OPTIM_TORCH=1
export FORCE_TORCHRUN=1
export NPROC_PER_NODE=8
llamafactory-cli train llamafactory.yaml "$@"
