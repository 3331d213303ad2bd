#!/usr/bin/env python3
"""Asks `fathom plan` and `fathom batch` random questions and holds the commands that they print against what they said.

Usage: plan_questions.py BUILD-FOLDER [COUNT [SEED]]

The command of the best configuration must predict the same bytes, verdict and seconds; the line for `emit` must write files
that say the same peak; each row of memory against time and each change that would do must be what `predict` says of it.
"""
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

RECIPES = [("trl", "sft"), ("trl", "reward"), ("trl", "dpo"), ("trl", "grpo"), ("transformers", "sft"), ("hf", "sft"),
           ("deepspeed", "sft"), ("axolotl", "sft"), ("llamafactory", "sft"), ("trinity", "grpo"), ("verl", "grpo"),
           ("megatron", "grpo")]
MODELS = ["Qwen3-0.6B", "Qwen3-1.7B", "Llama-3.2-1B"]
GPUS = ["RTX4090", "2xRTX4090", "H200", "4xA100-80G", "8xH100-80G", "2xL40S"]


def lengths_in(folder):
    """A file of lengths, most of them short."""
    path, rng = os.path.join(folder, "lengths.txt"), random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("%d\n" % min(8192, int(rng.lognormvariate(6.3, 0.8)) + 8) for _ in range(999))
    return path


def question(rng, recipe, task, lengths):
    words = ["--recipe", recipe, "--task", task, "--model", rng.choice(MODELS), "--gpu", rng.choice(GPUS), "--context",
             str(rng.choice([1024, 2048, 4096])), "--global-batch", str(rng.choice([8, 16]))]
    if rng.random() < 0.3:
        words += ["--goal", rng.choice(["memory", "simplicity", "cost"])]
    if rng.random() < 0.3:
        words += ["--data-size", "1001", "--price", "0.4"]
    if rng.random() < 0.3 and recipe in ("trl", "axolotl", "llamafactory"):
        words += ["--lora", "16"]
    if recipe in ("trl", "transformers") and task != "grpo":
        words += rng.choice([[], ["--batching", "padded"], ["--batching", "padded", "--data", lengths]])
    return words


class Judge:
    def __init__(self, program):
        self.program = program
        self.passed = self.failed = 0

    def ask(self, command, words):
        done = subprocess.run([self.program, command, *words, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=600)
        return json.loads(done.stdout)

    def check(self, what, fine):
        self.passed += fine
        self.failed += not fine
        if not fine:
            print("FAILED: " + what)

    def same(self, what, said, words):
        """What a command predicts is what was said of it: bytes, verdict, and seconds where the whole step is timed."""
        found = self.ask("predict", words)
        told = (said["reserved_bytes"], said["verdict"], (said.get("time") or {}).get("step_s"))
        peak = found.get("peak") or {}
        seconds = (found.get("time") or {}).get("step_s")
        asked = (peak.get("reserved_bytes"), found.get("verdict", {}), seconds if seconds is not None else told[2])
        if isinstance(asked[1], dict):
            asked = (asked[0], asked[1].get("grade"), asked[2])
        self.check("%s: %s was said, %s is predicted by %s" % (what, told, asked, " ".join(words)), told == asked)


def words_of(command):
    return shlex.split(command)[2:]


def check_emit(judge, what, best):
    with tempfile.TemporaryDirectory() as folder:
        words = words_of(best.get("emit", best["command"] + " --dataset prompts.jsonl -o run"))
        words[words.index("-o") + 1] = os.path.join(folder, "run")
        done = subprocess.run([judge.program, "emit", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=600)
        if "emit" not in best:  # then there is none
            judge.check("%s: no files are named, and they are written" % what, done.returncode == 2)
            return
        found = re.search(r"Peak ([\d.]+) GiB reserved", " ".join((done.stdout + done.stderr).split()))
        fine = done.returncode == 0 and found and abs(float(found.group(1)) - best["reserved_bytes"] / 2**30) < 0.006
        judge.check("%s: its files say %s" % (what, found.group(0) if found else done.stderr[-200:]), bool(fine))


def check_plan(judge, rng, words):
    what, answer = "plan " + " ".join(words), judge.ask("plan", words)
    if "error" in answer:
        judge.check("%s: %s" % (what, answer["error"]), answer["error"]["message"] != "")
        return False
    best = answer["best"]
    if not best:
        for change in answer["changes"]:
            judge.same(what + ", " + change["what"], change, words_of(change["command"]))
        return True
    judge.same(what, best, words_of(best["command"]))
    if "--data" not in words:  # which files do not know
        check_emit(judge, what, best)
    base = [w for pair in zip(words[::2], words[1::2]) for w in pair
            if pair[0] not in ("--goal", "--global-batch", "--data-size", "--price")]
    target = words_of(best["command"])
    base += target[target.index("--for"):target.index("--for") + 2]
    row = rng.choice(answer["pareto"])
    judge.same(what + ", a row of memory against time", row, with_options(base, shlex.split(row["options"])))
    return True


def with_options(base, options):
    """Options over a base that may have them already."""
    kept = [w for pair in zip(base[::2], base[1::2]) for w in pair if pair[0] not in options]
    return kept + options


def check_batch(judge, words):
    words = [w for pair in zip(words[::2], words[1::2]) for w in pair if pair[0] != "--goal"]
    what, answer = "batch " + " ".join(words), judge.ask("batch", words)
    if "command" not in answer:
        return
    command = words_of(answer["command"])
    size = {name: int(command[command.index("--" + name) + 1]) if "--" + name in command else 1
            for name in ("batch", "accum", "cp", "sp")}
    row = next(r for r in answer["rows"] if all(r[name] == value for name, value in size.items()))
    judge.check("%s: %s makes up the batch" % (what, size), row["batch"] * row["accum"] * row["data_parallel"]
                == answer["global_batch"])
    judge.same(what, {**row, "time": {"step_s": row["step_s"]}}, command)


def main():
    judge = Judge(os.path.join(sys.argv[1], "fathom"))
    count, rng, answered = int(sys.argv[2]) if len(sys.argv) > 2 else 12, random.Random(sys.argv[3] if len(sys.argv) > 3 else 17), 0
    with tempfile.TemporaryDirectory() as folder:
        lengths = lengths_in(folder)
        for i in range(count):
            words = question(rng, *RECIPES[i % len(RECIPES)], lengths)
            answered += check_plan(judge, rng, words)
            check_batch(judge, words)
    print("%d questions, of which %d have an answer" % (count, answered))
    print("%d passed, %d failed" % (judge.passed, judge.failed))
    return 1 if judge.failed or answered < count * 2 // 3 else 0


if __name__ == "__main__":
    sys.exit(main())
