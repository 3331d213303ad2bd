#!/usr/bin/env python3
"""Trains a model under DeepSpeed's ZeRO on a real GPU and writes down what its memory did.

Usage: scripts/record_zero.py OUT-FOLDER NAME 'JSON'

JSON: the cfg of a row of tests/runs/h200_zero.jsonl: {"model": "Qwen3-0.6B", "layers": N, "strategy": "zero1"|
"zero2"|"zero3", "world": N, "seq": N, "batch": N, "accum": N, "ac": bool, "fused": bool, "offload": "optimizer"|
"all", "expandable": bool, "trace": bool}. Rank 0 of `world` is played with torch's fake process group. Bucket
sizes are those that transformers puts in for "auto"; the rest is DeepSpeed's default. torch's AdamW is handed
to DeepSpeed, as transformers' Trainer does. Random weights, three steps.
Leaves NAME.json (peaks of each step) and, with "trace", NAME.trace.z (the allocator's history) and
NAME.stacks.json (who allocated).
"""
import json
import os
import resource
import sys
import zlib

folder, name, cfg = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if cfg.get("expandable"):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
world = cfg["world"]
os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")

import torch
import torch.distributed
from torch.testing._internal.distributed.fake_pg import FakeStore

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # cpu: only to see whether the script runs
MODELS = {  # type, hidden, layers, heads, heads of keys, intermediate, tied
    "tiny": ("qwen3", 256, 4, 4, 2, 512, True),
    "Qwen3-0.6B": ("qwen3", 1024, 28, 16, 8, 3072, True),
    "Qwen3-1.7B": ("qwen3", 2048, 28, 16, 8, 6144, True),
    "Qwen3-4B": ("qwen3", 2560, 36, 32, 8, 9728, True),
    "Qwen3-8B": ("qwen3", 4096, 36, 32, 8, 12288, False),
    "Qwen2.5-1.5B": ("qwen2", 1536, 28, 12, 2, 8960, True),
}


class Done:
    def wait(self, *_):
        return True

    def is_completed(self):
        return True


def reduce_scatter(output, input, op=None, group=None, async_op=False):
    """The fake group leaves the output as it was, and what happened to be there may not be a number."""
    output.copy_(input.view(-1).narrow(0, 0, output.numel()).view_as(output))
    return Done() if async_op else None


torch.distributed.reduce_scatter_tensor = reduce_scatter
torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)

import deepspeed
import transformers
from transformers.integrations import HfDeepSpeedConfig

deepspeed.init_distributed(dist_init_required=False)


def model_config():
    kind, hidden, layers, heads, key_heads, intermediate, tied = MODELS[cfg["model"]]
    config = transformers.AutoConfig.for_model(
        kind, hidden_size=hidden, num_hidden_layers=cfg.get("layers", layers), num_attention_heads=heads,
        num_key_value_heads=key_heads, head_dim=128, intermediate_size=intermediate,
        tie_word_embeddings=tied, max_position_embeddings=40960, vocab_size=151936)
    config.use_cache = False
    return config


def deepspeed_config(hidden):
    zero = {"stage": int(cfg["strategy"][-1]), "reduce_bucket_size": hidden * hidden}
    if zero["stage"] == 3:
        zero["stage3_prefetch_bucket_size"] = int(0.9 * hidden * hidden)
        zero["stage3_param_persistence_threshold"] = 10 * hidden
    if cfg.get("offload"):
        zero["offload_optimizer"] = {"device": "cpu"}
    if cfg.get("offload") == "all":
        zero["offload_param"] = {"device": "cpu"}
    micro, accumulation = cfg.get("batch", 1), cfg.get("accum", 1)
    return {"bf16": {"enabled": True}, "zero_optimization": zero, "gradient_clipping": 1.0,
            "train_micro_batch_size_per_gpu": micro, "gradient_accumulation_steps": accumulation,
            "train_batch_size": micro * accumulation * world, "zero_force_ds_cpu_optimizer": False,
            "zero_allow_untested_optimizer": True, "steps_per_print": 1000000}


