#!/usr/bin/env python3
"""Sets predictions beside unmodified jobs of TRL and transformers' Trainer that were measured on one H200.

Usage: real_trainers.py BUILD-FOLDER

tests/runs/real_trainers.jsonl: rank 0 of `world` over torch's fake process group, through Accelerate's own FSDP2 (or,
`fsdp`: 1, FSDP1) and DeepSpeed (`zero`); peaks of each step. A row is asked as its user would ask; the largest peaks
of its steps are compared, since the batches of padded and packed rows differ. Every row is in a group whose bars are what is reached, so that none gets worse unseen; a row that
cannot be asked is counted too.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"Gemma-2-2B": "gemma-2-2b", "Mistral-7B": "Mistral-7B-v0.3"}

TASKS = {"reward": "reward", "dpo": "dpo and kto", "kto": "dpo and kto"}

# Group, worst allocated and reserved error in percent, rows predicted. What is far off is known:
# where the blocks of whole gradients end up with offload (a12), and how far the host is ahead of the card under
# ZeRO-2 (z4).
BARS = [
    ("transformers, one GPU", 0.002, 0.002, 4),
    ("transformers, FSDP2", 0.002, 0.002, 5),
    ("transformers, FSDP1", 0.005, 0, 2),
    ("transformers, Gemma 2", 0.003, 0.005, 5),
    ("TRL, FSDP2", 0.002, 0.002, 10),
    ("TRL, FSDP2, whole gradients", 0.02, 6.7, 4),
    ("FSDP2, weights read by one rank", 0.002, 0.02, 5),
    ("TRL, ZeRO-3", 0.003, 0, 5),
    ("TRL, ZeRO-3, LoRA", 0.0002, 0, 1),
    ("TRL, ZeRO-2", 0.0002, 1.4, 3),
    ("TRL, one GPU", 0.01, 0.6, 8),
    ("TRL, LoRA", 0.0001, 1.2, 2),
    ("TRL, FSDP2, LoRA", 0.0001, 2.2, 1),
    ("TRL, other choices", 0.009, 0.54, 3),
    ("TRL, Gemma 2", 0.01, 0.2, 1),
    ("TRL, padded or packed", 0.45, 2.1, 6),
    ("TRL, reward", 0.01, 5.7, 2),
    ("TRL, dpo and kto", 0.01, 0.6, 4),
]
NOT_MODELLED = ["a6"]


def group_of(c):
    if c.get("efficient"):
        return "FSDP2, weights read by one rank"
    if c.get("lengths"):
        return "TRL, padded or packed"
    if not c.get("zero") and c["trainer"] in TASKS:
        return f"TRL, {TASKS[c['trainer']]}"
    if c["model"].startswith("Gemma"):
        return f"{'transformers' if c['trainer'] == 'hf' else 'TRL'}, Gemma 2"
    if c["trainer"] == "hf":
        return f"transformers, FSDP{c.get('fsdp', 2)}" if c.get("world") else "transformers, one GPU"
    if c.get("zero"):
        return f"TRL, ZeRO-{c['zero']}" + (", LoRA" if c.get("lora") else "")
    if c.get("world") and c.get("accum", 1) > 1 and "accelerator_config" not in c.get("args", {}):
        return "TRL, FSDP2, whole gradients"
    if c.get("args", {}).keys() & {"optim", "use_liger_kernel", "activation_offloading"}:
        return "TRL, other choices"
    if c.get("lora"):
        return "TRL, FSDP2, LoRA" if c.get("world") else "TRL, LoRA"
    return "TRL, FSDP2" if c.get("world") else "TRL, one GPU"


def settings_of(c):
    args = c.get("args", {})
    asked = {"recipe": "transformers" if c["trainer"] == "hf" else "trl@1.16", "context": c["seq"],
             "model": MODELS.get(c["model"], c["model"]), "gpu": f"{c.get('world', 1)}xH200",
             "batch": c.get("batch", 1), "accum": c.get("accum", 1)}
    if c["trainer"] not in ("sft", "hf"):
        asked["task"] = c["trainer"]
    if c.get("lora"):
        asked.update({"lora": 16})
    if c.get("lengths"):
        asked["batching"] = "packed" if args.get("packing") else "padded"
    if c.get("prompt"):
        asked["prompt"] = c["prompt"]
    if args.get("gradient_checkpointing") is False and not c.get("fsdp_ac"):
        asked["checkpointing"] = "off"
    if args.get("optim") == "adafactor":
        asked["optimizer"] = "adafactor"
    if args.get("use_liger_kernel"):
        asked["layer-kernels"] = "liger"
    if args.get("activation_offloading"):
        asked["activation-offload"] = "on"
    if c.get("layers"):
        asked["layers"] = c["layers"]
    if c["trainer"] == "hf":
        asked["checkpointing"] = "on" if args.get("gradient_checkpointing") or c.get("fsdp_ac") else "off"
        asked["optimizer"] = "adamw" if args.get("optim") == "adamw_torch" else "adamw-fused"
        if c.get("dtype") == "float32" and not c.get("world"):
            asked["precision"] = "autocast"
    if c.get("world"):
        asked["strategy"] = f"zero{c['zero']}" if c.get("zero") else f"fsdp{c.get('fsdp', 2)}"
        if not c.get("zero") and not c.get("efficient"):
            asked["load-once"] = "off"
    if c.get("offload"):
        asked["offload"] = "all"
    if "accelerator_config" in args:
        asked["sync-each-batch"] = "on"
    return asked


def ask(program, asked):
    options = [word for key, value in asked.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([program, "predict", *options, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    return json.loads(done.stdout)["steps"] if done.returncode == 0 else None


def measured():
    """The rows that can be asked, with the largest peaks of their steps, as rows of tests/accuracy.py."""
    with open(os.path.join(HERE, "runs", "real_trainers.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    asked = [(settings_of(row["cfg"]), row["steps"]) for row in rows if row["cfg"]["id"] not in NOT_MODELLED]
    return [{"settings": {name: str(value) for name, value in settings.items()},
             "peak": {metric: max(step[metric] for step in steps) for metric in ("allocated", "reserved")}}
            for settings, steps in asked]


def rows_of_file():
    with open(os.path.join(HERE, "runs", "real_trainers.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def words_of(c):
    """A row's job, in words."""
    asked = settings_of(c)
    shown = {name: value for name, value in asked.items() if name not in ("recipe", "model", "gpu", "context", "task")}
    usual = {"batch": 1, "accum": 1}
    more = ", ".join(f"{name} {value}" for name, value in shown.items() if usual.get(name) != value)
    efficient = ", one rank reads" if c.get("efficient") else ""
    return f"{asked['model']}, {asked['gpu']}, {c['seq']} tokens{', ' if more else ''}{more}{efficient}"


