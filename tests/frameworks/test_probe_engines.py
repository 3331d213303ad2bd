"""`fathom probe` drives real frameworks: Accelerate with FSDP 2 in two processes on the CPU, from emitted files.

Accelerate has to be talked into FSDP on a CPU (cpu/sitecustomize.py).
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FATHOM = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "release", "fathom")
TINY = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 256,
        "max_position_embeddings": 4096, "tie_word_embeddings": True}


class Engines(unittest.TestCase):
    def test_accelerate(self):
        environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"],
                       "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
                       "PYTHONPATH": os.path.join(HERE, "cpu")}
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "tiny"))
            with open(os.path.join(folder, "tiny", "config.json"), "w") as file:
                json.dump(TINY, file)
            done = subprocess.run(
                [os.environ.get("FATHOM", FATHOM), "probe", "--engine", "accelerate", "--model", "./tiny",
                 "--gpus", "1,2", "--as", "H100-80G", "--grid", "64", "--start", "64", "--until", "128", "--json"],
                cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            cells = json.loads(done.stdout)["cells"]
            self.assertEqual([(c["gpus"], c["max_context"]) for c in cells], [(1, 128), (2, 128)])


if __name__ == "__main__":
    unittest.main()
