#!/usr/bin/env python3
"""With --json every end of every command is one JSON object on standard output: answers, refusals, dry runs, and
the end of memory.

Usage: tests/cli/test_ends.py PROGRAM-FOLDER
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

FATHOM = os.path.join(os.path.abspath(sys.argv.pop(1)), "fathom")
JOB = ("--model", "Qwen3-0.6B", "--gpu", "A100-40G")
TRIALS = ("probe", "--engine", "command", "--grid", "1024")


class Ends(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fathom-ends-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def ask(self, *words, status, before=None):
        done = subprocess.run([FATHOM, *words, "--json"], cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, preexec_fn=before)
        self.assertEqual(done.returncode, status, done.stderr)
        reply = json.loads(done.stdout)
        self.assertEqual("error" in reply, status > 1, done.stdout)
        return reply

    def test_every_command(self):
        with open(os.path.join(self.folder, "empty.log"), "w"):
            pass
        for status, *words in (
                (2,), (2, "nope"), (0, "--help"), (0, "--version"), (0, "help"), (0, "help", "predict"), (0, "man"),
                (0, "completion", "bash"), (2, "completion"), (0, "predict", "--help"), (0, "gpus"), (0, "models"),
                (0, "show", *JOB), (0, "predict", *JOB, "--context", "512"), (1, "predict", *JOB, "--context", "512k"),
                (2, "predict", *JOB, "--context", "x"), (0, "max", *JOB, "--grid", "16384"),
                (2, "max", *JOB, "--format", "csv"), (0, "guide", *JOB, "--lengths", "4096"),
                (0, "emit", *JOB, "--context", "512", "--for", "accelerate"), (2, "emit"), (2, "replay"),
                (2, "replay", "missing"), (1, "doctor", "empty.log"), (2, "doctor"), (2, "probe"),
                (2, "probe", "--list"), (2, "probe", "--export", "csv"),
                (3, *TRIALS, "--command", "exit 9 # {context}", "--tries", "1")):
            with self.subTest(words=words):
                self.ask(*words, status=status)

    def test_progress(self):
        """A plan that takes more than a second shows a bar on a terminal, erases it, and keeps its JSON clean."""
        ours, theirs = os.openpty()
        plan = subprocess.Popen(
            [FATHOM, "plan", "--recipe", "trl", "--model", "Qwen3-32B", "--gpu", "4xH200", "--context", "4096",
             "--global-batch", "64", "--strategy", "fsdp2", "--exhaustive", "on", "--cp", "1",
             "--json"], stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        reply = json.loads(plan.communicate()[0])
        self.assertGreater(reply["predicted"], 100)
        self.assertRegex(shown, rb"\r\[#*\.*\] [0-9]+ of [0-9]+")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-40:])

    def test_dry_run(self):
        reply = self.ask(*TRIALS, "--command", "train {context}", "--model", "Qwen3-0.6B", "--gpus", "1,2", "--sp", "2",
                         "--start", "1024", "--dry-run", status=0)
        one, two = reply["cells"]
        if one["gpus"] == 2:
            one, two = two, one
        self.assertEqual(one["state"], "impossible")
        self.assertTrue(one["why"])
        self.assertNotIn("commands", one)
        self.assertEqual(two["state"], "planned")
        self.assertEqual(len(two["commands"]), 2)
        self.assertIn("1024", two["commands"][0])
        self.assertIn("2048", two["commands"][1])
        self.assertEqual(reply["settings"]["model"], "Qwen3-0.6B")
        self.assertEqual(os.listdir(self.folder), [])

    def test_out_of_memory(self):
        """Sanitized builds have 512 MiB for a request; others get as little by a limit on address space."""
        with open(os.path.join(self.folder, "trace.txt"), "wb") as file:
            file.write(64 * b"alloc 512 512 0\n")
            file.truncate(700 << 20)
        with open(FATHOM, "rb") as program:
            sanitized = b"__asan_init" in program.read()
        limit = (600 << 20, 600 << 20)
        before = None if sanitized else lambda: resource.setrlimit(resource.RLIMIT_AS, limit)
        reply = self.ask("replay", "trace.txt", status=70, before=before)
        self.assertEqual(reply["error"], {"code": "no_memory", "message": "this request needs more memory than there is"})


unittest.main()
