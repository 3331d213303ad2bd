#!/usr/bin/env python3
"""How long torch itself needs to trace one training step without a GPU: Qwen3-8B, forward, backward and
AdamW under FakeTensorMode, where tensors have sizes but no memory.

Usage: bench/fake_step.py CONTEXT [LAYERS]

Prints the seconds of the step alone; importing torch and building the model are not counted. This is one
step of one rank without sharding, checkpointing or an allocator: less than `fathom predict` answers.
"""
import sys
import time

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode

CONTEXT = int(sys.argv[1])
LAYERS = int(sys.argv[2]) if len(sys.argv) > 2 else 36


def build():
    config = transformers.Qwen3Config(
        hidden_size=4096, num_hidden_layers=LAYERS, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
        intermediate_size=12288, vocab_size=151936, use_cache=False)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")


def main():
    with FakeTensorMode():
        model = build()
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        ids = torch.zeros(1, CONTEXT, dtype=torch.long)
        start = time.perf_counter()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"{time.perf_counter() - start:.3f}")


main()
