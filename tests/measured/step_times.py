#!/usr/bin/env python3
"""Sets predicted step times beside those measured on one H200.

Usage: step_times.py BUILD-FOLDER [--rows] [--write DOCS-FOLDER]

tests/runs/h200_runs.jsonl (`step_s`) and real_trainers_seconds.jsonl (of the rows of real_trainers.jsonl). The truth is
the faster of steps 2 and 3; a row where these differ by more than 15 % is listed, not judged. Ranks other than the
first were played there by torch's fake process group, which moves nothing: rows are asked with --network none. What
FSDP1 gathers and Ulysses exchanges is then whatever the memory held, on which cards draw less power and clock higher:
products by 28 %, attention by 20 % (tests/runs/kernels_h200.jsonl, `sustained`), as predicted with --network none. They
are a group of their own, judged too. The host's constants of core/time/rates.c were fitted to every other row of the
rest; `held` is the other half, which was in sight when they were chosen. A bar is what was reached, rounded up. --write
makes speed.md and speed.svg.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import accuracy
import accuracy_plot
import public_speeds
import real_trainers

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOISE = 0.15       # between steps 2 and 3
SHORT = 0.15       # seconds; below it the host's launches decide
FITTED_ALONE = {"s2", "s3"}    # a constant of their own, fitted to both: neither half has them

# Group: rows, mean, 95th percentile, worst, in percent.
BARS = {
    "all above 0.15 s": (109, 4.7, 14.5, 25),
    "fitted": (44, 5.2, 17.5, 25),
    "held": (41, 4.7, 14.3, 22),
    "empty data": (22, 3.8, 9, 13),
    "below 0.15 s": (8, 7.1, 12, 12),
    # Rows of tests/runs/unseen_seconds.jsonl: jobs of TRL and transformers that were measured after all constants but
    # two (zero_gradient, by p8; new_shape) were set. The first are ten jobs of one GPU; the others are eight ranks, LoRA
    # and evaluation on a host that was slower that day, and bound by it.
    "unseen, one GPU": (10, 2.7, 6, 6),
    "unseen, others": (11, 14.2, 31.5, 31.5),
    # TRL's activation_offloading, measured after its time was read from its source.
    "unseen, activations on the host": (2, 4.4, 5.6, 5.6),
}
# All above 0.15 s, by the constants that `fathom probe --kernels` makes of tests/runs/kernels_h200.jsonl alone; those
# of the host are relative to the same host's.
BY_KERNELS = (109, 4.4, 14.5, 25)

LOOK = accuracy_plot.Look(1, 0.15, "Predicted against measured times of a step", "measured time of a step, s",
                          "predicted time, s", {"on one H200": "#2a6f97", "published": "#e07a5f"})

Row = collections.namedtuple("Row", "name settings steps time unknown")


class Judged(collections.namedtuple("Judged", "row empty")):
    @property
    def truth(self):
        return min(self.row.steps)

    @property
    def error(self):
        return 100 * (self.row.time["step_s"] / self.truth - 1)


def measured():
    """(name, settings, seconds of steps 2 and 3)"""
    with open(os.path.join(TESTS, "runs", "h200_runs.jsonl"), encoding="utf-8") as file:
        for number, line in enumerate(file):
            row = json.loads(line)
            yield f"h{number}", accuracy.options(row["cfg"]), row["step_s"][1:3]
    with open(os.path.join(TESTS, "runs", "real_trainers_seconds.jsonl"), encoding="utf-8") as file:
        seconds = {row["id"]: row["seconds"] for row in map(json.loads, file)}
    for row in real_trainers.rows_of_file():
        name = row["cfg"]["id"]
        if name in seconds:
            yield name, real_trainers.settings_of(row["cfg"]), seconds[name][1:3]


def unseen():
    """(group, name, settings, seconds of steps 2 and 3)"""
    with open(os.path.join(TESTS, "runs", "unseen_seconds.jsonl"), encoding="utf-8") as file:
        for row in map(json.loads, file):
            yield (f"unseen, {row['group']}", row["cfg"]["id"], real_trainers.settings_of(row["cfg"]), row["seconds"][1:3])


def ask(program, settings, data="/nowhere"):
    """`data`: where constants measured on a card may be."""
    asked = dict(settings, network="none")
    options = [word for key, value in asked.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([program, "predict", *options, "--json"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, env={**os.environ, "XDG_DATA_HOME": data})
    return json.loads(done.stdout)


def measure_kernels(program, folder):
    """As on the H200: a Python that only copies what its torch said there."""
    python = os.path.join(folder, "python")
    with open(python, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ncp {os.path.join(TESTS, 'runs', 'kernels_h200.jsonl')} \"$3\"\n")
    os.chmod(python, 0o700)
    subprocess.run([os.path.abspath(program), "probe", "--engine", "torch", "--kernels", "--python", python],
                   cwd=folder, check=True, capture_output=True, env={**os.environ, "XDG_DATA_HOME": folder})
    return folder


def predicted(program, data="/nowhere"):
    for name, settings, steps in measured():
        reply = ask(program, settings, data)
        yield Row(name, settings, steps, reply["time"], reply.get("time_unknown"))


def words(row):
    return accuracy.label({key: str(value) for key, value in row.settings.items()})


def why_not_judged(row):
    if not row.time:
        return f"{row.name}: {row.unknown} ({words(row)})"
    if row.time.get("update_alone"):
        return f"{row.name}: {row.time['update_alone']} ({words(row)})"
    if max(row.steps) > (1 + NOISE) * min(row.steps):
        return (f"{row.name}: steps of {min(row.steps):.3f} and {max(row.steps):.3f} s, predicted "
                f"{row.time['step_s']:.3f} s ({words(row)})")
    return None


def judged(rows):
    return [Judged(row, row.settings.get("strategy") == "fsdp1" or "sp" in row.settings)
            for row in rows if not why_not_judged(row)]


def groups_of(rows):
    """The rows of each bar."""
    groups, halves = {name: [] for name in BARS if not name.startswith("unseen")}, 0
    for row in rows:
        in_half = not row.empty and row.row.name not in FITTED_ALONE
        halves += in_half
        if row.truth <= SHORT:
            groups["below 0.15 s"].append(row)
            continue
        groups["all above 0.15 s"].append(row)
        if row.empty:
            groups["empty data"].append(row)
        elif in_half:
            groups["fitted" if halves % 2 else "held"].append(row)
    return groups


def statistics(rows):
    sizes = sorted(abs(row.error) for row in rows)
    if not sizes:
        return 0, 0, 0
    return sum(sizes) / len(sizes), sizes[min(len(sizes) - 1, int(0.95 * len(sizes)))], sizes[-1]


def kind(row):
    settings = row.row.settings
    who = {"trl@1.16": "TRL", "transformers": "transformers"}.get(settings.get("recipe"), "plain")
    how = settings.get("strategy", "single") + (", sequence parallel" if "sp" in settings else "")
    offloads = settings.get("offload", "off") != "off"
    return f"{who}, {how}{', offload' if offloads else ''}"


UNVERIFIED = """Not verified: cards other than H200, H100 and A100; collectives on several GPUs other than through the published
rows above; other hosts (launches of the same operators differ by half between runs on the same one, and one host of the
published rows launched twice as fast); several ranks of TRL and DeepSpeed where the host bounds them (`unseen, others`);
PEFT's adapters each as a unit of FSDP1; compiled models, fp8, generation, checkpoints on their way to the host."""


