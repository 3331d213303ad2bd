#!/usr/bin/env python3
"""Trains a model for a few steps on a real GPU and writes down what its memory did.

Usage: scripts/record_step.py OUT-FOLDER NAME 'JSON'

JSON: {"model": config.json values with model_type, "strategy": "single"|"fsdp2", "world": N, "seq": N,
"batch": N, "ac": bool, "precision": "bf16"|"fp32"|"autocast", "fused": bool, "trace": bool,
"expandable": bool}. Rank 0 of `world` is played with torch's fake process group. Random weights.
Leaves NAME.json (peaks of each step, in the form of tests/runs) and, with "trace", NAME.trace.z (the
allocator's history) and NAME.stacks.json (who allocated, for the forward pass).
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


def build(config, strategy, precision):
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = model.to(dtype)
    if strategy == "fsdp2":
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
    model.to_empty(device="cuda")
    if config.tie_word_embeddings:
        model.tie_weights()
    with torch.no_grad():
        for p in model.parameters():
            local = p.to_local() if hasattr(p, "to_local") else p
            local.normal_(0, 0.02)
    rotary = model.model.rotary_emb
    inverse, _ = rotary.compute_default_rope_parameters(config, "cuda")
    rotary.inv_freq.copy_(inverse)
    return model


def main():
    world = cfg.get("world", 1)
    if cfg["strategy"] == "fsdp2":
        from torch.testing._internal.distributed.fake_pg import FakeStore

        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    torch.cuda.init()
    if cfg.get("trace"):
        torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=3000000)
    values = dict(cfg["model"])
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    config.use_cache = False
    model = build(config, cfg["strategy"], cfg["precision"])
    model.train()
    if cfg["ac"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True if cfg.get("fused") else None)
    torch.manual_seed(0)
    ids = torch.randint(0, config.vocab_size, (cfg.get("batch", 1), cfg["seq"]), device="cuda")
    peaks = []
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        with torch.autocast("cuda", torch.bfloat16, enabled=cfg["precision"] == "autocast"):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        del loss
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        peaks.append({key: stats[f"{key}_bytes.all.peak"] for key in ("allocated", "requested", "active", "reserved")})
        peaks[-1]["end_allocated"] = stats["allocated_bytes.all.current"]
        peaks[-1]["retries"] = stats["num_alloc_retries"]
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
