#!/usr/bin/env bash
# Trinity-RFT, grpo: Qwen3-8B, 16384 tokens a sequence.
# Peak not predicted: the training step of this task and framework is not modelled yet.
set -euo pipefail
cd "$(dirname "$0")"
# A Ray cluster of all nodes must be running: 'ray start --head' on the first, 'ray start
# --address' on the others; fathom emit --for slurm writes a job that does it.
trinity run --config trinity.yaml "$@"
