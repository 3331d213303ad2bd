#!/usr/bin/env python3
"""Lays a predicted step of long-context training under DeepSpeed beside what the real classes do, on the CPU.

Usage: scripts/compare_alst.py PROGRAM [--sp N] [--tiled-mlp on|off] [--reentrant on|off] [--heads N] [--kv-heads N]

Needs torch, transformers, DeepSpeed and einops, no GPU (build/frameworks has them, see `make test-frameworks`). A small
Llama of two layers runs forward and backward with DeepSpeed's UlyssesSPAttentionHF (over torch's fake process group of N
ranks), TiledMLP and linear layers; every storage of an activation's size is noted, and when it goes. The same step is
predicted under zero3, and where the two orders differ, both sides are printed. `--reentrant on` predicts checkpoints in
host memory, where each layer's input comes back first. What differs and means nothing: sums are made out of place while
operators are watched (aten.add), a CPU's attention has no scratch and lays its gradients out otherwise, and the loader's
and the loss's tensors of a hidden state's size are in another order.
"""
import argparse
import difflib
import json
import math
import os
import subprocess
import tempfile

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import torch
import torch.distributed
import transformers
from torch.testing._internal.distributed.fake_pg import FakeStore

from watch import Watch

TOKENS, HIDDEN, MLP, HEAD = 1000, 320, 768, 64


def shape_of(given):
    return {"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": MLP, "num_hidden_layers": 2,
            "num_attention_heads": given.heads, "num_key_value_heads": given.kv_heads, "head_dim": HEAD, "vocab_size": 1000,
            "max_position_embeddings": 65536, "tie_word_embeddings": False}


def shards():
    return math.ceil(TOKENS / HIDDEN)


def put_ulysses(given):
    from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    attention = UlyssesSPAttentionHF(attn=ALL_ATTENTION_FUNCTIONS["sdpa"], batch_size=1, attn_head_count=given.heads,
                                     attn_head_size=HEAD, kv_head_count=given.kv_heads, num_hidden_layers=2,
                                     process_group=torch.distributed.group.WORLD, seq_length_is_variable=True)
    ALL_ATTENTION_FUNCTIONS["sdpa"] = lambda module, q, k, v, mask, *a, **b: attention(module, q, k, v, None, *a, **b)
    ALL_MASK_ATTENTION_FUNCTIONS.register("sdpa", lambda *a, **b: None)


def put_tiles():
    from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledMLP
    from transformers.models.llama.modeling_llama import LlamaMLP

    def whole(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))

    def tiled(self, x):
        weights = [self.down_proj.weight, self.gate_proj.weight, self.up_proj.weight]
        return TiledMLP.apply(whole, self, x, shards(), weights)

    LlamaMLP.forward = tiled


def really(given):
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=given.sp)
    import deepspeed.comm
    from deepspeed.comm.torch import TorchBackend
    from deepspeed.runtime.zero.linear import zero3_linear_wrap
    deepspeed.comm.comm.cdb = TorchBackend("fake", None, init_method=None)
    values = shape_of(given)
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    config.use_cache = False
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(torch.bfloat16).train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": given.reentrant == "on"})
    model.enable_input_require_grads()
    if given.sp > 1:
        put_ulysses(given)
    if given.tiled_mlp == "on":
        put_tiles()
    torch.nn.functional.linear = zero3_linear_wrap
    ids = torch.randint(0, config.vocab_size, (1, TOKENS))
    with Watch(p.untyped_storage()._cdata for p in model.parameters()) as watch:
        loss = model(input_ids=ids, position_ids=torch.arange(TOKENS)[None], labels=ids, shift_labels=ids).loss
        loss.backward()
        del loss
    return watch.events


def predicted(given):
    with tempfile.TemporaryDirectory() as folder:
        trace, config = os.path.join(folder, "trace"), os.path.join(folder, "config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(shape_of(given), file)
        gpu = "H200" if given.sp == 1 else f"{given.sp}xH200"
        subprocess.run([given.program, "predict", "--model", config, "--gpu", gpu, "--recipe", "deepspeed", "--trace", trace,
                        f"--context={TOKENS * given.sp}", f"--sp={given.sp}", f"--tiled-mlp={given.tiled_mlp}",
                        f"--checkpoint-offload={given.reentrant}", "--zero-buckets=auto", "--attention=flash2",
                        "--offload=optimizer"], check=False, stdout=subprocess.DEVNULL)
        with open(trace, encoding="ascii") as file:
            lines = [line.split() for line in file]
    kinds = {"alloc": "A", "free": "F", "free_completed": "F"}
    return [(kinds[line[0]], int(line[2])) for line in lines if line[0] in kinds]


def names_of(given):
    """What sizes are called: activations only, so that weights and their gradients are left out."""
    piece = math.ceil(TOKENS / shards())
    return {2 * TOKENS * HIDDEN: "hidden", 4 * TOKENS * HIDDEN: "hidden in fp32", 2 * TOKENS * MLP: "mlp",
            2 * TOKENS * given.kv_heads * HEAD: "keys", 2 * TOKENS * max(given.kv_heads, given.sp) * HEAD: "all keys",
            2 * TOKENS * given.heads * HEAD: "queries", 2 * piece * HIDDEN: "piece", 2 * piece * MLP: "mlp of a piece"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("--sp", type=int, default=8)
    parser.add_argument("--tiled-mlp", choices=("on", "off"), default="on")
    parser.add_argument("--reentrant", choices=("on", "off"), default="on")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--kv-heads", type=int, default=2)
    return parser.parse_args()


def main():
    given = arguments()
    names = names_of(given)
    real = [(kind, names[size], operator) for kind, size, operator in really(given) if size in names]
    mine = [(kind, names[size]) for kind, size in predicted(given) if size in names][: len(real)]
    matcher = difflib.SequenceMatcher(None, [event[:2] for event in real], mine, autojunk=False)
    for kind, first, last, mine_first, mine_last in matcher.get_opcodes():
        if kind == "equal":
            print(f"  {last - first} the same")
            continue
        for event in real[first:last]:
            print("torch    ", *event)
        for event in mine[mine_first:mine_last]:
            print("predicted", *event)


main()