def markdown(program):
    """A section of docs/accuracy.md."""
    lines = ["| id | trainer | job | allocated, measured | error | reserved, measured | error |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows_of_file():
        c, steps = row["cfg"], ask(program, settings_of(row["cfg"]))
        trainer = "transformers' Trainer" if c["trainer"] == "hf" else f"TRL, {c['trainer']}"
        cells = []
        for kind in ("allocated", "reserved"):
            seen = max(step[kind] for step in row["steps"])
            error = 100 * (max(step[f"{kind}_bytes"] for step in steps) / seen - 1) if steps else None
            cells += [f"{seen / 2**30:.2f} GiB", "not modelled" if error is None else f"{error:+.2f} %"]
        lines.append(f"| {c['id']} | {trainer} | {words_of(c)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    program = os.path.join(sys.argv[1], "fathom")
    errors, unasked = {}, []
    for line in open(os.path.join(HERE, "runs", "real_trainers.jsonl")):
        row = json.loads(line)
        asked, measured = settings_of(row["cfg"]), row["steps"]
        steps = ask(program, asked)
        if not steps:
            unasked.append(row["cfg"]["id"])
            continue
        pair = [100 * (max(step[f"{kind}_bytes"] for step in steps) / max(step[kind] for step in measured) - 1)
                for kind in ("allocated", "reserved")]
        errors.setdefault(group_of(row["cfg"]), []).append((row["cfg"]["id"], *pair))
    every = [sorted(abs(row[i]) for rows in errors.values() for row in rows) for i in (1, 2)]
    count = len(every[0])
    print(f"{count} of {count + len(unasked)} rows asked: allocated {every[0][int(0.9 * count)]:.3f} % at the 90th "
          f"percentile, {every[0][-1]:.2f} % at worst; reserved {every[1][int(0.95 * count)]:.1f} % at the 95th, "
          f"{every[1][-1]:.1f} % at worst")
    missed = 0
    for name, allocated, reserved, count in BARS:
        rows = errors.pop(name, [])
        worst = [max((abs(row[i]) for row in rows), default=0) for i in (1, 2)]
        met = worst[0] <= allocated and worst[1] <= reserved and len(rows) == count
        missed += not met
        print(f"{'met   ' if met else 'MISSED'} {name:30} {len(rows)} of {count} rows, allocated {worst[0]:.2f} % "
              f"(bar {allocated}), reserved {worst[1]:.2f} % (bar {reserved})")
        if not met:
            print("      ", ", ".join(f"{i} {a:+.2f}/{r:+.2f}" for i, a, r in rows))
    print(f"not modelled yet: {', '.join(unasked)}")
    missed += sorted(unasked) != sorted(NOT_MODELLED) or bool(errors)
    print(f"{len(BARS) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
