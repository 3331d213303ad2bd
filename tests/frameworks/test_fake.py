"""Training on fake tensors, without a GPU, against peaks that were recorded on an H200 (tests/runs/h200_runs.jsonl)."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

from common import FATHOM, ROOT

WORKER = os.path.join(ROOT, "share", "torch_worker.py")
QWEN3 = {"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
         "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
         "max_position_embeddings": 40960}
LARGE = {"hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 12288,
         "tie_word_embeddings": False}
# Its family is in no table of ours.
UNKNOWN = {"model_type": "mamba2", "hidden_size": 256, "num_hidden_layers": 2, "vocab_size": 1024, "num_heads": 8,
           "head_dim": 64, "n_groups": 1}


def recorded(**wanted):
    """The largest peaks of the recorded run with exactly these settings."""
    with open(os.path.join(ROOT, "tests", "runs", "h200_runs.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    found = [row["peaks"] for row in rows if row["cfg"] == wanted]
    assert len(found) == 1, wanted
    return {name: max(step[name] for step in found[0]) for name in ("allocated", "reserved")}


def train(**trial):
    text = json.dumps({"fake": True, "program": FATHOM, "workspace": ":4096:2:16:8", "steps": 2, **trial})
    done = subprocess.run([sys.executable, "-W", "ignore", WORKER, text], capture_output=True, text=True, timeout=600)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"fathom"')]
    return done, [line for line in lines if line["fathom"] == "step"]


SCRIPT = f"""
import torch
from transformers import AutoConfig, AutoModelForCausalLM
config = AutoConfig.for_model(**{ {**QWEN3, "num_hidden_layers": 6, "tie_word_embeddings": False} })
device = "cuda" if torch.cuda.is_available() else "cpu"
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).to(device).train()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={{"use_reentrant": False}})
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(2):
    ids = torch.randint(0, 1000, (1, 4096), device=device)
    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""


def run_fake(words, **variables):
    """A Python program as `fathom probe --fake --engine command` runs it."""
    paths = {"PYTHONPATH": os.path.join(ROOT, "share", "one_gpu"), "FATHOM_PLAY_FAKE": FATHOM,
             "CUBLAS_WORKSPACE_CONFIG": ":4096:2:16:8", "FATHOM_PLAY_LIMIT": "0"}
    done = subprocess.run([sys.executable, "-W", "ignore", *words], capture_output=True, text=True, timeout=600,
                          env={**os.environ, **paths, **variables})
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"fathom"')]
    return done, next((line for line in lines if line["fathom"] == "peaks"), None)


def run_script(text, **variables):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return run_fake([path], **variables)


def peaks_of(folder):
    """What the trials said whose logs are there."""
    paths = glob.glob(os.path.join(folder, "logs", "**", "*.log"), recursive=True)
    lines = [line for path in paths for line in open(path, encoding="utf-8", errors="replace")]
    return [json.loads(line) for line in lines if line.startswith('{"fathom": "peaks"')]


