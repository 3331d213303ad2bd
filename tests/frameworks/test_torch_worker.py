#!/usr/bin/env python3
"""The torch worker on the CPU, with the torch and transformers of this Python: every strategy takes its
steps, and `fathom probe --engine torch` drives it. FATHOM may name another program than the release's.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FATHOM = os.path.abspath(os.environ.get("FATHOM", os.path.join(ROOT, "build", "release", "fathom")))
WORKER = os.path.join(ROOT, "share", "torch_worker.py")
TINY = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 256,
        "max_position_embeddings": 128, "tie_word_embeddings": True}


def lines_of(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"fathom"')]


class Server(unittest.TestCase):
    """One fork server for all, as in a real run."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="fathom-worker-")
        cls.socket = os.path.join(cls.folder, "s")
        cls.server = subprocess.Popen([sys.executable, "-u", WORKER, "--serve", cls.socket],
                                      stdout=subprocess.PIPE, text=True)
        assert '"ready"' in cls.server.stdout.readline()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.server.wait()
        cls.server.stdout.close()
        shutil.rmtree(cls.folder)

    def ask(self, **trial):
        text = json.dumps({"config": TINY, "context": 64, "device": "cpu", **trial})
        return subprocess.run([sys.executable, WORKER, "--ask", self.socket, text], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)

    def test_every_strategy_takes_its_steps(self):
        trials = [
            {},
            {"precision": "autocast", "checkpointing": False, "accum": 2},
            {"loss": "chunked:16", "optimizer": "sgd"},
            {"world": 2, "strategy": "ddp"},
            {"world": 2, "strategy": "fsdp1"},
            {"world": 2, "strategy": "fsdp2", "sp": 2},
            {"world": 2, "strategy": "fsdp2", "loss": "none", "reshard": False},
            {"world": 8, "one_gpu": True, "sp": 4},
            {"recipe": "trinity"},
            {"recipe": "trinity", "world": 2, "sp": 2},
            {"recipe": "trinity", "world": 4, "sp": 2, "one_gpu": True, "context": 256,
             "yarn_factor": 2.0, "entropy_saving": True},
            {"recipe": "trinity", "world": 4, "one_gpu": True, "offload": "all"},
        ]
        for trial in trials:
            with self.subTest(trial):
                done = self.ask(**trial)
                said = lines_of(done.stdout)
                self.assertEqual(done.returncode, 0, done.stdout[-3000:])
                steps = [line["step"] for line in said if line["fathom"] == "step"]
                self.assertEqual(steps, [1, 2] if trial.get("recipe") else [1, 2, 3])
                self.assertEqual(said[-1]["fathom"], "done")

    def test_what_a_trial_does_not_have(self):
        done = self.ask(colour="blue")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("a trial has no colour", done.stdout)

    def test_a_client_that_ends_takes_its_trial_with_it(self):
        text = json.dumps({"config": TINY, "context": 64, "device": "cpu", "steps": 100000})
        client = subprocess.Popen([sys.executable, WORKER, "--ask", self.socket, text],
                                  stdout=subprocess.PIPE, text=True)
        self.assertIn("start", client.stdout.readline())
        client.send_signal(signal.SIGTERM)
        client.wait(30)
        client.stdout.close()
        time.sleep(0.2)
        children = subprocess.run(["ps", "--ppid", str(self.server.pid), "-o", "stat="],
                                  stdout=subprocess.PIPE, text=True).stdout.split()
        self.assertEqual([state for state in children if not state.startswith("Z")], [])


class Probe(unittest.TestCase):
    def test_fathom_drives_it(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "tiny"))
            with open(os.path.join(folder, "tiny", "config.json"), "w") as file:
                json.dump({**TINY, "transformers_version": "5.17.0"}, file)
            done = subprocess.run(
                [FATHOM, "probe", "--engine", "torch", "--model", "./tiny",
                 "--device", "cpu", "--gpus", "1,2", "--grid", "64", "--start", "64", "--until", "192",
                 "--python", sys.executable, "--json"], cwd=folder, text=True, timeout=600,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
            cells = json.loads(done.stdout)["cells"]
            self.assertEqual([(c["gpus"], c["max_context"]) for c in cells], [(1, 192), (2, 192)])

    def test_real_numbers_reach_the_configuration_class(self):
        """Granite 4's class refuses a limit of 0 where 0.0 was written, and an infinity that is an object."""
        granite = {**TINY, "model_type": "granitemoehybrid", "num_local_experts": 0, "num_experts_per_tok": 0,
                   "shared_intermediate_size": 128, "layer_types": ["attention"] * 2,
                   "time_step_limit": [0.0, {"__float__": "Infinity"}]}
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "granite"))
            with open(os.path.join(folder, "granite", "config.json"), "w") as file:
                json.dump(granite, file)
            done = subprocess.run(
                [FATHOM, "probe", "--engine", "torch", "--model", "./granite", "--device", "cpu", "--gpus", "1",
                 "--grid", "64", "--start", "64", "--until", "64", "--python", sys.executable, "--json"],
                cwd=folder, text=True, timeout=600, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["cells"][0]["max_context"], 64)

    def test_no_gpu_is_said_in_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [FATHOM, "probe", "--engine", "torch", "--model", "Qwen3-0.6B", "--as", "A100-80G", "--one-gpu",
                 "--python", sys.executable], cwd=folder, text=True, timeout=600, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
            self.assertEqual(done.returncode, 3)
            self.assertIn("torch sees no GPU here; --device cpu trains without one", done.stderr)


if __name__ == "__main__":
    unittest.main()
