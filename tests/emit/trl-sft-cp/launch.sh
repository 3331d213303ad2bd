#!/usr/bin/env bash
# TRL, sft: Qwen3-8B, 65536 tokens a sequence; sequences a step: 1.
# Predicted: safe. Peak 24.99 GiB reserved, 19.12 GiB allocated, of the 77.63 GiB that torch may take.
# Arguments given here win over the file: bash launch.sh --max_steps 3
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
# The model has 40960 positions; YaRN stretches them by 1.6000.
python3 yarn.py Qwen/Qwen3-8B model-yarn 1.6000
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
# TRL 1.14.1 and later go on from the newest checkpoint; earlier ones take the option
# and begin again.
save=checkpoints
newest=
[ ! -d "$save" ] ||
    newest=$(find "$save" -maxdepth 1 -name 'checkpoint-*' | sort -V | tail -n 1)
[ -z "$newest" ] || set -- --resume_from_checkpoint "$newest" "$@"
trl sft --config sft.yaml --accelerate_config accelerate.yaml "${launch[@]}" "$@"
