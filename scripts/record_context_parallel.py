#!/usr/bin/env python3
"""Trains a model for a few steps under ring context parallelism and writes down what its memory did.

Usage: scripts/record_context_parallel.py OUT-FOLDER NAME 'JSON'

JSON: {"model": a name of MODELS, "layers": N, "world": N, "cp": N, "rank": N, "seq": N, "ac": bool,
"loss": "hf"|"chunked256", "recipe": "hf"|"trl", "fused": bool, "host_checkpoints": bool, "rotate": "allgather"|"alltoall",
"backend": "cudnn"|"flash", "expandable": bool, "trace": bool}. One rank of `world` is played with torch's fake process group, in which
buffers are allocated and nothing is sent. Batches are prepared and sharded as transformers' Trainer and
accelerate do it. recipe hf: FSDP2's units as scripts/record_step.py makes them, gradients reduced in fp32;
trl: units and policy as accelerate 1.15 makes them, loss in chunks of 256 as TRL 1.13 computes it.
Random weights, fp32 shards, bf16 compute. Leaves NAME.json and, with "trace", NAME.trace.z and NAME.stacks.json.
"""
import json
import os
import sys
import traceback
import zlib

folder, name, cfg = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
DEVICE = os.environ.get("RECORD_DEVICE", "cuda")
if cfg.get("expandable"):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
import torch.nn.functional as F
import transformers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import set_rotate_method
from torch.utils.checkpoint import checkpoint

# hidden, layers, heads, heads of keys, intermediate, tied, vocabulary
MODELS = {
    "Qwen3-0.6B": ("qwen3", 1024, 28, 16, 8, 3072, True, 151936),
    "Qwen3-1.7B": ("qwen3", 2048, 28, 16, 8, 6144, True, 151936),
    "Qwen3-8B": ("qwen3", 4096, 36, 32, 8, 12288, False, 151936),
    "Llama-3.1-8B": ("llama", 4096, 32, 32, 8, 14336, False, 128256),
}


def config_of(model, layers):
    kind, hidden, depth, heads, kv_heads, inner, tied, vocabulary = MODELS[model]
    return transformers.AutoConfig.for_model(
        kind, hidden_size=hidden, num_hidden_layers=layers or depth, num_attention_heads=heads,
        num_key_value_heads=kv_heads, head_dim=128, intermediate_size=inner, tie_word_embeddings=tied,
        vocab_size=vocabulary, max_position_embeddings=1 << 22, use_cache=False)


def shard_as_record_step(model, mesh):
    policy = {"mesh": mesh,
              "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    for layer in model.model.layers:
        fully_shard(layer, **policy)
    if not model.config.tie_word_embeddings:
        fully_shard(model.model.embed_tokens, **policy)
        fully_shard(model.lm_head, **policy)
    fully_shard(model, **policy)


def shard_as_accelerate(model, mesh):
    kinds = dict.fromkeys(("param_dtype", "reduce_dtype", "output_dtype"), torch.bfloat16)
    policy = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(**kinds)}
    for layer in model.model.layers:
        fully_shard(layer, reshard_after_forward=True, **policy)
    tail = [model.model.norm, model.lm_head]
    if model.config.tie_word_embeddings:
        tail.insert(1, model.model.embed_tokens)
    else:
        fully_shard(model.model.embed_tokens, reshard_after_forward=True, **policy)
    fully_shard(tail, reshard_after_forward=False, **policy)
    fully_shard(model, **policy)


def build(config, mesh):
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    model = model.to(torch.float32)
    (shard_as_accelerate if cfg.get("recipe") == "trl" else shard_as_record_step)(model, mesh)
    model.to_empty(device=DEVICE)
    if config.tie_word_embeddings:
        model.tie_weights()
    with torch.no_grad():
        for p in model.parameters():
            p.to_local().normal_(0, 0.02)
    rotary = model.model.rotary_emb
    inverse, _ = rotary.compute_default_rope_parameters(config, DEVICE)
    rotary.inv_freq.copy_(inverse)
    return model


def make_batch(vocabulary):
    """What reaches training_step, and what it adds."""
    ids = torch.randint(0, vocabulary, (1, cfg["seq"]), device=DEVICE)
    batch = {"input_ids": ids, "labels": ids.clone(), "attention_mask": torch.ones_like(ids)}
    padded = F.pad(batch["labels"], (0, 1), value=-100)
    batch["shift_labels"] = padded[:, 1:].contiguous()
    batch["position_ids"] = torch.arange(cfg["seq"], device=DEVICE).expand(1, -1)
    return batch


def chunk_loss(hidden, weight, labels):
    logits = (hidden @ weight.to(hidden.dtype).t()).float()
    chances = F.log_softmax(logits, dim=-1)
    loss = F.nll_loss(chances, labels, ignore_index=-100, reduction="sum")
    valid = labels != -100
    correct = ((logits.argmax(dim=-1) == labels) & valid).sum().float()
    entropy = (-(chances.exp() * chances).sum(dim=-1) * valid).sum()
    return loss, correct, entropy


