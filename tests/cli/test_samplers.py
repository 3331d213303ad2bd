#!/usr/bin/env python3
"""Draws the batches that the libraries drew: every case of tests/data/samplers.json (scripts/record_samplers.py), asked with
--data, has the recorded batches in the steps that are played.

Usage: test_samplers.py BUILD-FOLDER
"""
import json
import os
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIRST = 16    # steps that are played as they come


def drawn(program, case, path):
    options = ["--model", "Qwen3-0.6B", "--layers", "1", "--gpu", f"{case.get('ranks', 1)}xH200", "--data", path,
               "--recipe", "transformers" if case["task"] == "hf" else "trl", "--context", case["context"],
               "--batch", case["batch"], "--accum", case.get("accum", 1), "--data-rank", case.get("rank", 0),
               "--batching", "packed" if case.get("packed") else "padded"]
    if case["task"] != "hf":
        options += ["--task", case["task"]]
    done = subprocess.run([program, "predict", *map(str, options), "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["batches"]


def said(batch, packed):
    return f"{batch['tokens']}{'=' if batch['even'] and not packed else ''}"


def seen_of(recorded):
    """Of a step's micro-batches: those that are simulated, which are three, the last of them the longest of the rest."""
    rest = recorded[2:]
    longest = max(rest, key=lambda text: int(text.rstrip("="))) if rest else None
    return recorded[:2] + ([longest] if rest else [])


def check(program, case):
    recorded = [step.split(",") for step in case["batches"].split("/")]
    whole = [step for step in recorded if len(step) == case.get("accum", 1)]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(case["lengths"].replace(" ", "\n"))
        file.flush()
        batches = drawn(program, case, file.name)
    steps = batches["steps"]
    numbers = [step["step"] for step in steps]
    assert batches.get("seed") == (None if case["task"] == "kto" else 42) and batches["rank"] == case.get("rank", 0), batches
    assert batches["steps_per_epoch"] in (len(whole), len(whole) - 1), (batches["steps_per_epoch"], len(whole))
    assert numbers[:FIRST] == list(range(1, min(FIRST, batches["steps_per_epoch"]) + 1)), numbers
    for step in steps:
        own = [said(batch, case.get("packed")) for batch in step["micro_batches"]]
        assert own == seen_of(whole[step["step"] - 1]), (step["step"], own, whole[step["step"] - 1])
    longest = max(int(text.rstrip("=")) for step in whole[:batches["steps_per_epoch"]] for text in step)
    assert longest == max(batch["tokens"] for step in steps for batch in step["micro_batches"]), longest


def main():
    program = os.path.join(sys.argv[1], "fathom")
    with open(os.path.join(TESTS, "data", "samplers.json"), encoding="utf-8") as file:
        cases = json.load(file)
    failed = 0
    for case in cases:
        name = ", ".join(f"{key} {value}" for key, value in case.items() if key not in ("lengths", "batches"))
        try:
            check(program, case)
        except (AssertionError, KeyError, ValueError) as error:
            failed += 1
            print(f"{name}: {error!r}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
