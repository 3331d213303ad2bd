"""LLaMA-Factory's own parser and axolotl's own validation, each with the libraries that it pins.

A trainer's checks run in a process of its own, whose path begins with its folder. axolotl's models ignore what they
do not know, so that its keys are also looked up among their fields. Nothing is trained: of both only the loader runs.
"""
import contextlib
import importlib
import importlib.machinery
import json
import os
import subprocess
import sys
import types
import unittest

from common import ASIDE, changed, files, read, written

MACHINE = {"bf16": True, "fp8": False, "tf32": True, "n_gpu": 8, "n_node": 1, "compute_capability": "sm_90"}


def load_llamafactory(path):
    deaf = types.ModuleType("torchaudio")  # imported for models that hear
    deaf.__spec__ = importlib.machinery.ModuleSpec("torchaudio", None)
    sys.modules.setdefault("torchaudio", deaf)
    from llamafactory.data.parser import get_dataset_list
    from llamafactory.hparams.parser import _parse_train_args

    model, data, training, tuning, _ = _parse_train_args({**read(path), "use_cpu": True})
    packed = 1 if data.packing else 0  # rows of one token more
    return {"context": data.cutoff_len + packed, "batch": training.per_device_train_batch_size,
            "accum": training.gradient_accumulation_steps, "stage": tuning.stage,
            "datasets": len(get_dataset_list(data.dataset, data.dataset_dir)),
            "recomputes": not model.disable_gradient_checkpointing, "unknown": []}


def load_axolotl(path):
    from axolotl.utils.config import validate_config
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.schemas.config import AxolotlInputConfig
    from axolotl.utils.schemas.fsdp import FSDPConfig

    document = read(path)
    known = fields_of(AxolotlInputConfig)
    for plugin in document.get("plugins", []):  # which bring keys of their own
        from axolotl.integrations.base import PluginManager

        PluginManager.get_instance().register(plugin)
        module, _, name = PluginManager.get_instance().plugins[plugin].get_input_args().rpartition(".")
        known |= fields_of(getattr(importlib.import_module(module), name))
    unknown = [key for key in document if key not in known]
    unknown += [key for key in document.get("fsdp_config", {}) if key not in FSDPConfig.model_fields]
    config = validate_config(DictDefault(document), capabilities=MACHINE, env_capabilities={"torch_version": "2.11.0"})
    return {"context": config.sequence_len, "batch": config.micro_batch_size,
            "accum": config.gradient_accumulation_steps, "stage": config.rl and str(config.rl.value),
            "datasets": len(config.datasets), "recomputes": bool(config.gradient_checkpointing),
            "kernels": bool(config.lora_mlp_kernel), "unknown": unknown}


def fields_of(schema):
    aliases = {field.alias for field in schema.model_fields.values()}
    return {*schema.model_fields, *aliases}


LOADERS = {"llamafactory": load_llamafactory, "axolotl": load_axolotl}


def load_all(name, paths):
    for path in paths:
        os.chdir(os.path.dirname(path))
        try:
            found = LOADERS[name](path)
        except Exception as complaint:
            found = f"{type(complaint).__name__}: {complaint}"
        print("found", json.dumps(found))


def loaded(name, paths):
    """What the trainer `name` makes of each file: values, or its complaint."""
    environment = {**os.environ, "PYTHONPATH": os.path.join(ASIDE, name), "CUDA_VISIBLE_DEVICES": "",
                   "AXOLOTL_DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", os.path.abspath(__file__), name, *paths],
                          env=environment, capture_output=True, text=True)
    lines = [line.partition(" ")[2] for line in done.stdout.splitlines() if line.startswith("found ")]
    assert done.returncode == 0 and len(lines) == len(paths), done.stderr[-800:]
    return [json.loads(line) for line in lines]


class YamlTrainers(unittest.TestCase):
    def check(self, name, keys):
        cases = files(f"{name}-*/{name}.yaml")
        for (case, path), found in zip(cases, loaded(name, [path for _, path in cases])):
            with self.subTest(case):
                document = read(path)
                self.assertIsInstance(found, dict, found)
                self.assertEqual(found["unknown"], [])
                self.assertEqual(found["datasets"], 1)
                for what, key in keys.items():
                    self.assertEqual(found[what], document[key], what)

    def test_llamafactory_accepts_every_file(self):
        self.check("llamafactory", {"context": "cutoff_len", "batch": "per_device_train_batch_size",
                                    "accum": "gradient_accumulation_steps", "stage": "stage"})

    def test_axolotl_accepts_every_file(self):
        self.check("axolotl", {"context": "sequence_len", "batch": "micro_batch_size",
                               "accum": "gradient_accumulation_steps", "recomputes": "gradient_checkpointing"})

    def test_adapters_have_no_kernels_that_are_not_predicted(self):
        found, = loaded("axolotl", [files("axolotl-lora/axolotl.yaml")[0][1]])
        self.assertIs(found["kernels"], False)

    def check_broken(self, name, breaks):
        with contextlib.ExitStack() as stack:
            paths = [stack.enter_context(written(changed(read(files(f"{case}/{name}.yaml")[0][1]), key, value)))
                     for case, key, value, _ in breaks]
            for (case, key, _, says), found in zip(breaks, loaded(name, paths)):
                with self.subTest(case=case, key=key):
                    self.assertIsInstance(found, str)
                    self.assertIn(says, found)

    def test_llamafactory_refuses_a_broken_key(self):
        self.check_broken("llamafactory", [
            ("llamafactory-lora", "max_seq_length", 8192, "max_seq_length"),
            ("llamafactory-full", "use_dora", True, "use_dora"),
        ])

    def test_axolotl_refuses_a_broken_key(self):
        self.check_broken("axolotl", [
            ("axolotl-kto", "remove_unused_columns", None, "remove_unused_columns"),
            ("axolotl-qlora", "load_in_4bit", False, "load_in_4bit"),
            ("axolotl-fsdp2", "fsdp_config.state_dict_type", "WHOLE", "state_dict_type"),
            ("axolotl-full", "attn_implementation", "flash", "attn_implementation"),
        ])


if __name__ == "__main__":
    load_all(sys.argv[1], sys.argv[2:])
