#!/usr/bin/env bash
# TRL, sft: gemma-3-4b-pt, 2048 tokens a sequence; sequences a step: 1.
# Peak not predicted: LoRA over Gemma 3 with vision is modelled for texts, without images.
# Arguments given here win over the file: bash launch.sh --max_steps 3
# Predicted with --images 1
# Predicted with --image-size 896x896
# Predicted with --context 2048
set -euo pipefail
cd "$(dirname "$0")"
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
# TRL 1.14.1 and later go on from the newest checkpoint; earlier ones take the option
# and begin again.
save=checkpoints
newest=
[ ! -d "$save" ] ||
    newest=$(find "$save" -maxdepth 1 -name 'checkpoint-*' | sort -V | tail -n 1)
[ -z "$newest" ] || set -- --resume_from_checkpoint "$newest" "$@"
trl sft --config sft.yaml --accelerate_config accelerate.yaml "${launch[@]}" "$@"
