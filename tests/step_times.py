#!/usr/bin/env python3
"""Sets predicted step times beside those measured on one H200.

Usage: step_times.py BUILD-FOLDER [--rows]

tests/runs/h200_runs.jsonl (`step_s`) and real_trainers_seconds.jsonl (of the rows of real_trainers.jsonl). The truth is
the faster of steps 2 and 3; a row where these differ by more than 15 % is listed, not judged. Ranks other than the
first were played there by torch's fake process group, which moves nothing: rows are asked with --network none. What
FSDP1 gathers and Ulysses exchanges is then whatever the memory held. Those jobs ran up to 18 % faster than the same
operators on data, and are a group of their own, judged too. The constants of core/time/rates.c were fitted to every
other row of the first group; `held` is the other half. A bar is what was reached, rounded up.
"""
import json
import os
import subprocess
import sys

import accuracy
import real_trainers

HERE = os.path.dirname(os.path.abspath(__file__))
NOISE = 0.15       # between steps 2 and 3
SHORT = 0.15       # seconds; below it the host's launches decide

FITTED_ALONE = {"s2", "s3"}    # constants of one or two rows: neither half has them

# Group: rows, mean, 95th percentile, worst, in percent.
BARS = {
    "all above 0.15 s": (109, 6.0, 17, 25.5),
    "fitted": (44, 5.4, 17, 25.5),
    "held": (41, 4.7, 15.5, 24),
    "empty data": (22, 9.0, 17, 18),
    "below 0.15 s": (8, 5.7, 11, 11),
}


def rows():
    """(name, settings, seconds of steps 2 and 3)"""
    with open(os.path.join(HERE, "runs", "h200_runs.jsonl"), encoding="utf-8") as file:
        for number, line in enumerate(file):
            row = json.loads(line)
            yield f"h{number}", accuracy.options(row["cfg"]), row["step_s"][1:3]
    with open(os.path.join(HERE, "runs", "real_trainers_seconds.jsonl"), encoding="utf-8") as file:
        seconds = {row["id"]: row["seconds"] for row in map(json.loads, file)}
    for row in real_trainers.rows_of_file():
        name = row["cfg"]["id"]
        if name in seconds:
            yield name, real_trainers.settings_of(row["cfg"]), seconds[name][1:3]


def ask(program, settings):
    options = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([program, "predict", *options, "--network", "none", "--json"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)


def statistics(errors):
    sizes = sorted(abs(error) for error in errors)
    if not sizes:
        return 0, 0, 0
    return sum(sizes) / len(sizes), sizes[min(len(sizes) - 1, int(0.95 * len(sizes)))], sizes[-1]


def main():
    program = os.path.join(sys.argv[1], "fathom")
    groups = {name: [] for name in BARS}
    listed, halves = [], 0
    for name, settings, steps in rows():
        reply = ask(program, settings)
        time, truth = reply["time"], min(steps)
        words = accuracy.label({key: str(value) for key, value in settings.items()})
        if not time:
            listed.append(f"{name}: {reply['time_unknown']} ({words})")
            continue
        error = 100 * (time["step_s"] / truth - 1)
        empty = settings.get("strategy") == "fsdp1" or "sp" in settings
        if "--rows" in sys.argv:
            print(f"{name:4} {truth:6.3f} s, predicted {time['step_s']:6.3f} s, {error:+6.1f} %, bound by "
                  f"{time['bound_by']}: {words}")
        if max(steps) > (1 + NOISE) * truth:
            listed.append(f"{name}: steps of {min(steps):.3f} and {max(steps):.3f} s, predicted "
                          f"{time['step_s']:.3f} s ({words})")
            continue
        if not empty and name not in FITTED_ALONE:
            halves += 1
        if truth <= SHORT:
            groups["below 0.15 s"].append(error)
            continue
        groups["all above 0.15 s"].append(error)
        if empty:
            groups["empty data"].append(error)
        elif name not in FITTED_ALONE:
            groups["fitted" if halves % 2 else "held"].append(error)
    print("not judged:", *listed, sep="\n  ")
    missed = 0
    for name, (count, *bars) in BARS.items():
        reached = statistics(groups[name])
        met = len(groups[name]) == count and all(value <= bar for value, bar in zip(reached, bars))
        missed += not met
        print(f"{'met   ' if met else 'MISSED'} {name:17} {len(groups[name])} of {count} rows, mean {reached[0]:.1f} % "
              f"(bar {bars[0]}), 95th {reached[1]:.1f} % (bar {bars[1]}), worst {reached[2]:.1f} % (bar {bars[2]})")
    print(f"{len(BARS) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
