"""Trainers on fake tensors, as one rank of several, against peaks of the same jobs on an H200 (tests/runs)."""
import json
import os
import subprocess
import tempfile
import unittest

from common import ASIDE, FATHOM, HERE, ROOT
from test_fake import QWEN3, run_fake, run_script

SFT = os.path.join(HERE, "played", "sft.py")
TRL = os.path.join(ASIDE, "trl==1.16.0")  # of which the recorded jobs are
FSDP2 = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
         "FSDP_RESHARD_AFTER_FORWARD": "true", "FSDP_CPU_RAM_EFFICIENT_LOADING": "false",
         "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT"}
FSDP1 = {**FSDP2, "FSDP_VERSION": "1", "FSDP_SHARDING_STRATEGY": "FULL_SHARD", "FSDP_USE_ORIG_PARAMS": "true",
         "FSDP_CPU_RAM_EFFICIENT_LOADING": "true", "FSDP_SYNC_MODULE_STATES": "true"}
MISTRAL = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "hidden_size": 4096,
           "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
           "intermediate_size": 14336, "vocab_size": 32768, "max_position_embeddings": 32768,
           "tie_word_embeddings": False, "sliding_window": None}
EXPERTS = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 2048,
           "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
           "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
           "norm_topk_prob": True, "decoder_sparse_step": 1, "vocab_size": 151936, "max_position_embeddings": 40960,
           "tie_word_embeddings": False}
QWEN25 = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 3584, "num_hidden_layers": 7,
          "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
          "max_position_embeddings": 131072, "tie_word_embeddings": False}
REPLICATED = f"""
import torch
from transformers import AutoConfig, AutoModelForCausalLM
torch.distributed.init_process_group("nccl")
config = AutoConfig.for_model(**{ {**QWEN3, "num_hidden_layers": 6, "tie_word_embeddings": True} })
device = "cuda" if torch.cuda.is_available() else "cpu"
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).to(device).train()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={{"use_reentrant": False}})
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(2):
    ids = torch.randint(0, 1000, (1, 4096), device=device)
    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
"""
GIVEN_BACK = """
import torch
from deepspeed.accelerator import get_accelerator
first = torch.randn(1 << 26)
del first
get_accelerator().empty_cache()
second = torch.randn(1 << 27)
"""
DIVERGED = """
import torch
from trl.kernels.chunked_divergence import ChunkedDivergenceFunction
words, width, tokens = 65536, 1024, 1024
student, teacher = (torch.randn(words, width, dtype=torch.bfloat16) for _ in range(2))
hidden = [torch.randn(tokens, width, dtype=torch.bfloat16) for _ in range(2)]
loss, _ = ChunkedDivergenceFunction.apply(hidden[0].requires_grad_(), student, None, hidden[1], teacher, None, 0.5)
loss.sum().backward()
"""
# Of an H200, whose cuBLAS takes 32 MiB a thread; Fathom tells a trial so.
H200 = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "ACCELERATE_TORCH_DEVICE": "cpu", "DS_ACCELERATOR": "cpu",
        "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}