def tables(rows, fresh, public):
    """By kind of job, and by who published it."""
    lines = ["| on one H200 | steps | mean error | 95th percentile | worst |", "| --- | --- | --- | --- | --- |"]
    kinds = collections.defaultdict(list)
    for row in rows:
        kinds[kind(row)].append(row)
    groups = {**groups_of(rows), **fresh, **dict(sorted(kinds.items()))}
    for name, found in groups.items():
        mean, high, worst = statistics(found)
        lines.append(f"| {name} | {len(found)} | {mean:.1f} % | {high:.1f} % | {worst:.1f} % |")
    lines += ["", "| published by | rows | median error | 90th percentile |", "| --- | --- | --- | --- |"]
    for name, errors in public.errors.items():
        median, high = public_speeds.statistics(errors)
        lines.append(f"| {name} | {len(errors)} | {median:.1f} % | {high:.1f} % |")
    lines += ["", f"Of {public.told} pairs of published speeds that differ by a tenth or more, {public.right} come out in the",
              "right order. Rows that cannot be asked:", ""]
    lines += [f"- {count}: {reason}" for reason, count in public.refusals.items()]
    with open(os.path.join(TESTS, "runs", "public_speeds_left_out.json"), encoding="utf-8") as file:
        lines += [f"- {count}: {reason}" for reason, count in json.load(file).items()]
    return "\n".join(lines + ["", UNVERIFIED])


