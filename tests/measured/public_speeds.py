#!/usr/bin/env python3
"""Sets predicted speeds beside published ones, on other cards and on several.

Usage: public_speeds.py BUILD-FOLDER [--rows]

tests/runs/public_speeds.jsonl: rows of public measurements whose settings are all stated, with bf16, checkpointing of
all layers or none, no compilation and no tensor or pipeline parallelism, as `fathom predict` takes them, and with the
model's shape where the catalogue does not have it. Qwen 1 is asked as qwen2, InternLM as llama, the fused kernels of
fms-acceleration as Liger's, and llm-foundry's MPT, which has learned positions there, as gpt2 under FSDP1, with the rates
of the first FlashAttention (its model of that time: "Please install flash-attn==1.0.3.post0"): 30 to 50 % of the A100's
peak forward and 25 to 35 % backward by the second's paper (arXiv 2307.08691), in the middle, and as much of the second's
on the H100. No constant was solved for from these rows, but those of core/time were chosen seeing them. A row that is
refused is counted by its reason; of the 1,086 rows that were collected, those that were not asked are counted in
public_speeds_left_out.json. Of pairs of rows of the same source, model and card whose speeds differ by a tenth or more,
so many must come out in the right order. Of the configurations of one job (source, model, machine, length, what is trained)
that is published in several, the one that is predicted to be the fastest, which `fathom plan` would choose, must be the
published fastest or within 5 % of it in so many groups; rows of the same settings are one, with their mean. A bar is what was reached, rounded up.
"""
import collections
import itertools
import json
import os
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Source: rows, median, 90th percentile, in percent.
BARS = {
    "all": (200, 7.7, 21),
    "fms-acceleration": (48, 4.5, 15),
    "internevo": (20, 10, 17),
    "llm-foundry": (101, 9, 19),
    # Five are bound by a host that was twice as fast; three ran on two nodes, by a strategy that is not stated.
    "qwen-readme": (17, 21, 68),
    "torchtitan-A100": (2, 2.1, 2.1),
    "torchtune": (1, 1.1, 1.1),
    "trl": (11, 3.5, 8),
}
REFUSED = 21
PAIRS = 0.93
CHOSEN = 0.9


# The first FlashAttention's rates, as `fathom probe --kernels` would keep them: forward, backward.
FLASH1 = {"A100-80G": (125e12, 94e12), "A100-40G": (125e12, 94e12), "H100-80G": (206e12, 165e12)}


def write_flash1(folder):
    kept = os.path.join(folder, "fathom", "kernels")
    os.makedirs(kept)
    for card, (forward, backward) in FLASH1.items():
        with open(os.path.join(kept, card), "w", encoding="utf-8") as file:
            file.write(f"flash2_flops={forward:.0f}\nflash2_back_flops={backward:.0f}\n")


def ask(program, folder, row):
    settings = dict(row["settings"])
    if "config" in row:
        settings["model"] = os.path.join(folder, "config.json")
        with open(settings["model"], "w", encoding="utf-8") as file:
            json.dump(row["config"], file)
    options = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    data = folder if row["src"] == "llm-foundry" else "/nowhere"
    done = subprocess.run([program, "predict", *options, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, env={**os.environ, "XDG_DATA_HOME": data})
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


def chooses_well(group):
    """Whether the fastest by prediction was measured within 5 % of the fastest."""
    chosen = max(group, key=lambda pair: pair[1])
    return chosen[0] >= 0.95 * max(seen for seen, _ in group)


class Comparison:
    """All rows asked: errors in percent by source, steps in seconds, refusals by reason, pairs told apart and right."""

    def __init__(self):
        self.errors = {name: [] for name in BARS}
        self.seconds, self.refusals, self.told, self.right = [], collections.Counter(), 0, 0
        self.speeds = collections.defaultdict(list)
        self.jobs = collections.defaultdict(lambda: collections.defaultdict(list))

    def add(self, row, reply, shows):
        time = reply.get("time")
        if "Mixtral" in row["model"]:
            self.refusals["a mixture of experts with adapters, as transformers 4 runs it"] += 1
            return
        if not time:
            self.refusals[reply["error"]["message"] if "error" in reply else reply["time_unknown"]] += 1
            return
        seen, mine = row["tokens_per_s"], time["tokens_per_s"]
        self.errors["all"].append(100 * (mine / seen - 1))
        self.errors[row["src"]].append(100 * (mine / seen - 1))
        self.seconds.append((time["step_s"] * mine / seen, time["step_s"]))
        self.speeds[row["src"], row["model"], row["settings"]["gpu"].split("x")[-1]].append((seen, mine))
        job = [row["settings"].get(name) for name in ("gpu", "context", "lora", "quantize", "task", "mean-length")]
        self.jobs[row["src"], row["model"], *job][json.dumps(row["settings"])].append((seen, mine))
        if shows:
            print(f"{row['src']:17} {seen:7.0f} tokens/s, predicted {mine:7.0f}, {100 * (mine / seen - 1):+6.1f} %, bound "
                  f"by {time['bound_by']}: {row['model']} "
                  + " ".join(f"{key}={value}" for key, value in row["settings"].items()))

    def groups(self):
        """Jobs whose configurations differ by 5 % or more, each as (measured, predicted)."""
        jobs = [[(sum(seen for seen, _ in rows) / len(rows), rows[0][1]) for rows in ways.values()]
                for ways in self.jobs.values()]
        return [group for group in jobs if min(group)[0] < 0.95 * max(group)[0]]

    def count_pairs(self):
        self.told, self.right = (sum(each) for each in zip(*map(in_order, self.speeds.values())))


def compared(program, shows=False):
    with open(os.path.join(TESTS, "runs", "public_speeds.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    all_of_them = Comparison()
    with tempfile.TemporaryDirectory() as folder:
        write_flash1(folder)
        for row in rows:
            all_of_them.add(row, ask(program, folder, row), shows)
    all_of_them.count_pairs()
    return all_of_them


def main():
    found = compared(os.path.join(sys.argv[1], "fathom"), "--rows" in sys.argv)
    for reason, count in found.refusals.items():
        print(f"refused: {count} rows, {reason}")
    missed = sum(found.refusals.values()) != REFUSED
    for name, (count, median, high) in BARS.items():
        reached = statistics(found.errors[name])
        met = len(found.errors[name]) == count and reached[0] <= median and reached[1] <= high
        missed += not met
        print(f"{'met   ' if met else 'MISSED'} {name:17} {len(found.errors[name])} of {count} rows, median "
              f"{reached[0]:.1f} % (bar {median}), 90th {reached[1]:.1f} % (bar {high})")
    in_place = found.right >= PAIRS * found.told
    missed += not in_place
    print(f"{'met   ' if in_place else 'MISSED'} pairs in order: {found.right} of {found.told}")
    groups = found.groups()
    well = sum(map(chooses_well, groups))
    missed += well < CHOSEN * len(groups)
    print(f"{'met   ' if well >= CHOSEN * len(groups) else 'MISSED'} the fastest is chosen: {well} of {len(groups)} groups")
    print(f"{len(BARS) + 3 - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
