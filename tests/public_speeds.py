#!/usr/bin/env python3
"""Sets predicted speeds beside published ones, on other cards and on several.

Usage: public_speeds.py BUILD-FOLDER [--rows]

tests/runs/public_speeds.jsonl: rows of public measurements whose settings are all stated, with bf16, checkpointing of
all layers or none, no compilation and no tensor or pipeline parallelism, as `fathom predict` takes them, and with the
model's shape where the catalogue does not have it. Qwen 1 is asked as qwen2, InternLM as llama, the fused kernels of
fms-acceleration as Liger's. Nothing was fitted to these rows. A row that is refused is counted by its reason. Of pairs
of rows of the same source, model and card whose speeds differ by a tenth or more, so many must come out in the right
order. A bar is what was reached, rounded up.
"""
import collections
import itertools
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# Source: rows, median, 90th percentile, in percent.
BARS = {
    "all": (74, 7.5, 20),
    "fms-acceleration": (31, 5, 11),
    "internevo": (20, 11, 19),
    "qwen-readme": (9, 20, 53),    # half of them bound by a host that was twice as fast
    "torchtitan-A100": (2, 4, 4),
    "torchtune": (1, 1.1, 1.1),
    "trl": (11, 5.5, 8),
}
REFUSED = 44
PAIRS = 0.92


def ask(program, folder, row):
    settings = dict(row["settings"])
    if "config" in row:
        settings["model"] = os.path.join(folder, "config.json")
        with open(settings["model"], "w", encoding="utf-8") as file:
            json.dump(row["config"], file)
    options = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([program, "predict", *options, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    return json.loads(done.stdout)


def statistics(errors):
    sizes = sorted(abs(error) for error in errors)
    return (sizes[len(sizes) // 2], sizes[int(0.9 * len(sizes))]) if sizes else (0, 0)


def in_order(pairs):
    """How many pairs of (measured, predicted) speeds differ by a tenth, and how many of them as predicted."""
    told = right = 0
    for (seen, mine), (other_seen, other_mine) in itertools.combinations(pairs, 2):
        if max(seen, other_seen) >= 1.1 * min(seen, other_seen):
            told += 1
            right += (seen > other_seen) == (mine > other_mine)
    return told, right


def main():
    program = os.path.join(sys.argv[1], "fathom")
    with open(os.path.join(HERE, "runs", "public_speeds.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    errors, speeds, refusals = {name: [] for name in BARS}, collections.defaultdict(list), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            reply = ask(program, folder, row)
            time = reply.get("time")
            if not time:
                refusals[reply["error"]["message"] if "error" in reply else reply["time_unknown"]] += 1
                continue
            error = 100 * (time["tokens_per_s"] / row["tokens_per_s"] - 1)
            errors["all"].append(error)
            errors[row["src"]].append(error)
            card = row["settings"]["gpu"].split("x")[-1]
            speeds[row["src"], row["model"], card].append((row["tokens_per_s"], time["tokens_per_s"]))
            if "--rows" in sys.argv:
                print(f"{row['src']:17} {row['tokens_per_s']:7.0f} tokens/s, predicted {time['tokens_per_s']:7.0f}, "
                      f"{error:+6.1f} %, bound by {time['bound_by']}: {row['model']} "
                      + " ".join(f"{key}={value}" for key, value in row["settings"].items()))
    for reason, count in refusals.items():
        print(f"refused: {count} rows, {reason}")
    missed = sum(refusals.values()) != REFUSED
    for name, (count, median, high) in BARS.items():
        reached = statistics(errors[name])
        met = len(errors[name]) == count and reached[0] <= median and reached[1] <= high
        missed += not met
        print(f"{'met   ' if met else 'MISSED'} {name:17} {len(errors[name])} of {count} rows, median {reached[0]:.1f} % "
              f"(bar {median}), 90th {reached[1]:.1f} % (bar {high})")
    told, right = (sum(each) for each in zip(*(in_order(pairs) for pairs in speeds.values())))
    missed += right < PAIRS * told
    print(f"{'met   ' if right >= PAIRS * told else 'MISSED'} pairs in order: {right} of {told}")
    print(f"{len(BARS) + 2 - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
