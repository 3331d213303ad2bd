set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTORCH_ALLOC_CONF=expandable_segments:True
[ -f model-yarn/config.json ] ||
    python3 yarn.py Qwen/Qwen3-8B model-yarn 1.6000
launch=(${MASTER_PORT:+--main_process_port "$MASTER_PORT"})
save=checkpoints
newest=
[ ! -d "$save" ] ||
    newest=$(find "$save" -maxdepth 1 -name 'checkpoint-*' | sort -V | tail -n 1)
[ -z "$newest" ] || set -- --resume_from_checkpoint "$newest" "$@"
trl sft --config sft.yaml --accelerate_config accelerate.yaml "${launch[@]}" "$@"
