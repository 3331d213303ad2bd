#!/usr/bin/env python3
"""Writes the trials of a store as measured runs, one a line, as tests/measured/accuracy.py takes them.

Usage: tests/measured/store_runs.py PROGRAM-FOLDER STORE > RUNS.jsonl

A trial that fitted or ran out of GPU memory becomes a line: `settings`, what `fathom predict` takes for it,
`peaks`, what torch measured in each step, `ok` or `oom`, and what it ran on. Where a trainer gave no steps,
`peak` holds the largest over all of them. What ended otherwise, or is no configuration of a prediction, is
left out and said on standard error. Paths of this machine are left out too.
"""
import collections
import json
import os
import subprocess
import sys

METRICS = ("allocated", "requested", "reserved", "end_allocated")
DECIDED = ("fits", "gpu_memory")


def attempts(program, store):
    """What the program exports; its own words where it cannot."""
    done = subprocess.run([program, "probe", "--export", "json", "--store", store], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if done.returncode:
        raise SystemExit(done.stderr.decode("utf-8", "replace").strip())
    return json.loads(done.stdout)["attempts"]


def key_of(attempt):
    """The settings of the trial's cell as they were given."""
    pairs = (line.partition("=") for line in attempt["settings"].splitlines())
    return {name: value for name, _, value in pairs}


def peak_of(step):
    """What the trainer reported; the store has 0 where it did not."""
    told = {metric: step[metric + "_bytes"] for metric in METRICS if step[metric + "_bytes"]}
    return {**told, "retries": step["retries"]}


def why_not(attempt):
    """Why a trial is no run to compare, or None."""
    if attempt["outcome"] not in DECIDED:
        return attempt["outcome"]
    return attempt.get("unpredicted")


def row_of(attempt):
    key, fits = key_of(attempt), attempt["outcome"] == "fits"
    settings = {name: str(value) if not isinstance(value, bool) else "on" if value else "off"
                for name, value in attempt["predict"].items()}
    row = {"settings": settings, "ok": fits}
    if "config" in attempt:
        settings["model"] = os.path.basename(settings["model"].rstrip("/"))
        row["config"] = attempt["config"]
    if not fits:
        row.update(oom=True, message=attempt["detail"])
    row["peaks"] = [peak_of(step) for step in attempt["steps"]]
    row["step_s"] = [step["seconds"] for step in attempt["steps"]]
    if fits and not row["peaks"] and attempt["reserved_bytes"]:
        row["peak"] = {metric: attempt[metric + "_bytes"] for metric in ("allocated", "reserved")}
    said = {"engine": attempt["engine"], "gpu": attempt["gpu"], "driver_total": attempt["total_bytes"],
            "versions": attempt["versions"], "as": key.get("as"), "one_gpu": key.get("one-gpu") == "on"}
    return {**row, **{name: value for name, value in said.items() if value}}


def read(program, store):
    """(rows, how many trials are left out for each reason)."""
    found = attempts(program, store)
    left = collections.Counter(filter(None, map(why_not, found)))
    return [row_of(attempt) for attempt in found if why_not(attempt) is None], left


def left_out(left):
    return [f"{count} trial{'s' * (count > 1)} left out: {reason}" for reason, count in left.items()]


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    rows, left = read(os.path.join(sys.argv[1], "fathom"), sys.argv[2])
    for row in rows:
        print(json.dumps(row))
    for line in left_out(left):
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
