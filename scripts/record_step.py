#!/usr/bin/env python3
"""Trains a model for a few steps on a real GPU and writes down what its memory did.

Usage: scripts/record_step.py OUT-FOLDER NAME 'JSON'

JSON: {"model": config.json values with model_type, "strategy": "single"|"ddp"|"fsdp1"|"fsdp2", "world": N,
"seq": N, "batch": N, "ac": bool, "precision": "bf16"|"fp32"|"autocast", "fused": bool, "trace": bool,
"expandable": bool, "attn": "sdpa"|"eager"}. Rank 0 of `world` is played with torch's fake process group, ddp
is a real group of one. Random weights; only the memory means anything. Leaves NAME.json (peaks of each step,
in the form of tests/runs) and, with "trace", NAME.trace.z (the allocator's history) and NAME.stacks.json (who
allocated, for the forward pass).
"""
import json
import os
import sys
import zlib

folder, name, cfg = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if cfg.get("expandable"):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
import transformers


def fill(model):
    with torch.no_grad():
        for p in model.parameters():
            local = p.to_local() if hasattr(p, "to_local") else p
            local.normal_(0, 0.02)
        for b in model.buffers():
            b.fill_(0.5) if b.is_floating_point() else b.zero_()


def wrap_fsdp1(model):
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    return FullyShardedDataParallel(
        model, sharding_strategy=ShardingStrategy.FULL_SHARD, device_id=torch.device("cuda", 0),
        auto_wrap_policy=ModuleWrapPolicy({type(model.model.layers[0])}),
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
        use_orig_params=False, forward_prefetch=False,
        param_init_fn=lambda module: module.to_empty(device="cuda", recurse=False))


def shard_fsdp2(model, config, precision):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = {}
    if precision == "fp32":
        policy["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.model.layers:
        fully_shard(layer, **policy)
    if not config.tie_word_embeddings:
        fully_shard(model.model.embed_tokens, **policy)
        fully_shard(model.lm_head, **policy)
    fully_shard(model, **policy)


def build(config, strategy, precision):
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=cfg.get("attn", "sdpa"))
    model = model.to(torch.bfloat16 if precision == "bf16" else torch.float32)
    model.train()
    if cfg["ac"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if strategy == "fsdp1":
        model = wrap_fsdp1(model)
        fill(model)
        return model
    if strategy == "fsdp2":
        shard_fsdp2(model, config, precision)
    model.to_empty(device="cuda")
    if config.tie_word_embeddings:
        model.tie_weights()
    fill(model)
    return torch.nn.parallel.DistributedDataParallel(model) if strategy == "ddp" else model


def join(strategy, world):
    if strategy.startswith("fsdp"):
        from torch.testing._internal.distributed.fake_pg import FakeStore

        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    if strategy == "ddp":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000))
        torch.distributed.init_process_group("nccl", rank=0, world_size=1)


def step(model, optimizer, ids):
    torch.cuda.reset_peak_memory_stats()
    with torch.autocast("cuda", torch.bfloat16, enabled=cfg["precision"] == "autocast"):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    del loss
    if cfg["strategy"] == "fsdp1":
        model.clip_grad_norm_(1.0)
    else:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    peak = {key: stats[f"{key}_bytes.all.peak"] for key in ("allocated", "requested", "active", "reserved")}
    peak["end_allocated"] = stats["allocated_bytes.all.current"]
    peak["retries"] = stats["num_alloc_retries"]
    return peak


def main():
    join(cfg["strategy"], cfg.get("world", 1))
    torch.cuda.init()
    if cfg.get("trace"):
        torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=3000000)
    values = dict(cfg["model"])
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    config.use_cache = False
    model = build(config, cfg["strategy"], cfg["precision"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True if cfg.get("fused") else None)
    torch.manual_seed(0)
    ids = torch.randint(0, config.vocab_size, (cfg.get("batch", 1), cfg["seq"]), device="cuda")
    peaks = [step(model, optimizer, ids) for _ in range(3)]
    with open(os.path.join(folder, name + ".json"), "w") as out:
        json.dump({"cfg": cfg, "ok": True, "peaks": peaks, "transformers": transformers.__version__,
                   "torch": torch.__version__}, out)
    print(name, peaks[0]["allocated"], peaks[1]["allocated"], peaks[1]["reserved"])
    if cfg.get("trace"):
        write_trace()


def write_trace():
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    lines, stacks, known = [], [], {}
    for event in events:
        if "addr" not in event:
            continue
        lines.append(f"{event['action']} {event['addr']:x} {event['size']} {event['stream']}")
        frames = [f"{os.path.basename(f['filename'])}:{f['line']}:{f['name']}" for f in event.get("frames", [])[:14]]
        frames = [f for f in frames if f.startswith("modeling_") or "moe" in f or "integrations" in f][:3] or frames[:2]
        stacks.append(known.setdefault(" < ".join(frames), len(known)))
    with open(os.path.join(folder, name + ".trace.z"), "wb") as out:
        out.write(zlib.compress("\n".join(lines).encode() + b"\n", 9))
    with open(os.path.join(folder, name + ".stacks.json"), "w") as out:
        json.dump({"frames": list(known), "event": stacks}, out)


main()
