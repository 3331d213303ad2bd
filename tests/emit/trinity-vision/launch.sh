#!/usr/bin/env bash
# Trinity-RFT, grpo: Qwen3-VL-4B-Instruct, 16384 tokens a sequence.
# Peak not predicted: Qwen3-VL is modelled in the plain step, transformers' Trainer and TRL's sft; for texts, with --freeze vision, in those of axolotl and llamafactory.
set -euo pipefail
cd "$(dirname "$0")"
# Ray is started here unless a cluster is there already.
ray status >/dev/null 2>&1 ||
    ray start --head --num-gpus 5 --disable-usage-stats
trinity run --config trinity.yaml "$@"
