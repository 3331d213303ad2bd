#!/usr/bin/env python3
"""Sets predictions beside four runs of Qwen3-30B-A3B's first four layers, by transformers' Trainer as rank 0 of 8 over
torch's fake process group on one H200 (torch 2.11, transformers 5.17, accelerate 1.15, DeepSpeed 0.19.8).

Usage: sharded_experts.py BUILD-FOLDER

What they allocate is predicted; what they reserve is not yet, which core/evidence/doubts.c says. Bars are what is reached.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BARS = {"fsdp1": (0.003, 12), "zero1": (0.87, 0.13), "zero2": (0.005, 10.4), "zero3": (0.42, 9.8)}    # percent


def predicted(program, row):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(row["config"], file)
        file.flush()
        settings = dict(row["settings"], model=file.name, network="none")    # the other ranks are played
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        done = subprocess.run([program, "predict", *words, "--json"], capture_output=True, text=True, check=False,
                              timeout=120)
    return json.loads(done.stdout)


def worst(steps, peaks, metric):
    return max(abs(100 * (mine[f"{metric}_bytes"] / peak[metric] - 1)) for mine, peak in zip(steps, peaks))


def main():
    failed = 0
    with open(os.path.join(HERE, "runs", "sharded_experts.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        reply, strategy = predicted(os.path.join(sys.argv[1], "fathom"), row), row["settings"]["strategy"]
        errors = [worst(reply["steps"], row["peaks"], metric) for metric in ("allocated", "reserved")]
        met = all(error <= bar for error, bar in zip(errors, BARS[strategy]))
        failed += not met
        print(f"{'met   ' if met else 'MISSED'} {strategy}: allocated {errors[0]:.3f} %, reserved {errors[1]:.2f} %")
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed or len(rows) != len(BARS) else 0


if __name__ == "__main__":
    sys.exit(main())