class Chunked(torch.nn.Module):
    """TRL's default loss until 1.13: valid tokens first, 256 at a time, each chunk under checkpoint."""

    def forward(self, model, batch):
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask", "position_ids")}
        states = model.model(**inputs, use_cache=False).last_hidden_state
        hidden, labels = states.reshape(-1, states.size(-1)), batch["shift_labels"].reshape(-1)
        valid = labels != -100
        count = valid.sum()
        order = valid.to(torch.int8).argsort(descending=True, stable=True)
        hidden, labels = hidden[order], labels[order]
        total = hidden.new_zeros((), dtype=torch.float32)
        for start in range(0, len(labels), 256):
            loss, _, _ = checkpoint(chunk_loss, hidden[start:start + 256], model.lm_head.weight,
                                    labels[start:start + 256], use_reentrant=False)
            total = total + loss
        return total / count


def chunked_forward(self, batch):
    return Chunked()(self, batch)


def peaks_now():
    stats = torch.cuda.memory_stats()
    peak = {key: stats[f"{key}_bytes.all.peak"] for key in ("allocated", "requested", "active", "reserved")}
    peak["end_allocated"] = stats["allocated_bytes.all.current"]
    peak["retries"] = stats["num_alloc_retries"]
    return peak


def one_step(model, optimizer, mesh, vocabulary):
    batch = make_batch(vocabulary)
    buffers = [batch[key] for key in ("input_ids", "labels", "shift_labels", "attention_mask", "position_ids")]
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[1] * 5, no_restore_buffers=set(buffers)):
        if cfg.get("loss") == "chunked256":
            loss = model(batch)
        else:
            loss = model(**batch).loss
        loss.backward()
    del loss, buffers, batch
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def choose_backend():
    """Without one torch chooses: cuDNN's on an H200."""
    backend = cfg.get("backend")
    if backend:
        torch.backends.cuda.enable_cudnn_sdp(backend == "cudnn")
        torch.backends.cuda.enable_flash_sdp(backend == "flash")
        torch.backends.cuda.enable_mem_efficient_sdp(False)


def main():
    from accelerate.big_modeling import _attach_context_parallel_hooks
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=cfg.get("rank", 0),
                                         world_size=cfg["world"])
    if DEVICE == "cuda":
        torch.cuda.set_device(0)
    mesh = init_device_mesh(DEVICE, (cfg["world"] // cfg["cp"], cfg["cp"]), mesh_dim_names=("dp_shard", "cp"))
    shards = mesh["dp_shard", "cp"]._flatten("dp_shard_cp")
    if DEVICE == "cuda":
        torch.cuda.set_device(0)
        torch.cuda.init()
    if cfg.get("trace"):
        torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=3000000)
    set_rotate_method(cfg.get("rotate", "allgather"))
    config = config_of(cfg["model"], cfg.get("layers"))
    model = build(config, shards)
    _attach_context_parallel_hooks(model)
    model.train()
    if cfg["ac"]:
        more = {"offload": True} if cfg.get("host_checkpoints") else {}
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False}, **more)
    if cfg.get("loss") == "chunked256":
        model.forward = chunked_forward.__get__(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True if cfg.get("fused") else None)
    torch.manual_seed(0)
    choose_backend()
    peaks = []
    for _ in range(3):
        if DEVICE == "cuda":
            torch.cuda.reset_peak_memory_stats()
        one_step(model, optimizer, mesh["cp"], config.vocab_size)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
            peaks.append(peaks_now())
    with open(os.path.join(folder, name + ".json"), "w") as out:
        json.dump({"cfg": cfg, "ok": True, "peaks": peaks, "transformers": transformers.__version__,
                   "torch": torch.__version__}, out)
    print(name, [(peak["allocated"], peak["reserved"]) for peak in peaks], flush=True)
    if cfg.get("trace"):
        write_trace()


def write_trace():
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    lines, stacks, known = [], [], {}
    for event in events:
        if "addr" not in event:
            continue
        lines.append(f"{event['action']} {event['addr']:x} {event['size']} {event['stream']}")
        frames = [f"{os.path.basename(f['filename'])}:{f['line']}:{f['name']}" for f in event.get("frames", [])[:24]]
        wanted = ("modeling_", "_attention.py", "record_", "_fsdp", "sdpa_")
        frames = [f for f in frames if f.startswith(wanted) or "integrations" in f][:3] or frames[:2]
        stacks.append(known.setdefault(" < ".join(frames), len(known)))
    with open(os.path.join(folder, name + ".trace.z"), "wb") as out:
        out.write(zlib.compress("\n".join(lines).encode() + b"\n", 9))
    with open(os.path.join(folder, name + ".stacks.json"), "w") as out:
        json.dump({"frames": list(known), "event": stacks}, out)


try:
    main()
except BaseException as problem:
    print(name, "FAILED", repr(problem)[:300], flush=True)
    traceback.print_exc()
    sys.exit(1)
