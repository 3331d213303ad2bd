"""`fathom probe` drives real frameworks: Accelerate with FSDP 2 and DeepSpeed in two processes on the CPU, from
emitted files, and beyond the model's positions.

Accelerate has to be talked into either on a CPU (cpu/sitecustomize.py).
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from common import FATHOM, HERE, TINY

POSITIONS = 96
ENVIRONMENT = {"ACCELERATE_USE_CPU": "true", "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
               "PYTHONPATH": os.path.join(HERE, "cpu")}


class Engines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "tiny"))
        with open(os.path.join(self.folder, "tiny", "config.json"), "w") as file:
            json.dump({**TINY, "max_position_embeddings": POSITIONS}, file)

    def fathom(self, *arguments):
        environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"], **ENVIRONMENT}
        done = subprocess.run([os.environ.get("FATHOM", FATHOM), "probe", *arguments], cwd=self.folder,
                              env=environment, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def probe(self, *arguments):
        """[(GPUs, longest context)...]"""
        cells = self.fathom("--model", "./tiny", "--as", "H100-80G", "--grid", "64", "--start", "64", "--until", "128",
                            "--json", *arguments)["cells"]
        return [(cell["gpus"], cell["max_context"]) for cell in cells]

    def trial(self, gpus, context):
        """The folder of a trial's files, and its log."""
        path = os.path.join(self.folder, "logs", "tiny", f"gpu-{gpus}", "sp-1", f"model_len-{context}")
        with open(path + ".log") as log:
            return path, log.read()

    def check_positions(self, path):
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(os.path.join(path, "model-yarn"))
        self.assertEqual(config.rope_parameters["rope_type"], "yarn")
        self.assertGreaterEqual(config.max_position_embeddings, 128)

    def check_kept(self, count):
        trials = self.fathom("--export", "json")["attempts"]
        self.assertEqual([(trial["outcome"], trial["steps"]) for trial in trials], [("fits", 3)] * count)
        self.assertIn("torch 2", trials[0]["versions"])

    def test_accelerate(self):
        self.assertEqual(self.probe("--engine", "accelerate", "--gpus", "1,2"), [(1, 128), (2, 128)])
        path, log = self.trial(2, 128)
        self.assertEqual(log.count("sharded by FSDP 2"), 2)
        self.check_positions(path)
        self.check_kept(2)

    def test_deepspeed(self):
        self.assertEqual(self.probe("--engine", "deepspeed", "--gpus", "2", "--linear"), [(2, 128)])
        for context in 64, 128:
            path, log = self.trial(2, context)
            self.assertEqual(log.count("sharded by DeepSpeed 3"), 2)
            norms = [float(norm) for norm in re.findall(r"'grad_norm': '?([\d.e-]+)", log)]
            self.assertEqual([norm > 0 for norm in norms], [True] * 3, log)
            self.assertEqual(os.path.exists(os.path.join(path, "model-yarn")), context > POSITIONS)
        self.check_positions(path)
        self.check_kept(2)


if __name__ == "__main__":
    unittest.main()
