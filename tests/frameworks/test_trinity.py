"""Trinity-RFT's own schema: its dataclasses through OmegaConf, of both layouts.

Only the configuration module is loaded; Ray, which it imports for its logger, is a stand-in. Of the
validators, those of lengths and GPUs run; the others need the models and a cluster.
"""
import os
import subprocess
import sys
import unittest

from common import ASIDE, changed, files, read, written

NEW, LEGACY = "trinity-rft==0.6.0", "trinity-rft==0.4.0"


def load(path, version):
    """Loads the file in a process of its own; returns what it said, empty for nothing."""
    done = subprocess.run([sys.executable, __file__, os.path.join(ASIDE, version), path],
                          capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-3:] if done.returncode else []


def version_of(path):
    return LEGACY if "warmup_style" in read(path)["algorithm"]["optimizer"] else NEW


class Trinity(unittest.TestCase):
    def test_every_file_is_accepted(self):
        versions = set()
        for name, path in files("*/trinity.yaml"):
            with self.subTest(name):
                self.assertEqual(load(path, version_of(path)), [])
                versions.add(version_of(path))
        self.assertEqual(versions, {NEW, LEGACY})

    def test_a_broken_key_is_refused(self):
        for name, path, value in [
            ("trinity-grpo", "trainer.offload", True),
            ("trinity-grpo", "trainer.max_token_len_per_gpu", "many"),
            ("trinity-grpo", "model.max_response_tokens", 65536),
            ("trinity-grpo", "explorer.rollout_model.engine_num", 5),
            ("trinity-grpo", "cluster.gpus", 8),
            ("trinity-grpo", "algorithm.optimizer.warmup", "constant"),
            ("trinity-grpo", "synchronizer.sync_method", "ncl"),
            ("trinity-grpo-legacy", "trainer.param_offload", True),
            ("trinity-grpo-legacy", "trainer.trainer_config.actor_rollout_ref.actor.fsdp_config.offload", True),
            ("trinity-capacity", "buffer.explorer_input.taskset.workflow", "x"),
        ]:
            with self.subTest(name=name, path=path):
                source = files(f"{name}/trinity.yaml")[0][1]
                with written(changed(read(source), path, value)) as broken:
                    self.assertNotEqual(load(broken, version_of(source)), [])


def load_here(folder, path):
    import types
    from unittest.mock import MagicMock

    stand_in = types.ModuleType("ray")
    stand_in.__getattr__ = lambda name: MagicMock()
    sys.modules["ray"] = stand_in
    sys.path.insert(0, folder)
    from trinity.common.config import load_config

    config = load_config(path)
    if LEGACY in folder:
        from omegaconf import OmegaConf

        sys.modules["verl"] = stand_in
        from trinity.common.verl_config import veRLConfig

        OmegaConf.merge(OmegaConf.structured(veRLConfig), config.trainer.trainer_config or {})
        return
    for name in ("trinity.common.patch", "trinity.utils.lora_utils"):
        sys.modules[name] = MagicMock()
    from trinity.common import config_validator as validators

    validators.ModelConfigValidator()._check_model_len(config)
    validators.RayClusterConfigValidator()._set_gpu_allocation_info(config)
    replicas = config.cluster.trainer_gpu_num // config.trainer.ulysses_sequence_parallel_size
    assert config.buffer.train_batch_size % replicas == 0


if __name__ == "__main__":
    load_here(*sys.argv[1:])
