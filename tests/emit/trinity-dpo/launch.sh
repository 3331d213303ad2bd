#!/usr/bin/env bash
# Trinity-RFT, dpo: Qwen3-8B, 8192 tokens a sequence.
# Peak not predicted: dpo and kto under fsdp are not modelled: with TRL 1.16 the reference's forward failed inside FSDP2 when it was tried; ddp, zero2 and zero3 train them. A step has 64 pairs, which are 128 rows.
set -euo pipefail
cd "$(dirname "$0")"
# Ray is started here unless a cluster is there already.
ray status >/dev/null 2>&1 ||
    ray start --head --num-gpus 8 --disable-usage-stats
trinity run --config trinity.yaml "$@"
