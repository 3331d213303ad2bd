#!/usr/bin/env bash
# TRL, sft: Qwen3-8B, 4096 tokens a sequence; sequences a step: 16.
# Predicted: safe. Peak 26.72 GiB reserved, 19.70 GiB allocated, of the 77.63 GiB that torch may take. Not measured: jobs of this kind.
# Arguments given here win over the file: bash launch.sh --max_steps 3
set -euo pipefail
cd "$(dirname "$0")"
: "${MASTER_ADDR:?set it to the address of the first node}"
: "${NODE_RANK:?set it to 0 on the first node, 1 on the second, and so on}"
launch=(--machine_rank "$NODE_RANK" --main_process_ip "$MASTER_ADDR"
        --main_process_port "${MASTER_PORT:-29500}")
# TRL 1.14.1 and later go on from the newest checkpoint; earlier ones take the option
# and begin again.
save=checkpoints
newest=
[ ! -d "$save" ] ||
    newest=$(find "$save" -maxdepth 1 -name 'checkpoint-*' | sort -V | tail -n 1)
[ -z "$newest" ] || set -- --resume_from_checkpoint "$newest" "$@"
trl sft --config sft.yaml --accelerate_config accelerate.yaml "${launch[@]}" "$@"
