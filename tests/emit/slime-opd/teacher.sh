#!/usr/bin/env bash
# The teacher: it only reads sequences and scores their tokens.
set -euo pipefail
export CUDA_VISIBLE_DEVICES="${TEACHER_DEVICES:-4,5}"
exec python3 -m sglang.launch_server \
    --model-path Qwen/Qwen3-32B \
    --host 0.0.0.0 \
    --port "${TEACHER_PORT:-13141}" \
    --tp 2 \
    --chunked-prefill-size 4096 \
    --mem-fraction-static 0.85