def markdown(rows, fresh, public):
    """docs/speed.md"""
    return f"""# How exact step times are

Made by `python3 tests/measured/step_times.py build/release --write docs`. Steps measured on one H200, other ranks played, and
public measurements on other cards and on several. A step's time is its operators' times on their streams (core/time).
What kernels take was measured on that card, shape by shape (`share/torch_kernels.py`, which `fathom probe --engine torch
--kernels` runs on yours; tests/runs/kernels_h200.jsonl): by these measurements alone the same steps come out as near as
by the constants of core/time/rates.c. What the host takes was fitted to half of the steps (`fitted`); the other half was
seen too when constants were chosen, as the public measurements were, and only `unseen` came after all but two of them.
`empty data` are jobs whose other ranks were played so that weights or attention had no numbers, on which a card clocks
higher.

![predicted against measured times](speed.svg)

{tables(rows, fresh, public)}
"""


def section(program):
    """A section of docs/accuracy.md."""
    rows, fresh = judged(predicted(program)), judged_unseen(program)
    return tables(rows, fresh, public_speeds.compared(program))


def judged_unseen(program):
    fresh = {name: [] for name in BARS if name.startswith("unseen")}
    for group, name, settings, steps in unseen():
        reply = ask(program, settings)
        fresh[group] += judged([Row(name, settings, steps, reply.get("time"), reply.get("time_unknown", "refused"))])
    return fresh


def write(folder, rows, fresh, public):
    with open(os.path.join(folder, "speed.md"), "w", encoding="utf-8") as out:
        out.write(markdown(rows, fresh, public))
    seen = rows + sum(fresh.values(), [])
    with open(os.path.join(folder, "speed.svg"), "w", encoding="utf-8") as out:
        out.write(accuracy_plot.scatter({"on one H200": [(row.truth, row.row.time["step_s"]) for row in seen],
                                         "published": public.seconds}, LOOK))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--write")
    given = parser.parse_args()
    program = os.path.join(given.folder, "fathom")
    every = list(predicted(program))
    rows = judged(every)
    fresh = judged_unseen(program)
    for row in rows + sum(fresh.values(), []) if given.rows else []:
        print(f"{row.row.name:4} {row.truth:6.3f} s, predicted {row.row.time['step_s']:6.3f} s, {row.error:+6.1f} %, "
              f"bound by {row.row.time['bound_by']}: {words(row.row)}")
    print("not judged:", *filter(None, map(why_not_judged, every)), sep="\n  ")
    missed, groups = 0, {**groups_of(rows), **fresh}
    for name, (count, *bars) in BARS.items():
        reached = statistics(groups[name])
        met = len(groups[name]) == count and all(value <= bar for value, bar in zip(reached, bars))
        missed += not met
        print(f"{'met   ' if met else 'MISSED'} {name:17} {len(groups[name])} of {count} rows, mean {reached[0]:.1f} % "
              f"(bar {bars[0]}), 95th {reached[1]:.1f} % (bar {bars[1]}), worst {reached[2]:.1f} % (bar {bars[2]})")
    with tempfile.TemporaryDirectory() as folder:
        by_kernels = judged(predicted(program, measure_kernels(program, folder)))
    reached = statistics([row for row in by_kernels if row.truth > SHORT])
    met = all(value <= bar for value, bar in zip(reached, BY_KERNELS[1:]))
    missed += not met
    print(f"{'met   ' if met else 'MISSED'} by kernels alone: mean {reached[0]:.1f} % (bar {BY_KERNELS[1]}), 95th "
          f"{reached[1]:.1f} % (bar {BY_KERNELS[2]}), worst {reached[2]:.1f} % (bar {BY_KERNELS[3]})")
    if given.write:
        write(given.write, rows, fresh, public_speeds.compared(program))
    print(f"{len(BARS) + 1 - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