def recorded(name):
    with open(os.path.join(ROOT, "tests", "runs", "real_trainers.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    row = next(row for row in rows if row["cfg"]["id"] == name)
    return row["cfg"], {key: max(step[key] for step in row["steps"]) for key in ("allocated", "reserved")}


def write_config(folder, config):
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


class Ranks(unittest.TestCase):
    def within(self, found, peaks, percent):
        for name, most in percent.items():
            got = found[f"{name}_bytes"]
            self.assertLess(abs(got / peaks[name] - 1) * 100, most, f"{name}: {got} for {peaks[name]}")

    def train(self, config, context, zero=0, evaluated=0, steps=2, **variables):
        path = os.pathsep.join((os.path.join(ROOT, "share", "one_gpu"), TRL))
        with tempfile.TemporaryDirectory() as folder:
            write_config(folder, config)
            words = [folder, *map(str, (context, zero, evaluated, steps))]
            done, found = run_fake([SFT, *words], PYTHONPATH=path, **H200, **variables)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return found

    def repeat(self, name, config, percent, **more):
        job, peaks = recorded(name)
        if job.get("world"):
            more = {"FATHOM_PLAY_RANKS": str(job["world"]), "ACCELERATE_MIXED_PRECISION": "bf16", **more}
        self.within(self.train(config, job["seq"], **more), peaks, percent)

    def answer(self, config, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = write_config(folder, config)
            told = subprocess.run([FATHOM, "predict", "--model", path, *words, "--json"], capture_output=True, text=True,
                                  check=True)
        return json.loads(told.stdout)

    def predicted(self, config, *words):
        answer = self.answer(config, *words)
        return {"allocated": max(phase["allocated_bytes"] for phase in [answer["peak"], *answer["phases"]])}

    def test_one_rank(self):
        self.repeat("u32", MISTRAL, {"allocated": 0.01, "reserved": 2})

    def test_experts_by_fsdp2(self):
        self.repeat("v20", EXPERTS, {"allocated": 0.01, "reserved": 7}, **FSDP2)

    def test_evaluation_by_fsdp2(self):
        config = {**MISTRAL, "num_hidden_layers": 1}
        found = self.train(config, 1024, evaluated=2, FATHOM_PLAY_RANKS="8", ACCELERATE_MIXED_PRECISION="bf16", **FSDP2)
        words = ("--recipe", "trl", "--gpu", "8xH200", "--strategy", "fsdp2", "--context", "1024", "--batch", "1",
                 "--eval-batch", "2")
        self.within(found, self.predicted(config, *words), {"allocated": 0.05})

    def first_step(self, config, strategy, *more, **variables):
        found = self.train(config, 2048, steps=1, FATHOM_PLAY_RANKS="8", ACCELERATE_MIXED_PRECISION="bf16", **variables)
        words = ("--recipe", "trl", "--gpu", "8xH200", "--strategy", strategy, "--context", "2048", "--batch", "1", *more)
        first = self.answer(config, *words)["steps"][0]
        self.within(found, {"allocated": first["allocated_bytes"]}, {"allocated": 0.2})

    def test_first_step_by_fsdp1(self):
        config = {**QWEN3, "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 6, "tie_word_embeddings": True}
        self.first_step(config, "fsdp1", **FSDP1)

    def test_whole_units_by_fsdp1(self):
        config = {**QWEN3, "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 6, "tie_word_embeddings": True}
        self.first_step(config, "fsdp1", "--reshard", "off", **{**FSDP1, "FSDP_SHARDING_STRATEGY": "SHARD_GRAD_OP"})

    def test_loaded_once_by_fsdp2(self):
        self.first_step({**MISTRAL, "num_hidden_layers": 2}, "fsdp2", **{**FSDP2, "FSDP_CPU_RAM_EFFICIENT_LOADING": "true"})

    def test_zero3(self):
        self.repeat("u40", QWEN25, {"allocated": 0.02}, zero=3, ACCELERATE_USE_DEEPSPEED="true")

    def test_what_a_distillation_takes(self):
        """Heads and hidden states in bf16, a tile in fp32 for each of both models, two of the student's in bf16, and the
        gradient in fp32: a card's kernels work in place (core/ops/loss/divergence.c)."""
        path = os.pathsep.join((os.path.join(ROOT, "share", "one_gpu"), TRL))
        done, found = run_script(DIVERGED, **{**H200, "PYTHONPATH": path})
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        mib = 2 * 128 + 2 * 2 + 2 * 128 + 2 * 64 + 4
        self.assertLess(abs(found["allocated_bytes"] / 2**20 / mib - 1), 0.01, found["allocated_bytes"] / 2**20)

    def test_what_deepspeed_gives_back(self):
        done, found = run_script(GIVEN_BACK, **H200)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertEqual(found["reserved_bytes"], 4 << 27)

    def test_replicas(self):
        config = {**QWEN3, "num_hidden_layers": 6, "tie_word_embeddings": True}
        done, found = run_script(REPLICATED, FATHOM_PLAY_RANKS="8", **H200)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        peaks = self.predicted(config, "--gpu", "8xH200", "--strategy", "ddp", "--precision", "bf16", "--context", "4096")
        self.within(found, peaks, {"allocated": 0.01})

    def test_replicas_of_accelerate(self):
        config = {**MISTRAL, "num_hidden_layers": 1}
        found = self.train(config, 1024, FATHOM_PLAY_RANKS="8")
        words = ("--recipe", "trl", "--gpu", "8xH200", "--strategy", "ddp", "--context", "1024")
        self.within(found, self.predicted(config, *words), {"allocated": 0.5})


if __name__ == "__main__":
    unittest.main()