def fill(parameter, pattern):
    """Small numbers into the part that is here; ones into norms. Nothing is allocated on the card."""
    part = getattr(parameter, "ds_tensor", parameter).data.view(-1)
    if len(getattr(parameter, "ds_shape", parameter.shape)) == 1:
        part.fill_(1.0)
    elif part.device.type == "cuda":
        part.normal_(0, 0.02)
    else:
        for start in range(0, part.numel(), pattern.numel()):
            piece = part[start:start + pattern.numel()]
            piece.copy_(pattern[:piece.numel()])


def build(config, settings):
    """Before deepspeed.initialize: ZeRO-3 shards each module as it is made, the others come from the host."""
    pattern = torch.randn(1 << 20).mul_(0.02).bfloat16()
    options = {"attn_implementation": "sdpa", "dtype": torch.bfloat16}
    keep = None
    if cfg["strategy"] == "zero3":
        keep = HfDeepSpeedConfig(settings)
        model = transformers.AutoModelForCausalLM.from_config(config, **options)
    else:
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config, **options)
        model.to_empty(device="cpu")
        if config.tie_word_embeddings:
            model.tie_weights()
        rotary = model.model.rotary_emb
        inverse, _ = rotary.compute_default_rope_parameters(config, "cpu")
        rotary.inv_freq.copy_(inverse)
    with torch.no_grad():
        for parameter in model.parameters():
            fill(parameter, pattern)
    return model, keep


def peaks_now():
    if DEVICE == "cpu":
        return {}
    stats = torch.cuda.memory_stats()
    peak = {key: stats[f"{key}_bytes.all.peak"] for key in ("allocated", "requested", "active", "reserved")}
    peak["end_allocated"] = stats["allocated_bytes.all.current"]
    peak["retries"] = stats["num_alloc_retries"]
    return peak


def host_memory():
    found = {"rss_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    with open("/proc/self/status") as status:
        found["rss"] = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
    if DEVICE == "cuda" and hasattr(torch.cuda, "host_memory_stats"):
        stats = torch.cuda.host_memory_stats()
        found["pinned"] = {key: value for key, value in stats.items() if "bytes" in key}
    return found


def main():
    if DEVICE == "cuda":
        torch.cuda.init()
        torch.cuda.set_device(0)
    if cfg.get("trace"):
        torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=3000000)
    config = model_config()
    settings = deepspeed_config(config.hidden_size)
    model, keep = build(config, settings)
    model.train()
    if cfg["ac"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    before = host_memory()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True if cfg.get("fused") else None)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings, dist_init_required=False)
    del model
    torch.manual_seed(0)
    ids = torch.randint(0, config.vocab_size, (cfg.get("batch", 1), cfg["seq"]), device=DEVICE)
    peaks, notes = [], []
    for _ in range(3):
        if DEVICE == "cuda":
            torch.cuda.reset_peak_memory_stats()
        for _ in range(cfg.get("accum", 1)):
            loss = engine(input_ids=ids, labels=ids).loss
            engine.backward(loss)
            value = loss.item()
            del loss
            engine.step()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        peaks.append(peaks_now())
        notes.append({"loss": value, "overflow": bool(engine.optimizer.overflow), "norm": str(engine.get_global_grad_norm())})
    with open(os.path.join(folder, name + ".json"), "w") as out:
        json.dump({"cfg": cfg, "ok": True, "peaks": peaks, "transformers": transformers.__version__,
                   "torch": torch.__version__, "deepspeed": deepspeed.__version__, "notes": notes,
                   "host": {"before": before, "after": host_memory()}}, out)
    print(name, peaks, notes, flush=True)
    if cfg.get("trace"):
        write_trace()


def write_trace():
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    lines, stacks, known = [], [], {}
    for event in events:
        if "addr" not in event:
            continue
        lines.append(f"{event['action']} {event['addr']:x} {event['size']} {event['stream']}")
        frames = [(f["filename"], f"{os.path.basename(f['filename'])}:{f['line']}:{f['name']}")
                  for f in event.get("frames", [])[:24]]
        ours = [label for path, label in frames if "deepspeed" in path or "modeling_" in path or "optim" in path][:4]
        stacks.append(known.setdefault(" < ".join(ours or [label for _, label in frames[:3]]), len(known)))
    with open(os.path.join(folder, name + ".trace.z"), "wb") as out:
        out.write(zlib.compress("\n".join(lines).encode() + b"\n", 9))
    with open(os.path.join(folder, name + ".stacks.json"), "w") as out:
        json.dump({"frames": list(known), "event": stacks}, out)


main()
