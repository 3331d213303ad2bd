#!/usr/bin/env python3
"""Holds what `fathom split` says against `serve` and `predict`, asked one by one.

Usage: split.py BUILD-FOLDER

Engines have sizes that the models' heads allow and lie within a node, a server's memory is what `serve` says, training's
memory and seconds are what `predict` says for as many micro-batches, the teacher's seconds follow from the rate at which
it reads, no division that is named is faster than the best, and roles that take turns have room beside what sleeps. What
one GPU more in the node would bring is what a node of so many is told. The advice is asked again, and where nothing can
be the change that is named works.
"""
import json
import os
import re
import resource
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


def check_server(judge, case, what, division, name):
    teacher, student, _, per_node, card, more = case
    role = {role["role"]: role for role in division["roles"]}[name]
    model = teacher if name == "teacher" else student
    engine = more[1] if "--engine" in more else "vllm"
    judge.check(what + ": engines of the " + name, role["tp"] in HEADS[model] and per_node % role["tp"] == 0
                and role["tp"] * role["pp"] * role["engines"] == role["gpus"]
                and (role["first_gpu"] % role["tp"] == 0 or role["nodes"] == 1))
    shared = division["layout"] == "together" or (division["layout"] == "colocated" and name == "rollout")
    server = judge.ask("serve", "--model", model, "--gpu", card, "--tp", role["tp"], "--engine", engine, "--context",
                       PROMPT + RESPONSE)
    if shared:  # on what others leave of the card
        judge.check(what + ": the %s takes less than alone" % name, role["reserved_bytes"] < server["budget_bytes"])
        return
    judge.check(what + ": the %s starts" % name, server["starts"])
    if name == "rollout":
        judge.check(what + ": the engine's memory", server["budget_bytes"] == role["reserved_bytes"])
    else:  # log-probabilities of prompts lie beside the budget, which is smaller where they would not
        less = server["budget_bytes"] - role["reserved_bytes"]
        judge.check(what + ": room for scores", 0 <= less <= role["score_bytes"]
                    and role["reserved_bytes"] + role["score_bytes"] <= server["free_bytes"])
    if name == "teacher":
        tokens = PROMPTS * SAMPLES * (PROMPT + RESPONSE)
        seconds = tokens / (server["prefill"]["tokens_per_s"] * role["engines"])
        judge.check(what + ": the teacher's seconds", near(role["seconds"], seconds))


def check_turns(judge, what, roles, division, step):
    """While one role has the GPUs, what the others leave there has room too."""
    train, card = roles["train"], step["capacity_bytes"]
    beside = step["peak"]["driver_bytes"] - step["peak"]["reserved_bytes"]
    sleepers = ["rollout"] + (["teacher"] if division["layout"] == "together" else [])
    asleep = sum(roles[name]["asleep_bytes"] for name in sleepers)
    judge.check(what + ": training beside sleepers", train["reserved_bytes"] + beside + asleep <= card)
    state = 0 if division["offloaded"] else train["state_bytes"]
    for name in sleepers:
        judge.check(what + ": %s beside training's state" % name, roles[name]["reserved_bytes"] + state < card)
    judge.check(what + ": host memory", (division["host_bytes"] > 0) == (
        division["offloaded"] or division["layout"] == "together"))


