#!/usr/bin/env python3
"""Holds what `fathom split` says against `serve` and `predict`, asked one by one.

Usage: split.py BUILD-FOLDER

Every division that is shown uses all GPUs, engines have sizes that the models' heads allow and lie within a node, a
server's memory is what `serve` says, training's what `predict` says, the teacher's seconds follow from the rate at which
it reads, and no division with other numbers of GPUs is faster than the best. What one GPU more in the node would bring is
what a node of so many is told.
"""
import json
import os
import subprocess
import sys

PROMPT, RESPONSE, PROMPTS, SAMPLES = 1024, 4096, 64, 8
CASES = [("Qwen3-VL-30B-A3B-Thinking", "Qwen3-VL-4B-Thinking", 1, 8, "H100-80G", ["--images", "1"]),
         ("Qwen3-VL-30B-A3B-Thinking", "Qwen3-VL-4B-Thinking", 2, 8, "H100-80G", ["--images", "1"]),
         ("Qwen3-32B", "Qwen3-4B", 1, 8, "H200", []),
         ("Qwen3-14B", "Qwen3-1.7B", 1, 4, "A100-80G", ["--engine", "sglang"])]
HEADS = {"Qwen3-VL-30B-A3B-Thinking": (1, 2, 4, 8), "Qwen3-VL-4B-Thinking": (1, 2, 4, 8), "Qwen3-32B": (1, 2, 4, 8),
         "Qwen3-4B": (1, 2, 4, 8), "Qwen3-14B": (1, 2, 4, 8), "Qwen3-1.7B": (1, 2, 4, 8)}


class Judge:
    def __init__(self, fathom):
        self.fathom = fathom
        self.bad = 0

    def ask(self, *words):
        done = subprocess.run([self.fathom, *map(str, words), "--json"], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)

    def check(self, what, true):
        if not true:
            print("FAILED: " + what)
            self.bad += 1


def near(one, other):
    return abs(one - other) <= 1e-3 * abs(other)


def check_division(judge, case, division):
    teacher, student, nodes, per_node, card, more = case
    what = "%s and %s on %d x %d" % (teacher, student, nodes, per_node)
    roles = {role["role"]: role for role in division["roles"]}
    engine = more[1] if "--engine" in more else "vllm"
    judge.check(what + ": all GPUs", sum(role["gpus"] for role in roles.values()) == nodes * per_node)
    for name, model in (("teacher", teacher), ("rollout", student)):
        role = roles[name]
        judge.check(what + ": engines of the " + name, role["tp"] in HEADS[model] and per_node % role["tp"] == 0
                    and role["tp"] * role["engines"] == role["gpus"] and role["first_gpu"] % role["tp"] == 0)
        server = judge.ask("serve", "--model", model, "--gpu", card, "--tp", role["tp"], "--engine", engine, "--context",
                           PROMPT + RESPONSE)
        judge.check(what + ": the %s starts" % name, server["starts"] and server["budget_bytes"] == role["reserved_bytes"])
        if name == "teacher":
            tokens = PROMPTS * SAMPLES * (PROMPT + RESPONSE)
            seconds = tokens / (server["prefill"]["tokens_per_s"] * role["engines"])
            judge.check(what + ": the teacher's seconds", near(role["seconds"], seconds))
    train = roles["train"]
    count = -(-train["gpus"] // per_node)
    rest = [word for word in more if word not in ("--engine", "sglang")]
    steps = [judge.ask("predict", "--model", student, "--gpu", "%dx%dx%s" % (count, train["gpus"] // count, card),
                       "--context", PROMPT + RESPONSE, "--accum", accum, *rest) for accum in (1, 2)]
    judge.check(what + ": training is safe", all(step["verdict"] == "safe" for step in steps)
                and max(step["peak"]["reserved_bytes"] for step in steps) == train["reserved_bytes"])
    made = max(roles["teacher"]["seconds"], roles["rollout"]["seconds"])
    judge.check(what + ": an iteration", near(division["iteration_s"], made + train["seconds"] + division["sync_s"]))
    judge.check(what + ": one step off",
                near(division["one_step_off_s"], max(made, train["seconds"]) + division["sync_s"]))


def main():
    judge = Judge(os.path.join(sys.argv[1], "fathom"))
    for case in CASES:
        teacher, student, nodes, per_node, card, more = case
        reply = judge.ask("split", "--teacher", teacher, "--student", student, "--gpu", "%dx%dx%s" % (nodes, per_node, card),
                          *more)
        best = reply["best"]
        check_division(judge, case, best)
        for other in reply["alternatives"]:
            check_division(judge, case, other)
            judge.check("%s is faster than the best" % other["name"],
                        other["iteration_s"] >= best["iteration_s"] * (1 - 1e-6))
        if nodes == 1:
            larger = judge.ask("split", "--teacher", teacher, "--student", student, "--gpu",
                               "%dx%s" % (per_node + 1, card), *more)
            judge.check("%s and %s: one GPU more" % (teacher, student),
                        near(reply["one_gpu_more_iteration_s"], larger["best"]["iteration_s"]))
        print("%s teaches %s on %d x %s: %.1f s" % (teacher, student, nodes * per_node, card, best["iteration_s"]))
    sys.exit(bool(judge.bad))


if __name__ == "__main__":
    main()
