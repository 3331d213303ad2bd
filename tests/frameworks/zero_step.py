"""One optimizer step of DeepSpeed's engine on the CPU, from an emitted JSON: zero_step.py JSON MODEL."""
import sys

import deepspeed
import torch
from transformers import AutoConfig, AutoModelForCausalLM

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # compiling it takes minutes
deepspeed.init_distributed("gloo")
torch.manual_seed(0)
model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(sys.argv[2]), dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=sys.argv[1])
tokens = torch.arange(64).unsqueeze(0)
for _ in range(2 * engine.gradient_accumulation_steps()):
    loss = engine(input_ids=tokens, labels=tokens).loss
    engine.backward(loss)
    engine.step()
if torch.distributed.get_rank() == 0:
    print(f"stage {engine.zero_optimization_stage()}, {engine.global_steps} steps, loss {loss.item():.3f}")
