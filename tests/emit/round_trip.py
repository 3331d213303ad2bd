#!/usr/bin/env python3
"""Reads back with --from what `fathom emit` writes, for every case of tests/emit/cases.txt.

Usage: tests/emit/round_trip.py PROGRAM-FOLDER [CASE...]

Only the card, and what files cannot say of themselves, is given again. The prediction must be the
one in the files, down to the byte, with the settings that were asked for; and the same files must
come out when they are written once more.
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGETS = ("accelerate", "deepspeed", "trl", "trinity", "verl", "transformers", "axolotl",
           "llamafactory")
# What no file of the frameworks says, or --from does not read: the user's own choice of names, the
# engines beside the trainer, and torch's version.
NOT_IN_FILES = ("dataset", "save-to", "verl", "rollout", "teacher", "torch")
NOT_OF_THE_JOB = NOT_IN_FILES + ("for", "gpu", "task", "nvme", "samples")


def cases():
    with open(os.path.join(TESTS, "emit", "cases.txt")) as lines:
        for line in lines:
            if not line.startswith("#"):
                name, _, arguments = line.partition(":")
                words = shlex.split(arguments)
                yield name, dict(zip((w[2:] for w in words[::2]), words[1::2]))


def options(settings, names):
    return [word for name in names if name in settings for word in ("--" + name, settings[name])]


def same(asked, found):
    number = {"k": 1024}.get(asked[-1:], 1)
    if asked.rstrip("k").isdigit():
        return str(int(asked.rstrip("k")) * number) == str(found)
    return asked.split("/")[-1] == str(found).split("/")[-1]


class Trip:
    def __init__(self, program, name, settings, folder):
        self.program, self.name, self.settings, self.folder = program, name, settings, folder
        self.card = settings["gpu"].split("x")[-1]
        self.command, self.wrong = "", []

    def run(self, *words):
        self.command = shlex.join(["fathom", *words])
        return subprocess.run([self.program, *words], capture_output=True, text=True)

    def fail(self, text):
        self.wrong.append(f"{self.name}: {text}\n  {self.command}")

    def check_prediction(self, emitted, done):
        if "fits" not in emitted:
            if done.returncode != 2:
                self.fail(f"predicted, though the files say: {emitted['predicted']}")
            return
        if done.returncode not in (0, 1):
            self.fail(done.stderr.strip())
            return
        answer = json.loads(done.stdout)
        if answer["fits"] != emitted["fits"]:
            self.fail(f"fits is {answer['fits']}, and the files say: {emitted['predicted']}")
        for key, bytes_ in emitted.get("peak", {}).items():
            if answer["peak"][key] != bytes_:
                self.fail(f"{key} {answer['peak'][key]}, and the files say {bytes_}")
        for key, value in self.settings.items():
            if key not in NOT_OF_THE_JOB and not same(value, answer["settings"].get(key)):
                self.fail(f"{key} is {answer['settings'].get(key)}, and was {value}")

    def content(self, path):
        lines = open(path).read().splitlines()
        # The published test's own prompt is a default when it is written, and given when it is read.
        if self.settings.get("task") == "capacity":
            lines = [line for line in lines if not line.startswith("#")]
        return lines

    def check_files(self, again):
        for file in sorted(os.listdir(self.folder)):
            first, second = os.path.join(self.folder, file), os.path.join(again, file)
            if not os.path.exists(second):
                self.fail(f"{file} is not written again")
            elif self.content(first) != self.content(second):
                self.fail(f"{file} differs when it is written again")

    def go(self):
        given = options(self.settings, self.settings)
        done = self.run("emit", *given, "-o", self.folder, "--json")
        if done.returncode not in (0, 1):
            self.fail(done.stderr.strip())
            return self.wrong
        said = ["--from", self.folder, "--gpu", self.card]
        torch = options(self.settings, ["torch"])
        self.check_prediction(json.loads(done.stdout),
                              self.run("predict", *said, *torch, "--json"))
        if "nvme" in self.settings:
            return self.wrong
        names = ["for", *NOT_IN_FILES]
        names += ["task"] if self.settings.get("task") == "capacity" else []
        again = self.folder + "-again"
        done = self.run("emit", *said, *options(self.settings, names), "-o", again)
        if done.returncode not in (0, 1):
            self.fail(done.stderr.strip())
        else:
            self.check_files(again)
        return self.wrong


def main(programs, wanted):
    wrong, program = [], os.path.abspath(os.path.join(programs, "fathom"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, settings in cases():
            if settings["for"] in TARGETS and (not wanted or name in wanted):
                wrong += Trip(program, name, settings, name).go()
    for text in wrong:
        print(text)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
