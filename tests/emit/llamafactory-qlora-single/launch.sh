#!/usr/bin/env bash
# LLaMA-Factory, sft: Qwen3-8B, 8192 tokens a sequence; sequences a step: 1.
# Predicted: safe. Peak 26.09 GiB reserved, 22.80 GiB allocated, of the 78.35 GiB that torch may take. Not measured: jobs of this kind.
# Arguments given here win over the file: bash launch.sh max_steps=3
set -euo pipefail
cd "$(dirname "$0")"
# Else llamafactory-cli turns expandable segments on for torchrun.
export OPTIM_TORCH=0
llamafactory-cli train llamafactory.yaml "$@"
