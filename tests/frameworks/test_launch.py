"""Real training: two processes on the CPU, from emitted folders as they are, with a tiny model.

Accelerate has to be talked into FSDP and DeepSpeed on a CPU (cpu/sitecustomize.py).
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from common import HERE, emit


def environment():
    return {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"],
            "ACCELERATE_USE_CPU": "true", "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": os.path.join(HERE, "cpu")}


def train(folder, *arguments):
    done = subprocess.run(["bash", os.path.join(folder, "launch.sh"), *arguments], env=environment(),
                          capture_output=True, text=True, timeout=300)
    losses = re.findall(r"'loss': '?([\d.]+)", done.stdout)
    return losses, done.stdout + done.stderr[-3000:]


def write_model_and_texts(folder):
    """Weights, a tokenizer of single characters and a dataset: what TRL reads."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    model = os.path.join(folder, "tiny")
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model)).save_pretrained(model)
    words = {chr(code): code for code in range(32, 127)} | {"<end>": 0, "<unknown>": 1, "<pad>": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", unk_token="<unknown>",
                            pad_token="<pad>").save_pretrained(model)
    with open(os.path.join(folder, "texts.jsonl"), "w") as out:
        for number in range(64):
            out.write(json.dumps({"text": f"text {number} " * 20}) + "\n")


class Launch(unittest.TestCase):
    def test_training_scripts(self):
        for name, arguments in {
            "ddp": "--for accelerate --strategy ddp",
            "fsdp2": "--for accelerate --accum 2 --batch 2",
            "fsdp2-bf16": "--for accelerate --precision bf16 --reshard off --checkpointing off",
        }.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                emit(folder, f"{arguments} --gpu 2xH100-80G --context 64")
                losses, said = train(folder, "--trial")
                self.assertEqual(len(losses), 3, said)
                self.assertEqual(said.count("sharded by FSDP 2"), 2 if "fsdp2" in name else 0, said)

    def test_deepspeed(self):
        for stage in "123":
            with self.subTest(stage), tempfile.TemporaryDirectory() as folder:
                emit(folder, f"--for deepspeed --strategy zero{stage} --accum 2 --gpu 2xH100-80G --context 64")
                losses, said = train(folder, "--trial")
                self.assertEqual(len(losses), 3, said)
                self.assertEqual(said.count(f"sharded by DeepSpeed {stage}"), 2, said)
                norms = [float(norm) for norm in re.findall(r"'grad_norm': '?([\d.e-]+)", said)]
                self.assertEqual([norm > 0 for norm in norms], [True] * 3, said)

    def test_from_texts_with_a_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            emit(folder, "--for accelerate --gpu 2xH100-80G --context 64 --dataset texts.jsonl")
            write_model_and_texts(folder)
            losses, said = train(folder, "--save-every", "8")
            self.assertGreater(len(losses), 3, said)
            self.assertTrue(os.path.isdir(os.path.join(folder, "checkpoints", "checkpoint-8")), said)

    def test_trl(self):
        with tempfile.TemporaryDirectory() as folder:
            emit(folder, "--for trl --gpu 2xH100-80G --context 64 --accum 2 --dataset texts.jsonl")
            write_model_and_texts(folder)
            losses, said = train(folder, "--max_steps", "2", "--use_cpu", "true", "--logging_steps", "1")
            self.assertEqual(len(losses), 2, said)

    def test_both_kinds_of_checkpointing_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            emit(folder, "--for accelerate --gpu 2xH100-80G --context 64")
            path = os.path.join(folder, "accelerate.yaml")
            with open(path) as file:
                text = file.read()
            both = text.replace("fsdp_activation_checkpointing: false", "fsdp_activation_checkpointing: true")
            self.assertNotEqual(text, both)
            with open(path, "w") as file:
                file.write(both)
            losses, said = train(folder, "--trial")
            self.assertEqual(losses, [])
            self.assertIn("activation_checkpointing", said)

    def test_yarn(self):
        with tempfile.TemporaryDirectory() as folder:
            emit(folder, "--for accelerate --gpu 2xH100-80G --context 8k")
            made = subprocess.run([sys.executable, "yarn.py", "./tiny", "model-yarn", "2.0000"], cwd=folder)
            self.assertEqual(made.returncode, 0)
            from transformers import AutoConfig, AutoModelForCausalLM

            config = AutoConfig.from_pretrained(os.path.join(folder, "model-yarn"))
            self.assertEqual(config.max_position_embeddings, 8192)
            model = AutoModelForCausalLM.from_config(config)
            self.assertEqual(model.model.rotary_emb.rope_type, "yarn")


if __name__ == "__main__":
    unittest.main()
