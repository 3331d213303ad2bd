#!/usr/bin/env bash
# Trinity-RFT, distill: Qwen3-8B, 8192 tokens a sequence.
# Peak not predicted: of the tasks of Trinity-RFT the step of grpo is modelled. Prompts get 2048 tokens of the context and answers 6144, unless --prompt or --response says otherwise.
set -euo pipefail
cd "$(dirname "$0")"
# Ray is started here unless a cluster is there already.
ray status >/dev/null 2>&1 ||
    ray start --head --num-gpus 8 --disable-usage-stats
trinity run --config trinity.yaml "$@"
