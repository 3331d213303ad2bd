#!/usr/bin/env python3
"""Families against the transformers of this Python, on the CPU: a small model of each runs forward, and every storage
of any size that its operators make, keep and let go is the predicted one, in the predicted order. FATHOM may name
another program than the release's."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FATHOM = os.path.abspath(os.environ.get("FATHOM", os.path.join(ROOT, "build", "release", "fathom")))
LLAMA = {"vocab_size": 1000, "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
         "num_key_value_heads": 2, "intermediate_size": 704, "max_position_embeddings": 1024, "pad_token_id": 0}
HEADS = {**LLAMA, "head_dim": 32}
GPT = {"vocab_size": 1000, "n_embd": 256, "n_layer": 2, "n_head": 8, "n_positions": 1024, "resid_pdrop": 0,
       "embd_pdrop": 0, "attn_pdrop": 0}
FALCON = {"vocab_size": 1000, "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
          "num_ln_in_parallel_attn": None}
CASES = {
    "llama": LLAMA, "granite": LLAMA, "glm": HEADS, "glm4": HEADS, "hunyuan_v1_dense": HEADS, "ernie4_5": HEADS,
    "seed_oss": {**HEADS, "attention_dropout": 0, "residual_dropout": 0}, "ministral3": HEADS,
    "exaone4": {**LLAMA, "num_hidden_layers": 4, "sliding_window": 128},
    "cohere": LLAMA, "cohere normed": {**LLAMA, "use_qk_norm": True},
    "cohere2": {**LLAMA, "num_hidden_layers": 4, "sliding_window": 128},
    "nemotron": LLAMA, "arcee": HEADS, "starcoder2": LLAMA, "stablelm": LLAMA, "phi": LLAMA, "gpt_neox": LLAMA,
    "gpt_neox serial": {**LLAMA, "use_parallel_residual": False},
    "gpt2": GPT, "gpt_bigcode": GPT, "opt": {**LLAMA, "ffn_dim": 704, "dropout": 0},
    "mpt": {"vocab_size": 1000, "d_model": 256, "n_heads": 8, "n_layers": 2, "max_seq_len": 1024},
    "falcon grouped": {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2},
    "falcon one norm": {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
    "falcon serial": {**FALCON, "multi_query": False, "parallel_attn": False},
    "falcon biased keys": {**FALCON, "multi_query": False, "parallel_attn": False, "alibi": True},
    "gptj": {**GPT, "rotary_dim": 16}, "bloom": {"vocab_size": 1000, "hidden_size": 256, "n_layer": 2, "n_head": 8},
}
# Have no fused attention. Under these sizes are BLOOM's ways to its mask, and GPT-J's angles, which a model that is
# loaded has in fp32.
WRITTEN_OUT = {"bloom": 150000, "gptj": 70000, "mpt": 3200}


def script_of(name):
    path = os.path.join(ROOT, "scripts", f"{name}.py")
    sys.path.insert(0, os.path.dirname(path))    # as Python does for a script that it runs
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare_operators():
    return script_of("compare_operators")


class Forward(unittest.TestCase):
    def check(self, name, **how):
        # Smaller ones are ids, labels and positions, which a CPU handles otherwise.
        how = {"least": 3200, **how}
        script = compare_operators()
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"model_type": name.split()[0], **CASES[name]}, file)
            file.flush()
            words = ["", FATHOM, file.name, *(f"--{key}={value}" for key, value in how.items())]
            with mock.patch.object(sys, "argv", words):
                given = script.arguments()
            real, forward, mine = script.both(given)
        self.assertGreater(forward, 30)
        self.assertEqual([event[:2] for event in real[:forward]], mine[:forward])

    def test_every_family(self):
        for name in CASES:
            with self.subTest(name):
                least = WRITTEN_OUT.get(name)
                self.check(name, **({"least": least, "attention": "eager"} if least else {}))

    def test_several_sequences(self):
        for name in ("glm", "cohere normed", "phi", "gpt_neox", "gpt2", "opt"):
            with self.subTest(name):
                self.check(name, batch=2, least=7000)

    def test_recomputed_layers(self):
        for name in ("glm4", "cohere", "nemotron", "gpt_neox", "gpt2"):
            with self.subTest(name):
                self.check(name, checkpointing="on")


class Scores(unittest.TestCase):
    def test_reward_models(self):
        """A reward model is refused of the families that transformers has no head over a sequence for, and of no other."""
        from transformers.models.auto import modeling_auto

        models = {family: name for name, (family, _) in script_of("count_parameters").rows().items()
                  if family in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES}
        self.assertGreater(len(models), 40)
        for family, name in models.items():
            words = ["--recipe", "trl", "--task", "reward", "--model", name, "--gpu", "8xH200", "--context", "512"]
            done = subprocess.run([FATHOM, "predict", *words], capture_output=True, text=True, check=False)
            with self.subTest(family):
                self.assertEqual("that scores a sequence" in done.stderr,
                                 family not in modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES)


if __name__ == "__main__":
    unittest.main()
