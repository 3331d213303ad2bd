#!/usr/bin/env bash
# Trinity-RFT, capacity: Qwen3-0.6B, 20480 tokens a sequence.
# Predicted: safe. Peak 64.48 GiB reserved, 53.63 GiB allocated, of the 77.64 GiB that torch may take. Prompts get 2048 tokens of the context and answers 18432, unless --prompt or --response says otherwise.
set -euo pipefail
cd "$(dirname "$0")"
# Ray is started here unless a cluster is there already.
ray status >/dev/null 2>&1 ||
    ray start --head --num-gpus 3 --disable-usage-stats
trinity run --config trinity.yaml --plugin-dir . "$@"
