"""Unmodified scripts as rank 0 of many, alone (share/one_gpu): torch's FSDP 2, transformers' Trainer, and through
`fathom probe --one-gpu` the command engine, Accelerate and DeepSpeed. On the CPU, where memory has no limit to find:
out of memory is what the script invents."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from common import FATHOM, HERE, ROOT, TINY

PLAYED = os.path.join(HERE, "played")
SHIM = os.path.join(ROOT, "share", "one_gpu")
LAYERS = 4 * (64 * 64 + 64)  # of fsdp2.py
ENVIRONMENT = {"ACCELERATE_USE_CPU": "true", "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
               "PYTHONDONTWRITEBYTECODE": "1",  # share/ is what the program carries
               "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}


class OneGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_in(self, command, **environment):
        return subprocess.run(command, cwd=self.folder, env={**os.environ, **ENVIRONMENT, **environment},
                              capture_output=True, text=True, timeout=600)

    def play(self, ranks, *command):
        done = self.run_in(command, PYTHONPATH=SHIM, FATHOM_PLAY_RANKS=str(ranks))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"fathom"')]
        self.assertEqual([(line["fathom"], line.get("ranks")) for line in said], [("start", ranks), ("peaks", None)])
        self.assertTrue(said[0]["torch"].startswith("2."))
        return done.stdout

    def probe(self, *arguments, **environment):
        done = self.run_in([os.environ.get("FATHOM", FATHOM), "probe", "--one-gpu", "--as", "H100-80G", "--json",
                            *arguments], **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["cells"]

    def test_fsdp2_alone(self):
        said = self.play(8, sys.executable, os.path.join(PLAYED, "fsdp2.py"), "64", "64")
        self.assertIn(f"rank 0 of 8, 8 a machine, holds {LAYERS // 8}, loss is finite: True", said)

    def test_a_launcher_that_starts_fewer(self):
        """Two processes are started, the second ends at once, and the first is one of 64."""
        said = self.play(64, "torchrun", "--nproc_per_node", "2", os.path.join(PLAYED, "fsdp2.py"), "64", "64")
        self.assertEqual(said.count("rank "), 1)
        self.assertIn(f"rank 0 of 64, 2 a machine, holds {LAYERS // 64}, loss is finite: True", said)

    def test_what_the_others_send(self):
        self.assertIn("all as it should be", self.play(8, sys.executable, os.path.join(PLAYED, "collectives.py")))

    def test_processes_of_the_scripts_own(self):
        """torch.multiprocessing.spawn tells each its rank; all but the first end."""
        with open(os.path.join(self.folder, "spawn.py"), "w") as file:
            file.write("import torch\n\n\ndef main(rank):\n"
                       "    torch.distributed.init_process_group('gloo', rank=rank, world_size=2)\n"
                       "    print('rank', rank, 'of', torch.distributed.get_world_size(), flush=True)\n\n\n"
                       "if __name__ == '__main__':\n    torch.multiprocessing.spawn(main, nprocs=2)\n")
        done = self.run_in([sys.executable, "spawn.py"], PYTHONPATH=SHIM, FATHOM_PLAY_RANKS="2")
        self.assertEqual((done.returncode, done.stdout.count("rank ")), (0, 1), done.stdout + done.stderr)
        self.assertIn("rank 0 of 2\n", done.stdout)

    def test_trainer(self):
        said = self.play(8, sys.executable, os.path.join(PLAYED, "trainer.py"))
        self.assertIn("process 0 of 8, wrapped as DistributedDataParallel, loss 4.", said)
        self.assertIn("evaluated rows: 16", said)

    def test_a_command_is_probed(self):
        script = f"{sys.executable} {os.path.join(PLAYED, 'fsdp2.py')} {{context}} 100"
        cells = self.probe("--engine", "command", "--gpus", "4,8", "--grid", "256", "--start", "256", "--until", "1k",
                           "--command", script)
        self.assertEqual([(cell["gpus"], cell["max_context"]) for cell in cells], [(4, 256), (8, 768)])

    def make_model(self, positions):
        os.mkdir(os.path.join(self.folder, "tiny"))
        with open(os.path.join(self.folder, "tiny", "config.json"), "w") as file:
            json.dump({**TINY, "max_position_embeddings": positions}, file)

    def probe_model(self, engine, context, *options):
        """The longest context, which is the only one, and the log of its trial."""
        length = str(context)
        cells = self.probe("--engine", engine, "--model", "./tiny", "--gpus", "8", "--start", length, "--until", length,
                           "--grid", "64", "--log-dir", engine, *options, PYTHONPATH=os.path.join(HERE, "cpu"))
        with open(os.path.join(self.folder, engine, f"tiny/gpu-8/sp-1/model_len-{context}.log")) as file:
            return cells[0]["max_context"], file.read()

    def test_frameworks_are_probed(self):
        self.make_model(4096)
        for engine, sharded in (("accelerate", "sharded by FSDP 2"), ("deepspeed", "sharded by DeepSpeed 3"),
                                ("transformers", '"ranks": 8')):
            with self.subTest(engine):
                longest, log = self.probe_model(engine, 64)
                self.assertEqual(longest, 64)
                self.assertEqual((log.count(sharded), log.count('"ranks": 8'), log.count('"fathom": "step"')), (1, 1, 3))
                self.assertNotIn("nan", log)

    def test_trl_is_probed(self):
        """TRL's own command line and script, beyond the positions of the model; nothing is left of its weights."""
        self.make_model(96)
        longest, log = self.probe_model("trl", 128)
        self.assertEqual(longest, 128)
        # The process of `trl` itself is no rank.
        self.assertEqual((log.count("sharded by FSDP 2"), log.count('"ranks": 8'), log.count("'num_tokens'")), (1, 1, 3))
        self.assertIn("'num_tokens': '384'", log)  # of the three rows that there are
        self.assertNotIn("nan", log)
        with open(os.path.join(self.folder, "trl/tiny/gpu-8/sp-1/model_len-128/model-yarn/config.json")) as file:
            self.assertGreaterEqual(json.load(file)["max_position_embeddings"], 128)
        self.assertEqual(os.listdir(os.path.join(self.folder, "trl/checkpoints")), [])


if __name__ == "__main__":
    unittest.main()
