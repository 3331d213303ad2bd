#!/usr/bin/env bash
# Trinity-RFT, grpo: Qwen3-8B, 16384 tokens a sequence.
# Predicted: tight. Peak 68.62 GiB reserved, 57.12 GiB allocated, of the 77.49 GiB that torch may take. Tight: after step 1 torch still flushes its cache to find room, once. Prompts get 4096 tokens of the context and answers 12288, unless --prompt or --response says otherwise.
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
# A Ray cluster of all nodes must be running: 'ray start --head' on the first, 'ray start
# --address' on the others; fathom emit --for slurm writes a job that does it.
# Ray's workers see what was exported before 'ray start' on their node, and nothing
# that is exported later: export the allocator's setting there before starting Ray.
trinity run --config trinity.yaml "$@"
