#!/usr/bin/env bash
# TRL, sft: Qwen3-0.6B, 8192 tokens a sequence; sequences a step: 1.
# Predicted: safe. Peak 5.39 GiB reserved, 5.16 GiB allocated, of the 139.05 GiB that torch may take.
# Arguments given here win over the file: bash launch.sh --max_steps 3
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