class Fake(unittest.TestCase):
    def compare(self, steps, peaks, percent):
        for name, peak in peaks.items():
            got = max(step[f"{name}_bytes"] for step in steps)
            self.assertLess(abs(got / peak - 1) * 100, percent, f"{name}: {got} for {peak}")

    def test_one_gpu(self):
        peaks = recorded(model="Qwen3-0.6B", strategy="single", precision="bf16", seq=4096, ac=True, tied=False)
        done, steps = train(config={**QWEN3, "tie_word_embeddings": False}, context=4096, precision="bf16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.compare(steps, peaks, 0.5)

    def test_eight_ranks(self):
        peaks = recorded(model="Qwen3-8B", strategy="fsdp2", precision="fp32", seq=8192, ac=True, world=8)
        done, steps = train(config={**QWEN3, **LARGE}, context=8192, precision="mixed", world=8, strategy="fsdp2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.compare(steps, {"allocated": peaks["allocated"]}, 0.1)  # reserved: streams are not seen

    def test_a_card_that_is_too_small(self):
        done, steps = train(config={**QWEN3, "num_hidden_layers": 2, "tie_word_embeddings": True}, context=4096,
                            precision="bf16", limit_bytes=4 << 30)
        self.assertEqual((done.returncode, steps), (1, []))
        self.assertIn("CUDA out of memory", done.stderr)

    def test_a_family_that_nobody_modelled(self):
        done, steps = train(config=UNKNOWN, context=512, precision="bf16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(steps), 2)
        self.assertGreater(steps[1]["allocated_bytes"], 4 * 2 * 1024 * 256)  # weights, gradients and states at least

    def test_what_it_does_not_do(self):
        done, _ = train(config=UNKNOWN, context=512, world=2, strategy="ddp")
        self.assertEqual(done.returncode, 126)
        self.assertIn("fake tensors train with strategy single or fsdp2 only, not ddp", done.stderr)

    def test_a_script_of_ones_own(self):
        peaks = recorded(model="Qwen3-0.6B", strategy="single", precision="bf16", seq=4096, ac=True, layers=6,
                         trace="t00", tied=False)
        done, found = run_script(SCRIPT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.compare([found], peaks, 2)

    def test_a_script_on_a_card_that_is_too_small(self):
        done, found = run_script(SCRIPT, FATHOM_PLAY_LIMIT=str(6 << 30))
        self.assertEqual((done.returncode, found), (1, None))
        self.assertIn("CUDA out of memory", done.stderr)

    def test_what_a_script_knows(self):
        """Masks of its own choose; an evaluation's losses become numbers; a card's dropout keeps a byte a value, its
        softmax multiplies before it goes backwards."""
        chosen = ("mask = torch.zeros(1 << 22, dtype=torch.bool)\nmask[:1 << 20] = True\ny = x[mask]\n"
                  "assert y.shape == (1 << 20,)\nprint(y.sum().numpy())\n")
        dropped = "y = torch.nn.functional.dropout(x.requires_grad_(), 0.1)\n"
        scores = "torch.softmax(x.requires_grad_().view(1 << 11, -1), 1).sum().backward()\n"
        for text, mib in ((chosen, 16 + 4 + 4), (dropped, 16 + 16 + 4), (scores, 4 * 16)):
            done, found = run_script(f"import torch\nx = torch.randn(1 << 22)\n{text}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertAlmostEqual(found["allocated_bytes"] / 2**20, mib, delta=1, msg=text)

    def test_what_is_generated(self):
        """No word that ends an answer in one family or another, which have 0, 1, 2 or 3 for it."""
        done, _ = run_script("import torch\nwords = torch.multinomial(torch.softmax(torch.randn(4, 100), 1), 2)\n"
                             "assert words.shape == (4, 2) and words.min() > 3, words\n")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_script_that_looks_at_values(self):
        done, found = run_script("import torch\nx = torch.randn(8)\nprint(x[x > 0].sum().item())\n")
        self.assertEqual((done.returncode, found), (1, None))
        self.assertIn("ValueError: the model or script looks at values", done.stderr.splitlines()[-1])

    def test_trl_by_fathom(self):
        """`trl sft` and its launcher, as rank 0 of 2."""
        with tempfile.TemporaryDirectory() as folder:
            config = {**QWEN3, "num_hidden_layers": 2, "tie_word_embeddings": True, "architectures": ["Qwen3ForCausalLM"]}
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump(config, file)
            words = ["--model", "config.json", "--strategy", "fsdp2"]
            done = subprocess.run(
                [FATHOM, "probe", "--engine", "trl", "--fake", "--as", "H200", "--gpus", "2", *words, "--start", "1024",
                 "--until", "1024", "--grid", "1024"],
                capture_output=True, text=True, cwd=folder, timeout=600)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            told = subprocess.run([FATHOM, "predict", "--recipe", "trl", *words, "--gpu", "2xH200", "--context", "1024",
                                   "--json"], capture_output=True, text=True, cwd=folder, check=False)
            peak = json.loads(told.stdout)["peak"]["allocated_bytes"]
            self.compare(peaks_of(folder), {"allocated": peak}, 4)

    def test_fathom_asks_for_a_card(self):
        offload = ["--as", "H100-80G", "--gpus", "8", "--strategy", "fsdp2", "--offload", "all"]
        for words, said in ((["--gpus", "1", "--engine", "torch"], "--as H100-80G says which is meant"),
                            (["--gpus", "1", "--as", "H100-80G", "--engine", "accelerate"],
                             "the accelerate engine has no fake"),
                            ([*offload, "--engine", "trl"], "what is offloaded there could not be told")):
            done = subprocess.run([FATHOM, "probe", "--fake", "--model", "Qwen3-0.6B", *words],
                                  capture_output=True, text=True, cwd=tempfile.gettempdir())
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_fathom_finds_a_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump({**QWEN3, "num_hidden_layers": 1, "tie_word_embeddings": True}, file)
            done = subprocess.run(
                [FATHOM, "probe", "--fake", "--as", "RTX4090", "--model", "config.json", "--gpus", "1",
                 "--engine", "torch", "--strategy", "single", "--precision", "bf16", "--grid", "4096", "--python",
                 sys.executable, "--json"], capture_output=True, text=True, cwd=folder, timeout=600)
            reply = json.loads(done.stdout)
            cell = reply["cells"][0]
            self.assertEqual((done.returncode, cell["state"], cell["launches"]), (0, "done", 2), done.stderr)
            self.assertGreater(cell["max_context"], 0)
            self.assertEqual(cell["fails_at"], cell["max_context"] + 4096)


if __name__ == "__main__":
    unittest.main()
