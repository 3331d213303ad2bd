#!/usr/bin/env python3
"""Models and cards by the names of public reports: nearly all are answered, without a network.

Usage: names.py BUILD-FOLDER

Of the names in tests/runs/public_reports.jsonl that name one model or one card, 95 % have an answer: a prediction, or
one sentence that says what is known (how many parameters, how its weights are packed) and what to do.
"""
import json
import os
import re
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEAST = 0.95
NONE = re.compile(r"there is no (model|GPU)|downloads are turned off")
UNNAMED = {"not stated", "7B (6650M params)"}  # no one's name


def answer(program, *options):
    environment = {"HF_HUB_OFFLINE": "1", "HOME": "/nonexistent", "PATH": os.environ["PATH"]}
    done = subprocess.run([program, "predict", "--context", "512", "--layers", "1", *options], capture_output=True,
                          text=True, env=environment, check=False)
    return done.returncode in (0, 1) or (done.returncode == 2 and not NONE.search(done.stderr))


def main():
    program = os.path.join(sys.argv[1], "fathom")
    with open(os.path.join(TESTS, "runs", "public_reports.jsonl"), encoding="utf-8") as file:
        reports = [json.loads(line) for line in file]
    asked = {
        "models": (sorted({r["model"] for r in reports if r.get("model")} - UNNAMED), ("--gpu", "H200", "--model")),
        "cards": (sorted({r["gpu"] for r in reports if r.get("gpu")} - UNNAMED), ("--model", "Qwen3-0.6B", "--gpu")),
    }
    failed = False
    for what, (names, options) in asked.items():
        left = [name for name in names if not answer(program, *options, name)]
        failed |= len(left) > (1 - LEAST) * len(names)
        print(f"{what}: {len(names) - len(left)} of {len(names)} answered", *left, sep="\n  ")
    sys.exit(failed)


if __name__ == "__main__":
    main()
