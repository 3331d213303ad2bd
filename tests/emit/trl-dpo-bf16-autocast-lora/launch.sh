#!/usr/bin/env bash
# TRL, dpo: Qwen3-4B, 4096 tokens a sequence; pairs a step: 1, which are 2 rows.
# Predicted: safe. Peak 12.12 GiB reserved, 11.30 GiB allocated, of the 139.05 GiB that torch may take. A step has 1 pair, which is 2 rows.
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
trl dpo --config dpo.yaml --accelerate_config accelerate.yaml "${launch[@]}" "$@"
