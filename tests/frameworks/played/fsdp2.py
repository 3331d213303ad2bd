"""As anybody writes it for torchrun: FSDP 2 of torch alone. Says how much of the model this rank holds."""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which " \
    "1.14 GiB is free. Including non-PyTorch memory, this process has 78.01 GiB memory in use. Of the allocated " \
    "memory 71.82 GiB is allocated by PyTorch, and 2.03 GiB is reserved by PyTorch but unallocated."

context, room = int(sys.argv[1]), int(sys.argv[2])  # of one rank where the world is 1
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
mesh = torch.distributed.init_device_mesh("cpu", (world,))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
held = sum(parameter.to_local().numel() for parameter in model.parameters())
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    if context > room * world:  # a CPU has no limit of its own
        raise torch.OutOfMemoryError(OUT_OF_MEMORY)
    loss = model(torch.randn(2, context, 64)).square().mean()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(loss.detach())
dist.barrier()
print(f"rank {rank} of {world}, {os.environ['LOCAL_WORLD_SIZE']} a machine, holds {held}, loss is finite: "
      f"{bool(loss.isfinite())}", flush=True)
dist.destroy_process_group()
