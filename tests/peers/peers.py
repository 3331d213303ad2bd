#!/usr/bin/env python3
"""Lays the estimators of others beside ours, on the same measured jobs, in one run: docs/peers.md.

Usage: peers.py FATHOM [OUTPUT]

Rows are those of tests/runs: h200_runs.jsonl (steps written by hand) and real_trainers.jsonl (unmodified TRL and
transformers jobs). Each estimator is asked for every row that it has words for; a row that it has none for is counted
by reason. What they say is compared with the nearer of the allocated and the reserved peak, since few of them say
which of the two they mean. Time is that of one answer: of a whole process for Fathom, without imports for the others.
"""
import collections
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "measured"))
import accuracy  # noqa: E402
import real_trainers  # noqa: E402
from estimators import CannotSay, ESTIMATORS, MOST_ASKED  # noqa: E402

OURS = "Fathom"


def rows():
    """(settings, peaks of each step) of every measured row that ran to its end."""
    for row in accuracy.read_runs(os.path.join(os.path.dirname(HERE), "runs", "h200_runs.jsonl")):
        if not row.died:
            yield dict(row.settings), row.peaks
    for row in real_trainers.rows_of_file():
        if row["cfg"]["id"] not in real_trainers.NOT_MODELLED:
            yield real_trainers.settings_of(row["cfg"]), row["steps"]


def asked(program, settings):
    """(job with everything resolved, our bytes, seconds)."""
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    start = time.perf_counter()
    done = subprocess.run([program, "predict", *words, "--json"], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    reply = json.loads(done.stdout)
    said = reply["settings"]
    fewer = [word for name in ("layers", "tied") if name in said for word in (f"--{name}", str(said[name]))]
    shapes = json.loads(subprocess.run([program, "models", said["model"], *fewer, "--json"], capture_output=True,
                                       text=True, check=True).stdout)
    job = dict(said, shape=dict(shapes["model"]), parameters=shapes["parameters"]["total"])
    job["gpus"] = int(settings["gpu"].split("x")[0]) if "x" in settings["gpu"] else 1
    return job, reply["steps"], seconds


def largest(steps, name):
    return max(step[name] for step in steps)


class Score:
    def __init__(self):
        self.errors, self.seconds, self.reasons = [], [], collections.Counter()

    def add(self, said, peaks, seconds):
        self.errors.append(min((said / peak - 1 for peak in peaks), key=abs))
        self.seconds.append(seconds)

    def cells(self, total):
        if not self.errors:
            return [f"0 of {total}"] + ["-"] * 5
        sizes = sorted(abs(error) for error in self.errors)
        within = sum(size <= 0.05 for size in sizes)
        low = sum(error < -0.01 for error in self.errors)
        return [f"{len(sizes)} of {total}", f"{100 * statistics.median(sizes):.2f} %",
                f"{100 * sizes[int(0.9 * len(sizes))]:.1f} %", f"{within} of {len(sizes)}", f"{low} of {len(sizes)}",
                f"{1000 * statistics.median(self.seconds):.3g} ms"]


def compare(program):
    scores = {name: Score() for name, _ in [(OURS, None)] + ESTIMATORS}
    total = 0
    for settings, steps in rows():
        total += 1
        peaks = [largest(steps, "allocated"), largest(steps, "reserved")]
        job, said, seconds = asked(program, settings)
        # Both of our figures, each against its own: the worse of the two errors counts.
        errors = [largest(said, f"{kind}_bytes") / peak - 1 for kind, peak in zip(("allocated", "reserved"), peaks)]
        scores[OURS].errors.append(max(errors, key=abs))
        scores[OURS].seconds.append(seconds)
        for name, estimator in ESTIMATORS:
            start = time.perf_counter()
            if len(scores[name].errors) >= MOST_ASKED.get(estimator, total):
                scores[name].reasons["not asked: it takes too long"] += 1
                continue
            try:
                said_bytes = estimator(job)
            except CannotSay as why:
                scores[name].reasons[str(why)] += 1
                continue
            scores[name].add(said_bytes, peaks, time.perf_counter() - start)
        print(f"\r{total} rows", end="", file=sys.stderr)
    print(file=sys.stderr)
    return scores, total


def document(scores, total):
    header = ["estimator", "jobs it has words for", "median error", "90th percentile", "within 5 %",
              "said less than it took", "one answer"]
    lines = ["# Others, on the same jobs", "",
             f"`make peers` installs the estimators that PyPI has and asks each for the {total} measured jobs of "
             "`tests/runs` (`h200_runs.jsonl`, steps written by hand, and `real_trainers.jsonl`, unmodified TRL and "
             "transformers jobs) that it has words for. Theirs is compared with the nearer of the allocated and the "
             "reserved peak, since few say which of the two they mean; of ours, which says both, the worse of the two "
             "errors counts. Our bars were reached on these rows, so the fair test of ours are rows of your own.", "",
             "| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += [f"| {name} | {' | '.join(score.cells(total))} |" for name, score in scores.items()]
    lines += ["", "Time is that of one answer, with whatever else the machine did: a whole process for Fathom, without "
                  "starting Python and importing for the others. MemTracker was asked for the first six jobs that it "
                  "has words for only.", "", "## What they have no words for", ""]
    for name, score in scores.items():
        if score.reasons:
            said = ", ".join(f"{why} {count}" for why, count in score.reasons.most_common())
            lines.append(f"- {name}: {said}.")
    lines += ["", "Not asked: llm-analysis 0.2.2 (needs transformers below 5, and MLPs whose width is a multiple of the "
                  "model's, which Qwen3's and Llama's are not); those that know inference only (hf-mem, canirun, "
                  "llm-mem)."]
    return "\n".join(lines) + "\n"


def main():
    scores, total = compare(sys.argv[1])
    text = document(scores, total)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
