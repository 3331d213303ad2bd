"""TRL's own parser and configuration classes, of two versions, and its command line."""
import importlib
import os
import subprocess
import sys
import unittest

from common import ASIDE, changed, files, read, written

# One process stands for all: GRPO checks its completions against their number.
WORLD = ["--use_cpu", "true", "--per_device_train_batch_size", "8"]


def task_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def parse(path, task):
    parser = importlib.import_module(f"trl.scripts.{task}").make_parser()
    return parser.parse_args_and_config(["--config", path, *WORLD], fail_with_unknown_args=True)


def arguments():
    return [(name, path) for name, path in files("trl-*/*.yaml") if task_of(path) != "accelerate"]


class Trl(unittest.TestCase):
    def test_every_file_is_accepted(self):
        for name, path in arguments():
            with self.subTest(name):
                document = read(path)
                _, training, model, _ = parse(path, task_of(path))
                self.assertEqual(training.gradient_accumulation_steps, document["gradient_accumulation_steps"])
                self.assertEqual(training.gradient_checkpointing, document["gradient_checkpointing"])
                self.assertEqual(model.dtype, document["dtype"])
                if "max_length" in document:
                    self.assertEqual(training.max_length, document["max_length"])

    def test_a_later_version_accepts_them_too(self):
        newer = os.path.join(ASIDE, "trl==1.16.0")
        paths = [path for _, path in arguments()]
        done = subprocess.run([sys.executable, __file__, *paths], env={**os.environ, "PYTHONPATH": newer},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-500:])
        self.assertEqual(done.stdout.strip(), "1.16.0")

    def test_checkpointing_is_asked_for_once(self):
        for name, path in arguments():
            beside = read(os.path.join(os.path.dirname(path), "accelerate.yaml"))
            with self.subTest(name):
                self.assertFalse(beside.get("fsdp_config", {}).get("fsdp_activation_checkpointing", False)
                                 and read(path)["gradient_checkpointing"])

    def test_a_broken_key_is_refused(self):
        for name, path, value in [
            ("trl-sft/sft.yaml", "max_seq_length", 8192),
            ("trl-sft/sft.yaml", "optim", "adamw"),
            ("trl-sft/sft.yaml", "accelerator_config.gradient_accumulation", {}),
            ("trl-sft/sft.yaml", "datasets", [{"file": "x"}]),
            ("trl-dpo/dpo.yaml", "max_prompt_length", 1),
            ("trl-reward/reward.yaml", "packing", True),
            ("trl-grpo/grpo.yaml", "num_generations", 3),
            ("trl-grpo/grpo.yaml", "max_length", 1),
        ]:
            with self.subTest(name=name, path=path):
                document = changed(read(files(name)[0][1]), path, value)
                with written(document) as broken, self.assertRaises((ValueError, TypeError, SystemExit)):
                    parse(broken, task_of(name))


if __name__ == "__main__":
    import trl

    for path in sys.argv[1:]:
        parse(path, task_of(path))
    print(trl.__version__)
