#!/usr/bin/env python3
"""Sets predictions beside jobs of transformers' Trainer that others measured on 1 to 8 A100s.

Usage: public_jobs.py BUILD-FOLDER

tests/runs/public_jobs.jsonl: the rows of fms-acceleration's benchmarks (Apache-2.0) that use none of its plug-ins, each
with its source; `transformers` is the version in the requirements beside the table (torch 2.4 to 2.6, NCCL 2.20 and
2.21, flash-attn 2.6.3, which is asked for). The allocated peak is rank 0's as the Trainer reports it, nvidia-smi's figure the mean of the GPUs'
peaks less what was in use before. A row is asked as its user would ask; one that cannot be asked is counted by reason.
Asked with torch's own attention one row of Mistral (LoRA on two GPUs) had seemed exact by a mask that is not there, and
with the package 0.88 % low: its adapters have a dropout of 0.1, and with that it is exact.
Bars are what is reached.
"""
import collections
import json
import os
import statistics
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# PowerLM's configuration is not in the source. Width, layers, heads and MLP are those of its paper (arXiv 2408.13359,
# table 4); that its vocabulary is StarCoder's 49,152 and its head tied is ASSUMED (3.51 billion parameters then, and the
# paper says 3.5): three of the six rows rest on it.
# gpt_bigcode-santacoder's is as its repository has it, as far as that is remembered: the allocated bytes agree.
# scenarios-orca.yaml: 8,000 texts of orca-math, padded in each batch. Their lengths are not told, but tokens a second are: 291
# tokens a text without padding, 368 and 524 for the longest of two and of eight, which is what a log-normal has with a
# deviation of 0.478 (291, 368, 535); the longest of 8,000 is then about 1,574 tokens. INFERRED: two rows rest on it, and
# nearly all of their memory on none of it.
ORCA, ORCA_LONGEST = "refs_orca", 1574
MODELS = {"ibm/PowerLM-3b": os.path.join(TESTS, "runs", "configs", "PowerLM-3b.json"),
          "bigcode/gpt_bigcode-santacoder": os.path.join(TESTS, "runs", "configs", "gpt_bigcode-santacoder.json"),
          "mistralai/Mistral-7B-v0.1": "Mistral-7B-v0.1",
          "mistralai/Mixtral-8x7B-Instruct-v0.1": "Mixtral-8x7B-v0.1"}
PLUGINS = 156  # further rows of the same tables: fused kernels, GPTQ, ScatterMoE, padding-free batches and mixtures

# Rows asked, median and 90th percentile of allocated, worst allocated in percent, rows inside nvidia-smi's range.
BARS = {"asked": 15, "median": 0.04, "most": 0.65, "worst": 0.73, "inside": 14}
REFUSED = {"the lengths are not stated": 3}


def rows_of():
    with open(os.path.join(TESTS, "runs", "public_jobs.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def context_of(row):
    return row.get("context", ORCA_LONGEST if ORCA in row["source"] else None)


def reason_of(row):
    """Why a row cannot be asked, or None."""
    return None if context_of(row) else "the lengths are not stated"


def settings_of(row):
    asked = {"recipe": f"transformers@{row['transformers']}", "model": MODELS[row["model"]], "precision": "bf16",
             "gpu": f"{row['gpus']}xA100-80G", "context": context_of(row), "batch": row["batch"], "accum": row["accum"],
             "checkpointing": "on", "attention": "flash2"}
    if row["gpus"] > 1:  # scripts/benchmarks/accelerate.yaml
        asked.update({"strategy": "fsdp1", "backward-prefetch": "on"})
    if row.get("lora"):  # scripts/benchmarks/scenarios.yaml: lora_dropout 0.1
        asked.update({"lora": 16, "lora-targets": "q,k,v,o", "lora-dropout": "on"})
    if row.get("quant"):  # its configurations have bf16: true, and trl 0.13 prepares the model
        asked.update({"quantize": "nf4", "precision": "autocast" if row["gpus"] == 1 else "mixed"})
    return asked


def ask(program, asked):
    options = [word for key, value in asked.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([program, "predict", *options, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)
    return json.loads(done.stdout) if done.returncode in (0, 1) else None


def compared(program):
    """(row, prediction) of what can be asked, and the reasons of the rest, counted."""
    pairs, reasons = [], collections.Counter()
    for row in rows_of():
        reason = reason_of(row)
        if reason:
            reasons[reason] += 1
            continue
        answer = ask(program, settings_of(row))
        if answer is None:
            reasons["refused"] += 1
        else:
            pairs.append((row, answer))
    return pairs, reasons


def figures_of(row, answer):
    gib = 2**30
    allocated = answer["peak"]["allocated_bytes"] / gib
    low, high = answer["driver_low_bytes"] / gib, answer["driver_high_bytes"] / gib
    seen = row["smi_mib"] / 1024
    return {"allocated": allocated, "error": 100 * (allocated / row["allocated_gib"] - 1), "low": low, "high": high,
            "seen": seen, "inside": low <= seen <= high, "reserved": answer["peak"]["reserved_bytes"] / gib}


def job_of(row):
    how = "full" if not row.get("lora") else "QLoRA" if row.get("quant") else "LoRA"
    return f"{row['model'].split('/')[1]}, {how}, {row['gpus']} × A100, {row['batch']} × {context_of(row)}"


def markdown(program):
    """A section of docs/accuracy.md."""
    pairs, reasons = compared(program)
    lines = ["| job | allocated, measured | predicted | error | nvidia-smi | stated range |",
             "| --- | --- | --- | --- | --- | --- |"]
    for row, answer in pairs:
        f = figures_of(row, answer)
        lines.append(f"| {job_of(row)} | {row['allocated_gib']:.2f} GiB | {f['allocated']:.2f} GiB | {f['error']:+.2f} % "
                     f"| {f['seen']:.1f} GiB | {f['low']:.1f} to {f['high']:.1f} GiB |")
    counted = [f"- {reason}: {count}" for reason, count in sorted(reasons.items())]
    counted.append(f"- with a plug-in of that project: {PLUGINS}")
    return "\n".join(lines) + "\n\nNot asked, with the number of rows:\n\n" + "\n".join(counted)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main():
    pairs, reasons = compared(os.path.join(sys.argv[1], "fathom"))
    each = [(row, figures_of(row, answer)) for row, answer in pairs]
    for row, f in each:
        print(f"  {job_of(row):52} allocated {row['allocated_gib']:.3f} predicted {f['allocated']:.3f} "
              f"({f['error']:+.2f} %), nvidia-smi {f['seen']:.2f} in {f['low']:.2f} to {f['high']:.2f}"
              f"{'' if f['inside'] else ' MISSED'} (reserved {f['reserved']:.2f})")
    errors = [abs(f["error"]) for _, f in each] or [100]
    reached = {"median": statistics.median(errors), "most": percentile(errors, 0.9), "worst": max(errors)}
    print(f"{len(each)} of {len(rows_of())} plain rows asked; allocated off by {reached['median']:.2f} % in the median, "
          f"{reached['most']:.2f} at the 90th percentile, {reached['worst']:.2f} at worst")
    for reason, count in sorted(reasons.items()):
        print(f"  not asked, {reason}: {count}")
    met = [len(each) == BARS["asked"], dict(reasons) == REFUSED,
           sum(f["inside"] for _, f in each) >= BARS["inside"],
           *(reached[name] <= BARS[name] for name in ("median", "most", "worst"))]
    print(f"{sum(met)} passed, {len(met) - sum(met)} failed")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
