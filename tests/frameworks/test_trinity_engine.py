"""`fathom probe --engine trinity` meets Trinity-RFT, verl and Ray as they are on PyPI.

The environment that the engine sets is completed by Trinity's own validators and handed to verl's builder; the
plug-in's sequences go the way Trinity sends them. Then the trainer trains on the CPU (trinity_cpu), under real
Ray: a length that fits, and one that runs out of memory, which `trinity run` itself would end with status 0.
"""
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from common import ASIDE, FATHOM, HERE, ROOT, TINY

SHARE = os.path.join(ROOT, "share")
INSTALLED = os.path.join(ASIDE, "trinity")
VOCABULARY = 2048


def make_model(folder):
    """A model of a few thousand parameters with weights and a tokenizer, as Trinity wants it."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    Qwen3ForCausalLM(Qwen3Config(**{**TINY, "vocab_size": VOCABULARY})).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({"a": 0, "<pad>": 1, "<eos>": 2}, unk_token="a"))
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>").save_pretrained(folder)


def environment_of(folder, options):
    """What the engine sets for its first trial, from the program itself."""
    done = subprocess.run([FATHOM, "probe", "--engine", "trinity", "--model", "./tiny", "--as", "H100-80G", "--dry-run",
                           *shlex.split(options)], cwd=folder, capture_output=True, text=True, check=True)
    words = next(shlex.split(line) for line in done.stdout.splitlines() if line.startswith("GPU_NUM="))
    return dict(word.split("=", 1) for word in words[:words.index("python3")])


class Configuration(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        make_model(os.path.join(cls.place.name, "tiny"))

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def completed(self, options):
        environment = {**os.environ, **environment_of(self.place.name, options), "PYTHONPATH": INSTALLED,
                       "FATHOM_TASKS": os.path.join(SHARE, "trinity_tasks"), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run([sys.executable, "-W", "ignore", __file__, "complete"], cwd=self.place.name,
                              env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def test_the_published_test(self):
        made = self.completed("--gpus 4 --sp 2 --start 8192 --until 8192")
        self.assertEqual(made["gpus"], [5, 4, 1])
        self.assertEqual(made["tokens"], [8192, 8192, 8192])  # of a sequence; of a GPU, actor and reference
        self.assertEqual(made["sequences"], [16, 16])
        self.assertEqual(made["strategy"], ["fsdp", "fsdp"])
        self.assertEqual(made["offload"], [False] * 6)
        self.assertEqual(made["entropy_saving"], [False] * 2)
        self.assertEqual(made["sync"], "nccl")
        self.assertEqual(made["experiences"], [[8192, 2048, 6144]] * 16)
        self.assertEqual(made["batch"], [16, 8192])

    def test_everything_switched_on(self):
        made = self.completed("--gpus 1 --train-only --offload all --strategy fsdp2 --entropy-saving on "
                              "--fused-kernels on --save-hf never --start 4096 --until 4096")
        self.assertEqual(made["gpus"], [1, 1, 0])
        self.assertEqual(made["strategy"], ["fsdp2", "fsdp2"])
        self.assertEqual(made["offload"], [True] * 6)
        self.assertEqual(made["entropy_saving"], [True] * 2)
        self.assertIs(made["fused_kernels"], True)
        self.assertEqual(made["sync"], "checkpoint")
        self.assertEqual(made["experiences"], [[4096, 2048, 2048]] * 8)
        self.assertEqual(made["batch"], [8, 4096])

    def test_beyond_the_models_positions(self):
        made = self.completed("--gpus 1 --start 6144 --until 6144 --grid 2k")
        rope = {"rope_type": "yarn", "factor": 1.5, "original_max_position_embeddings": 4096}
        self.assertEqual({key: made["rope"][key] for key in rope}, rope)
        self.assertEqual(made["positions"], 6144)
        self.assertTrue(made["weights"])


class Run(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        make_model(os.path.join(self.folder, "tiny"))
        self.ray = os.path.join(self.folder, "ray")
        with open(self.ray, "w") as out:
            out.write(f"#!/bin/sh\nexec {sys.executable} -m ray.scripts.scripts \"$@\"\n")
        os.chmod(self.ray, 0o755)
        self.environment = {
            **os.environ, "PATH": f"{self.folder}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "PYTHONPATH": f"{HERE}/trinity_cpu:{INSTALLED}", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1", "FATHOM_TEST_LIMIT": "2304", "RAY_TMPDIR": os.path.join(self.folder, "r")}
        self.environment.pop("RAY_ADDRESS", None)
        os.makedirs(os.path.join(self.folder, "r", "ray"))

    def start_ray(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        # Where there is no CUDA verl asks for the other accelerator it knows.
        ray = subprocess.Popen(
            [self.ray, "start", "--head", "--block", f"--port={port}", "--node-ip-address=127.0.0.1", "--num-gpus=1",
             "--num-cpus=8", "--resources={\"NPU\": 1}", "--include-dashboard=false", "--disable-usage-stats"],
            env=self.environment, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(ray.wait)
        self.addCleanup(ray.terminate)
        self.environment["RAY_ADDRESS"] = f"127.0.0.1:{port}"
        end = time.monotonic() + 120
        while subprocess.run([self.ray, "status"], env=self.environment, capture_output=True).returncode:
            if ray.poll() is not None or time.monotonic() > end:
                self.fail("Ray did not start")

    def probe(self, options):
        return subprocess.run(
            [FATHOM, "probe", "--engine", "trinity", "--train-only", "--model", "./tiny", "--gpus", "1", "--as",
             "H100-80G", "--strategy", "fsdp2", "--grid", "256", "--tries", "1", "--timeout", "300", "--json",
             *shlex.split(options)], cwd=self.folder, env=self.environment, capture_output=True, text=True)

    def test_a_length_that_fits_and_one_that_does_not(self):
        self.start_ray()
        done = self.probe("--start 2304 --until 2560")
        self.assertEqual(done.returncode, 0, done.stderr)
        cell = json.loads(done.stdout)["cells"][0]
        self.assertEqual((cell["max_context"], cell["fails_at"], cell["launches"]), (2304, 2560, 2), done.stderr)
        self.assertIn("2560 tokens: out of GPU memory", done.stderr)
        self.assertIn("2304 tokens: fits, reserved 2.00 GiB", done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.folder, "logs", "checkpoints")), [])
        self.assertFalse(os.path.exists(os.path.join(INSTALLED, "trinity", "plugins", "synthetic_data.py")))

    def test_a_cluster_of_its_own(self):
        with open(os.path.join(self.folder, "r", "ray", "ray_current_cluster"), "w") as gone:
            gone.write("127.0.0.1:1")
        done = self.probe("--start 2304 --until 2304")
        self.assertEqual(done.returncode, 3, done.stderr)
        with open(os.path.join(self.folder, "logs", "tiny", "gpu-1", "sp-1", "model_len-2304.log")) as log:
            self.assertIn("Total available GPUs 0 is less than total desired GPUs 1", log.read())


def sequences_of(config):
    """The plug-in's, by the explorer's way or, in a trainer that runs alone, by its own."""
    import asyncio

    from trinity.algorithm import ADVANTAGE_FN, SAMPLE_STRATEGY
    from trinity.buffer.reader.file_reader import TaskFileReader

    if config.mode == "train":
        strategy = SAMPLE_STRATEGY.get(config.algorithm.sample_strategy)
        samples = strategy(buffer_config=config.buffer, **config.algorithm.sample_strategy_args)
        return asyncio.run(samples.sample(1))[0]
    reader = TaskFileReader(config.buffer.explorer_input.tasksets[0])
    tasks = asyncio.run(reader.read())
    workflow = tasks[0].to_workflow(model=None)
    workflow.set_repeat_times(config.algorithm.repeat_times, 0)
    advantages = ADVANTAGE_FN.get(config.algorithm.advantage_fn)(**config.algorithm.advantage_fn_args)
    return advantages.process(workflow.run())[0]


def complete():
    import logging

    from trinity.common.config import load_config
    from trinity.trainer.verl.config import build_verl_config
    from trinity.trainer.verl.utils import to_data_proto
    from trinity.utils.plugin_loader import load_plugin_from_dirs
    from verl.utils.config import omega_conf_to_dataclass

    sys.path[:0] = [SHARE, os.path.join(ROOT, "core", "emit", "scripts")]
    import trinity_trial

    trinity_trial.stretch_model()
    load_plugin_from_dirs(os.path.join(SHARE, "trinity_plugin"))
    os.remove(os.path.join(INSTALLED, "trinity", "plugins", "synthetic_data.py"))
    config = load_config(os.path.join(SHARE, "trinity_capacity.yaml"))
    config.check_and_update()
    built = build_verl_config(config)
    engine = omega_conf_to_dataclass(built.actor).engine  # what verl's engine is given
    both = [built.actor.fsdp_config, built.ref.fsdp_config]
    experiences = sequences_of(config)
    batch = to_data_proto(experiences, 1, None, logging.getLogger())
    cluster, trainer = config.cluster, config.trainer
    model = omega_conf_to_dataclass(built.model)  # verl's own reading of the model's folder
    print(json.dumps({
        "gpus": [cluster.total_gpu_num, cluster.trainer_gpu_num, cluster.rollout_gpu_num],
        "tokens": [config.model.max_model_len, built.actor.ppo_max_token_len_per_gpu,
                   built.ref.log_prob_max_token_len_per_gpu],
        "sequences": [config.buffer.train_batch_size, built.actor.ppo_mini_batch_size],
        "strategy": [trainer.trainer_strategy, engine.strategy],
        "offload": [part[name] for part in both for name in ("param_offload", "optimizer_offload", "offload_policy")],
        "entropy_saving": [engine.entropy_checkpointing, engine.entropy_from_logits_with_chunking],
        "fused_kernels": built.model.use_fused_kernels,
        "sync": config.synchronizer.sync_method.value,
        "rope": dict(model.hf_config.rope_parameters),
        "positions": model.hf_config.max_position_embeddings,
        "weights": os.path.exists(os.path.join(model.local_path, "model.safetensors")),
        "experiences": [[len(e.tokens), e.prompt_length, len(e.advantages)] for e in experiences],
        "batch": list(batch.batch["input_ids"].shape),
    }))


if __name__ == "__main__":
    complete() if sys.argv[1:] == ["complete"] else unittest.main()
