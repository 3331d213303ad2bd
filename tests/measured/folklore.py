#!/usr/bin/env python3
"""Sets `fathom plan` beside what folklore trains with, in predicted seconds of a step.

Usage: folklore.py BUILD-FOLDER      (UPDATE=1 rewrites the table of docs/guides/zero3-scaling.md)

Folklore is ZeRO-3 with checkpointing and an offloaded optimizer, and the largest micro-batch that fits with
checkpointing, as the plan's own table has them. The plan may not be slower than either where they are safe, and the guide's
table is what is printed.
"""
import json
import os
import subprocess
import sys

CASES = [
    "--recipe trl --model Qwen3-0.6B --gpu H200 --context 2048 --global-batch 16",
    "--recipe trl --model Qwen3-1.7B --gpu H100-80G --context 4096 --global-batch 8",
    "--recipe trl --model Qwen3-8B --gpu RTX4090 --context 2048 --global-batch 8 --lora 16 --quantize nf4 --precision bf16",
    "--recipe trl --model Qwen3-4B --gpu 4xA100-80G --context 4096 --global-batch 32",
    "--recipe trl --task reward --model Qwen3-4B --gpu 8xRTX4090 --context 2048 --global-batch 128",
    "--recipe trl --model Qwen3-8B --gpu 8xH100-80G --context 8192 --global-batch 64",
    "--recipe trl --model Qwen3-14B --gpu 8xH100-80G --context 4096 --global-batch 64",
    "--recipe transformers --model Llama-3.2-1B --gpu 2xRTX4090 --context 2048 --global-batch 32",
    "--recipe transformers --model Qwen3-4B --gpu 8xL40S --context 4096 --global-batch 64",
    "--recipe deepspeed --model Qwen3-8B --gpu 8xA100-80G --context 4096 --global-batch 64",
]
GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "guides", "zero3-scaling.md")
FOLKLORE = ["ZeRO-3, checkpointing, offload", "the largest micro-batch"]


def ask(program, case):
    done = subprocess.run([program, "plan", *case.split(), "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=600)
    return json.loads(done.stdout)


def seconds(answer):
    """Of the best, and of each folklore; None where it is not safe."""
    found = {row["what"]: row["time"]["step_s"] for row in answer["alternatives"]
             if row["verdict"] == "safe" and row.get("time")}
    return answer["best"]["time"]["step_s"], [found.get(what) for what in FOLKLORE]


def cell(value, best):
    return f"{value:.3g} s ({value / best:.2f} times)" if value else "the same, or not safe"


def stands_in_guide(table):
    """Whether the guide has the table, which ends it; written there where that is asked for."""
    with open(GUIDE, encoding="utf-8") as file:
        text = file.read()
    before = text[:text.index(table[0])]
    wanted = before + "\n".join(table) + "\n"
    if os.environ.get("UPDATE"):
        with open(GUIDE, "w", encoding="utf-8") as file:
            file.write(wanted)
    return text == wanted


def main():
    program, slower, lines = os.path.join(sys.argv[1], "fathom"), 0, []
    for case in CASES:
        answer = ask(program, case)
        best, folklore = seconds(answer)
        slower += any(value and value < 0.999 * best for value in folklore)
        settings = answer["best"]["settings"]
        said = " ".join(f"{name} {settings[name]}" for name in ("strategy", "cp", "batch", "accum", "checkpointing", "offload")
                        if name in settings)
        lines.append(f"| `{case}` | {best:.3g} s: {said} | {' | '.join(cell(value, best) for value in folklore)} |")
    head = [f"| `fathom plan` | the plan | {' | '.join(FOLKLORE)} |", "| --- | --- | --- | --- |"]
    print("\n".join([*head, *lines]))
    told = stands_in_guide([*head, *lines])
    print(f"{len(CASES) - slower} passed, {slower} failed" + ("" if told else "; the table of the guide is another"))
    return 1 if slower or not told else 0


if __name__ == "__main__":
    sys.exit(main())
