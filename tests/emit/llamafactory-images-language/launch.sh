#!/usr/bin/env bash
# LLaMA-Factory, sft: Qwen2.5-VL-7B-Instruct, 4096 tokens a sequence; sequences a step: 8.
# Peak not predicted: Qwen2.5-VL is modelled in the plain step, transformers' Trainer and TRL's sft; for texts, with --freeze vision, in those of axolotl and llamafactory.
# Arguments given here win over the file: bash launch.sh max_steps=3
# Predicted with --images 1
# Predicted with --image-size 640x480
# Predicted with --freeze language
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
accelerate launch --config_file accelerate.yaml "${launch[@]}" \
    -m llamafactory.launcher llamafactory.yaml "$@"
