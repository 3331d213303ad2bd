#!/usr/bin/env python3
"""Emitted launch scripts, run from elsewhere with launchers that only look: the model that they name is the one
that the caller named, and no hub's id by the same name.

Usage: tests/emit/test_launch.py PROGRAM-FOLDER
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

FATHOM = os.path.join(os.path.abspath(sys.argv.pop(1)), "fathom")
CONFIG = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 1000,
          "max_position_embeddings": 8192}
LAUNCHER = """#!/bin/sh
printf '%s\\n' "$PWD" "$@" >> "$LAUNCHED"
"""
NAMED = re.compile(r"^(?:\s*model_name_or_path: |\s*model_path: |.*model\.path=|--model=)(.*)$", re.M)


class Launch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fathom-launch-")
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.programs = os.path.join(self.folder, "bin")
        os.makedirs(os.path.join(self.folder, "R", "blobs"))
        os.makedirs(os.path.join(self.folder, "R", "mm"))
        with open(os.path.join(self.folder, "R", "blobs", "1234"), "w") as file:
            json.dump(CONFIG, file)
        # As the hub's cache keeps its files.
        os.symlink("../blobs/1234", os.path.join(self.folder, "R", "mm", "config.json"))
        os.mkdir(self.programs)
        for name in ("accelerate", "trl", "trinity", "ray", "python", "python3"):
            path = os.path.join(self.programs, name)
            with open(path, "w") as file:
                file.write(LAUNCHER)
            os.chmod(path, 0o755)

    def launched(self, target, model, *more):
        """The folder that the launcher ran in, and all that it was given: words and the files they name."""
        subprocess.run([FATHOM, "emit", "--for", target, "--model", model, "--gpu", "2xA100-40G", "--context", "4096",
                        "--into", "out", "--force", *more], cwd=self.folder, check=True, capture_output=True)
        record = os.path.join(self.folder, "launched")
        environment = {**os.environ, "PATH": self.programs + ":" + os.environ["PATH"], "LAUNCHED": record}
        subprocess.run(["bash", os.path.join(self.folder, "out", "launch.sh")], cwd="/", check=True, env=environment,
                       capture_output=True)
        with open(record) as file:
            where, *words = file.read().splitlines()
        os.remove(record)
        files = [os.path.join(where, word) for word in words if word.endswith(".yaml")]
        text = "\n".join(words).replace("--model\n", "--model=") + "\n"
        for path in files:
            with open(path) as file:
                text += file.read()
        return where, text

    def test_model_of_the_caller(self):
        for target in ("accelerate", "deepspeed", "trl", "trinity", "verl"):
            for model in ("R/mm", "./R/mm/", "R/mm/config.json"):
                with self.subTest(target=target, model=model):
                    where, text = self.launched(target, model)
                    named = [word.strip("'\"") for word in NAMED.findall(text)]
                    self.assertTrue(named, text)
                    for word in named:
                        self.assertTrue(os.path.samefile(os.path.join(where, word), os.path.join(self.folder, "R/mm")))

    def test_names_stay_names(self):
        where, text = self.launched("accelerate", "Qwen3-0.6B")
        self.assertIn("--model=Qwen/Qwen3-0.6B", text)
        self.assertEqual(where, os.path.join(self.folder, "out"))

    def test_trials_of_a_linked_configuration(self):
        done = subprocess.run([FATHOM, "probe", "--engine", "trinity", "--model", "R/mm/config.json", "--gpus", "2",
                               "--as", "A100-40G", "--dry-run", "--json"], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("blobs", done.stdout + done.stderr)


unittest.main()
