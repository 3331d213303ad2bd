#!/usr/bin/env bash
# Trinity-RFT, grpo: Qwen3-4B, 65536 tokens a sequence.
# Predicted not to fit: it would need 91.36 GiB of the 75.73 GiB that torch may take. Host memory of a node: 59.94 GiB. Prompts get 16384 tokens of the context and answers 49152, unless --prompt or --response says otherwise.
set -euo pipefail
cd "$(dirname "$0")"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
# Ray's workers see what was exported before 'ray start' on their node, and nothing
# that is exported later: export the allocator's setting there before starting Ray.
# Ray is started here unless a cluster is there already.
ray status >/dev/null 2>&1 ||
    ray start --head --num-gpus 5 --disable-usage-stats
trinity run --config trinity.yaml "$@"
