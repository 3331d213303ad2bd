"""Every field of TRL's, transformers' and DeepSpeed's configuration classes has an answer in --from: it is read, changes
nothing, or is refused by a sentence that says why; none is merely not known."""
import ast
import glob
import importlib.util
import json
import os
import subprocess
import tempfile
import unittest

import yaml

from common import ASIDE, FATHOM, TINY

TRL = os.path.join(ASIDE, "trl==1.16.0", "trl")
TRAINER = {"model_name_or_path": "./tiny", "per_device_train_batch_size": 1, "max_length": 256}
STAGE = {"zero_optimization": {"stage": 3}, "bf16": {"enabled": True}}


def place_of(module):
    return os.path.dirname(importlib.util.find_spec(module).origin)


def fields(path, name=None):
    """Names and annotations, read and not imported: two versions of TRL are installed beside each other."""
    with open(path) as source:
        tree = ast.parse(source.read())
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == (name or node.name):
            for line in node.body:
                if isinstance(line, ast.AnnAssign):
                    yield line.target.id, ast.unparse(line.annotation)


def values(annotation):
    if "bool" in annotation:
        return [True, False]
    if "dict" in annotation or "Config" in annotation:
        return [{"surprise": 1}]
    return [["surprise"]] if "list" in annotation else [1]


def reading(document, name):
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "tiny"))
        with open(os.path.join(folder, "tiny", "config.json"), "w") as out:
            json.dump(TINY, out)
        with open(os.path.join(folder, name), "w") as out:
            (json.dump if name.endswith(".json") else yaml.safe_dump)(document, out)
        return subprocess.run([FATHOM, "predict", "--from", name, "--model", "./tiny", "--context", "256", "--gpu",
                               "2xH100-80G"], cwd=folder, capture_output=True, text=True).stderr


class Fields(unittest.TestCase):
    def check(self, found, name, document):
        found = list(found)
        self.assertTrue(found, name)
        for key, annotation in found:
            for value in values(annotation):
                with self.subTest(key=key, value=value):
                    self.assertNotIn("is not read, and may change memory", reading(document(key, value), name))

    def test_trl(self):
        for path in sorted(glob.glob(os.path.join(TRL, "trainer", "*_config.py"))):
            task = os.path.basename(path)[:-len("_config.py")]
            if task in ("base", "sft", "dpo", "kto", "reward", "grpo", "rloo", "distillation", "model"):
                self.check(fields(path), f"{'sft' if task in ('base', 'model') else task}.yaml",
                           lambda key, value: {**TRAINER, key: value})

    def test_trl_scripts(self):
        for task in ("grpo", "rloo"):
            self.check(fields(os.path.join(TRL, "scripts", f"{task}.py")), f"{task}.yaml",
                       lambda key, value: {**TRAINER, key: value})

    def test_training_arguments(self):
        path = os.path.join(place_of("transformers"), "training_args.py")
        self.check(fields(path, "TrainingArguments"), "sft.yaml", lambda key, value: {**TRAINER, key: value})

    def test_deepspeed(self):
        path = os.path.join(place_of("deepspeed"), "runtime", "zero", "config.py")
        self.check(fields(path, "DeepSpeedZeroConfig"), "ds.json",
                   lambda key, value: {**STAGE, "zero_optimization": {"stage": 3, key: value}})

    def test_a_field_of_nobody_is_not_known(self):
        self.assertIn("is not read, and may change memory", reading({**TRAINER, "surprise": 1}, "sft.yaml"))
        self.assertIn("is not read, and may change memory", reading({**STAGE, "surprise": 1}, "ds.json"))


if __name__ == "__main__":
    unittest.main()
