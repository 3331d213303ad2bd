#!/usr/bin/env bash
# Trinity-RFT, dpo: Qwen3-8B, 8192 tokens a sequence.
# Peak not predicted: of the tasks of Trinity-RFT the step of grpo is modelled. A step has 64 pairs, which are 128 rows.
set -euo pipefail
cd "$(dirname "$0")"
# Ray is started here unless a cluster is there already.
ray status >/dev/null 2>&1 ||
    ray start --head --num-gpus 8 --disable-usage-stats
trinity run --config trinity.yaml "$@"
