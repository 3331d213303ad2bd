#!/usr/bin/env bash
# LLaMA-Factory, sft: Qwen3-8B, 16384 tokens a sequence; sequences a step: 16.
# Predicted: safe. Peak 60.04 GiB reserved, 49.31 GiB allocated, of the 77.63 GiB that torch may take. Not measured: jobs of this kind.
# Arguments given here win over the file: bash launch.sh max_steps=3
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
accelerate launch --config_file accelerate.yaml "${launch[@]}" \
    -m llamafactory.launcher llamafactory.yaml "$@"
