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

# What the library's default does not run with, or we have not modelled.
NO_DEFAULT = {"deepseek_v2": {"num_experts_per_tok": 6}, "glm4_moe": {"head_dim": 128},
              "granitemoehybrid": {"num_local_experts": 0, "num_hidden_layers": 4, "layer_types": ["attention"] * 4,
                                   "time_step_limit": (0.5, 1.5)}}  # 0.0 would come back as 0, which its class refuses


class Engines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "tiny"))
        with open(os.path.join(self.folder, "tiny", "config.json"), "w") as file:
            json.dump({**TINY, "max_position_embeddings": POSITIONS}, file)

    def fathom(self, *arguments, bare=False):
        """With `bare`, an `accelerate` that does nothing: the files are made all the same."""
        programs = self.folder if bare else os.path.dirname(sys.executable)
        environment = {**os.environ, "PATH": programs + ":" + os.environ["PATH"], **ENVIRONMENT}
        if bare:
            with open(os.path.join(self.folder, "accelerate"), "w") as out:
                out.write("#!/bin/sh\n")
            os.chmod(out.name, 0o755)
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
        made = self.fathom("--export", "json")["attempts"]
        # gloo may abort a rank whose peer has gone before it, which is tried again.
        trials = [trial for trial in made if "SIGABRT" not in trial["detail"]]
        self.assertEqual([trial["outcome"] for trial in trials], ["fits"] * count,
                         [(trial["outcome"], trial["status"], trial["detail"]) for trial in made])
        self.assertEqual([[step["step"] for step in trial["steps"]] for trial in trials], [[1, 2, 3]] * count)
        self.assertIn("torch 2", trials[0]["versions"])

    def test_configurations_come_back(self):
        """What a trial's model is made from is the file that was given, for every family."""
        from transformers import CONFIG_MAPPING, AutoConfig

        catalogue = subprocess.run([os.environ.get("FATHOM", FATHOM), "models", "--json"], capture_output=True,
                                   text=True, check=True).stdout
        families = {row["model"]["family"] for row in json.loads(catalogue)["models"]}
        families = [family for family in families if family in CONFIG_MAPPING]  # the others come with code of their own
        self.assertGreater(len(families), 40)
        # Of vision models the former have no default that fits, and train.py trains on texts.
        seeing = ("gemma3", "qwen3_5", "qwen3_5_moe")
        for family in sorted(name for name in families if "_vl" not in name and name not in seeing):
            config = AutoConfig.for_model(family, num_labels=3, **NO_DEFAULT.get(family, {}))
            config.save_pretrained(os.path.join(self.folder, family))
            with self.subTest(family):
                self.fathom("--model", f"./{family}", "--as", "H200", "--until", "1k", "--engine", "accelerate", "--json",
                            "--start", "1k", bare=True)
                given, kept = (AutoConfig.from_pretrained(os.path.join(self.folder, path)).to_dict() for path in
                               (family, f"logs/{family}/gpu-1/sp-1/model_len-1024/model"))
                self.assertEqual({**kept, "_name_or_path": ""}, {**given, "_name_or_path": ""})

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