def check_division(judge, case, division):
    teacher, student, nodes, per_node, card, more = case
    what = "%s and %s on %d x %d, %s" % (teacher, student, nodes, per_node, division["layout"])
    roles = {role["role"]: role for role in division["roles"]}
    gpus = {"apart": sum(role["gpus"] for role in roles.values()), "together": roles["train"]["gpus"],
            "colocated": roles["teacher"]["gpus"] + roles["train"]["gpus"]}[division["layout"]]
    judge.check(what + ": all GPUs", gpus == nodes * per_node)
    for name in ("teacher", "rollout"):
        check_server(judge, case, what, division, name)
    train = roles["train"]
    count = -(-train["gpus"] // per_node)
    rest = [word for word in more if word not in ("--engine", "sglang")]
    step = judge.ask("predict", "--model", student, "--gpu", "%dx%dx%s" % (count, train["gpus"] // count, card),
                     "--context", PROMPT + RESPONSE, "--accum", -(-PROMPTS * SAMPLES // train["gpus"]), *rest)
    judge.check(what + ": training is safe", step["verdict"] == "safe"
                and step["peak"]["reserved_bytes"] == train["reserved_bytes"])
    judge.check(what + ": training's seconds are predict's", abs(step["time"]["step_s"] / train["seconds"] - 1) < 1e-5)
    scores, answers = roles["teacher"]["seconds"], roles["rollout"]["seconds"]
    made = scores + answers if division["layout"] == "together" else max(scores, answers)
    judge.check(what + ": an iteration", near(
        division["iteration_s"], made + train["seconds"] + division["sync_s"] + division["moves_s"]))
    if division["layout"] == "apart":
        judge.check(what + ": one step off",
                    near(division["one_step_off_s"], max(made, train["seconds"]) + division["sync_s"]))
    else:
        judge.check(what + ": no step off", division["one_step_off_s"] is None)
        check_turns(judge, what, roles, division, step)


def check_advice(judge, reply):
    """A smaller global batch does not help, fewer prompts neither."""
    for change in reply["advice"]:
        what = "%s: %s" % (change["role"], change["change"])
        before, after = change["before_bytes"], change["after_bytes"]
        judge.check(what, change["helps"] == (after + before // 200 < before))
        if "global batch" in change["change"] or "prompts" in change["change"]:
            judge.check(what + " is said to help", not change["helps"])
        if "GPUs" in change["change"] or "fp8" in change["change"]:
            judge.check(what + " is said not to help", change["helps"])
    judge.check("advice for every role", {change["role"] for change in reply["advice"]} == {"teacher", "train", "rollout"})


# What cannot be: words of the sentence, and what is said to work (None: nothing is asked again).
WISHES = [
    (["--teacher", "Qwen3-32B", "--student", "Qwen3-4B", "--gpu", "8xH100-80G", "--teacher-gpus", "5", "--rollout", "4"],
     "whole engines", None),
    (["--teacher", "DeepSeek-V3", "--student", "Qwen3-4B", "--gpu", "8xH100-80G"], "16 GPUs have room", "2x8xH100-80G"),
    (["--teacher", "Qwen3-235B-A22B", "--student", "Qwen3-8B", "--gpu", "4xH100-80G"], "-FP8) start on 4", None),
    (["--teacher", "Qwen3-32B", "--student", "Qwen2.5-32B", "--gpu", "4xA100-40G"], "on 32 it is", None),
    (["--teacher", "Qwen3-8B", "--student", "Qwen3-8B", "--gpu", "3xH100-80G", "--layout", "apart"], "have room for all",
     "5xH100-80G"),
    (["--teacher", "Qwen3-32B", "--student", "Qwen3-4B", "--gpu", "8xH100-80G", "--framework", "trinity", "--layout",
      "together"], "GPUs of their own", None),
    (["--teacher", "Qwen3-32B", "--student", "Qwen3-4B", "--gpu", "8xH100-80G", "--framework", "trl", "--layout",
      "together"], "beside the student", None),
    (["--teacher", "Qwen3-32B", "--student", "Qwen3-4B", "--gpu", "2048xH100-80G"], "1024 GPUs", None),
]


def check_step(judge, framework, train):
    """The framework's own step where it is modelled, else the plain one, as predict has it; with slime's pass that reads
    log-probabilities, or verl's, of which a part of the plain step is said."""
    megatron = framework == "slime" and not train["memory_of_plain_step"]
    own = ["--recipe", "megatron", "--tp", train["tp"], "--pp", train["pp"]] if megatron else []
    step = judge.ask("predict", "--model", "Qwen3-4B", "--gpu", "%dxH100-80G" % train["gpus"], "--context", PROMPT + RESPONSE,
                     "--accum", train["micro_batches"], *own)
    own_memory = framework == "verl" and not train["memory_of_plain_step"]
    whole = judge.ask("predict", "--recipe", "verl", "--model", "Qwen3-4B", "--gpu", "%dxH100-80G" % train["gpus"], "--context",
                      PROMPT + RESPONSE, "--accum", train["micro_batches"]) if own_memory else step
    seconds = step["time"]["step_s"] * (1.26 if framework == "verl" else 1) + step["time"].get("reading_s", 0)
    judge.check("%s: training is predict's" % framework, whole["peak"]["reserved_bytes"] == train["reserved_bytes"]
                and abs(seconds / train["seconds"] - 1) < 1e-5)


def check_wishes(judge):
    for words, expected, works in WISHES:
        reply = judge.ask("split", *words)
        error = reply.get("error", {})
        message = "%s; %s" % (error.get("message", ""), error.get("hint", ""))
        judge.check("%s: %s" % (" ".join(words), message), expected in message)
        if works:
            changed = words[:words.index("--gpu") + 1] + [works] + words[words.index("--gpu") + 2:]
            judge.check(" ".join(changed) + " works", "best" in judge.ask("split", *changed))
    for framework, layouts in (("slime", {"apart", "colocated"}), ("verl", {"colocated"}), ("trinity", {"apart"}),
                               ("trl", {"apart", "colocated"})):
        reply = judge.ask("split", "--teacher", "Qwen3-32B", "--student", "Qwen3-4B", "--gpu", "8xH100-80G", "--framework",
                          framework)
        seen = {reply["best"]["layout"]} | {other["layout"] for other in reply["alternatives"]}
        judge.check("%s: %s" % (framework, seen), seen == layouts)
        if framework != "trinity":
            check_step(judge, framework, {role["role"]: role for role in reply["best"]["roles"]}["train"])


def check_asked(judge):
    """The guide's own divisions: six and three GPUs of a teacher are so many engines of one GPU."""
    for teacher, rollout in ((4, 2), (6, 1), (3, 2)):
        reply = judge.ask("split", "--teacher", "Qwen3-VL-30B-A3B-Thinking", "--student", "Qwen3-VL-4B-Thinking", "--images",
                          1, "--gpu", "8xH100-80G", "--engine", "sglang", "--layout", "apart", "--teacher-gpus", teacher,
                          "--rollout", rollout)
        roles = {role["role"]: role for role in reply["best"]["roles"]}
        judge.check("%d and %d as asked" % (teacher, rollout), roles["teacher"]["gpus"] == teacher
                    and roles["rollout"]["gpus"] == rollout and roles["train"]["gpus"] == 8 - teacher - rollout)
        judge.check("%d GPUs of a teacher" % teacher, roles["teacher"]["tp"] == 1 and roles["teacher"]["engines"] == teacher)


def check_guide(judge):
    """Every cell of the guide's two memory tables, as docs/guides/opd-vlm.md has them."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "guides", "opd-vlm.md")
    rows = re.findall(r"^\| (Qwen3-VL-\S+) \| (\d) \| [^|]* \| (.*) \|$", open(path, encoding="utf-8").read(), re.M)
    judge.check("nine rows", len(rows) == 9)
    for model, gpus, cells in rows:
        figures = [float(cell.split()[0]) for cell in cells.split("|")]
        if len(figures) == 3:
            reply = judge.ask("serve", "--model", model + "-Thinking", "--gpu", "8xH100-80G", "--engine", "sglang",
                              "--context", 5120, "--tp", gpus)
            found = [reply["weights_bytes"] / 2**30, reply["kv_bytes"] / 2**30, reply["sequences"]]
        else:
            reply = judge.ask("predict", "--model", model + "-Thinking", "--gpu", gpus + "xH100-80G", "--context", 5120,
                              "--images", 1, "--accum", 2)
            found = [reply["peak"]["reserved_bytes"] / 2**30]
        judge.check("%s on %s: %s, not %s" % (model, gpus, found, figures),
                    all(abs(one - other) <= 0.05 for one, other in zip(found, figures)))


def check_many(judge):
    """Machines of 64 and 1024 GPUs, within a second of one core where nothing checks addresses."""
    for gpus, nodes in ((64, 8), (1024, 128)):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        reply = judge.ask("split", "--teacher", "Qwen3-32B", "--student", "Qwen3-4B", "--gpu", "%dx8xH100-80G" % nodes)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        print("%d GPUs: %.1f s in %.2f s of a core" % (gpus, reply["best"]["iteration_s"], seconds))
        judge.check("%d GPUs take %.2f s" % (gpus, seconds), seconds < (1 if "release" in judge.fathom else 20))


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
            if other["name"] in ("apart", "colocated", "together"):
                alone = judge.ask("split", "--teacher", teacher, "--student", student, "--gpu",
                                  "%dx%dx%s" % (nodes, per_node, card), "--layout", other["name"], *more)
                judge.check("--layout " + other["name"], alone["best"]["iteration_s"] == other["iteration_s"])
        check_advice(judge, reply)
        if nodes == 1:
            larger = judge.ask("split", "--teacher", teacher, "--student", student, "--gpu",
                               "%dx%s" % (per_node + 1, card), *more)
            judge.check("%s and %s: one GPU more" % (teacher, student),
                        near(reply["one_gpu_more_iteration_s"], larger["best"]["iteration_s"]))
        print("%s teaches %s on %d x %s: %.1f s" % (teacher, student, nodes * per_node, card, best["iteration_s"]))
    check_wishes(judge)
    check_asked(judge)
    check_guide(judge)
    check_many(judge)
    sys.exit(bool(judge.bad))


if __name__ == "__main__":
    main()
