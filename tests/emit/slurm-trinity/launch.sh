#!/usr/bin/env bash
# Trinity-RFT, grpo: Qwen3-8B, 16384 tokens a sequence.
# Predicted: safe. Peak 73.07 GiB reserved, 57.12 GiB allocated, of the 77.49 GiB that torch may take. Prompts get 4096 tokens of the context and answers 12288, unless --prompt or --response says otherwise.
set -euo pipefail
cd "$(dirname "$0")"
# A Ray cluster of all nodes must be running: 'ray start --head' on the first, 'ray start
# --address' on the others; fathom emit --for slurm writes a job that does it.
trinity run --config trinity.yaml "$@"
