#!/usr/bin/env python3
"""Trains with adapters, a quantised base, an 8-bit optimizer or a fused loss on a real GPU for three steps
and writes down what its memory did.

Usage: scripts/record_adapters.py OUT-FOLDER NAME 'JSON'

JSON is a `cfg` as in tests/runs/h200_lora.jsonl: {"model": a name of MODELS, "layers": N, "tied": bool,
"strategy": "single"|"ddp", "precision": "bf16"|"autocast", "seq": N, "batch": N, "accum": N, "ac": bool,
"lora": rank, "targets": "all-linear"|"q,v"…, "quantize": "nf4", "optimizer": "adamw"|"adamw-fused"|
"adamw-8bit"|"adamw-8bit-hf", "loss": "hf"|"liger", "expandable": bool, "trace": bool}. Random weights.
Adapters are made as TRL 1.16 makes them: peft's default types (fp32), but bf16 over a quantised base; the
embedding's output requires a gradient under checkpointing; prepare_model_for_kbit_training is not called.
Leaves NAME.json (a line of tests/runs) and, with "trace", NAME.trace.z (the allocator's history) and
NAME.stacks.json (who allocated). Needs torch, transformers, and peft, bitsandbytes or liger_kernel as asked.
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

QWEN3 = dict(model_type="qwen3", vocab_size=151936, head_dim=128, num_key_value_heads=8, tie_word_embeddings=True)
MODELS = {
    "Qwen3-0.6B": dict(QWEN3, hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, intermediate_size=3072),
    "Qwen3-1.7B": dict(QWEN3, hidden_size=2048, num_hidden_layers=28, num_attention_heads=16, intermediate_size=6144),
    "Qwen3-4B": dict(QWEN3, hidden_size=2560, num_hidden_layers=36, num_attention_heads=32, intermediate_size=9728),
    "Qwen2.5-0.5B": dict(model_type="qwen2", vocab_size=151936, hidden_size=896, num_hidden_layers=24,
                         num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864,
                         tie_word_embeddings=True),
    "Llama-3.1-8B": dict(model_type="llama", vocab_size=128256, hidden_size=4096, num_hidden_layers=32,
                         num_attention_heads=32, num_key_value_heads=8, intermediate_size=14336,
                         tie_word_embeddings=False, head_dim=128),
}
DEVICE = os.environ.get("RECORD_DEVICE", "cuda")  # cpu: to see that a configuration runs at all


def config_of():
    values = dict(MODELS[cfg["model"]])
    if "layers" in cfg:
        values["num_hidden_layers"] = cfg["layers"]
    if "tied" in cfg:
        values["tie_word_embeddings"] = cfg["tied"]
    for key, value in json.loads(os.environ.get("RECORD_MODEL", "{}")).items():
        values[key] = value
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    config.use_cache = False
    return config


def quantise(model):
    """As transformers' loader does: each weight comes to the card in bf16 and is packed there."""
    import bitsandbytes
    from transformers.integrations.bitsandbytes import replace_with_bnb_linear

    quantisation = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                                                   bnb_4bit_use_double_quant=True,
                                                   bnb_4bit_compute_dtype=torch.bfloat16)
    model = replace_with_bnb_linear(model, ["lm_head"], quantisation)
    model.is_loaded_in_4bit = True
    for path, module in model.named_modules():
        if path == "lm_head" and model.config.tie_word_embeddings:
            continue
        if not isinstance(module, bitsandbytes.nn.Linear4bit):
            module.to_empty(device=DEVICE, recurse=False)
            continue
        weight = torch.empty(module.weight.shape, dtype=torch.bfloat16, device=DEVICE).normal_(0, 0.02)
        module.weight = bitsandbytes.nn.Params4bit(weight, requires_grad=False, quant_type="nf4",
                                                   compress_statistics=True, module=module).to(DEVICE)
        del weight
        if module.bias is not None:
            module.bias = torch.nn.Parameter(torch.zeros_like(module.bias, device=DEVICE, dtype=torch.bfloat16), False)
    return model


def build(config):
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    model = model.to(torch.bfloat16 if cfg["precision"] == "bf16" else torch.float32)
    head = model.lm_head
    if config.tie_word_embeddings:  # as from_pretrained does, give a tied head no memory of its own
        model.lm_head = torch.nn.Identity()
    model = quantise(model) if cfg.get("quantize") == "nf4" else model.to_empty(device=DEVICE)
    if config.tie_word_embeddings:
        head.weight = model.model.embed_tokens.weight
        model.lm_head = head
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.normal_(0, 0.02)
    rotary = model.model.rotary_emb
    inverse, _ = rotary.compute_default_rope_parameters(config, DEVICE)
    rotary.inv_freq.copy_(inverse)
    return model


def adapt(model):
    import peft

    targets = cfg.get("targets", "all-linear")
    if targets != "all-linear":
        targets = [f"{target}_proj" for target in targets.split(",")]
    adapter = peft.LoraConfig(r=cfg["lora"], lora_alpha=16, target_modules=targets, task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, adapter)
    if cfg["ac"]:
        model.enable_input_require_grads()
    if cfg.get("quantize"):
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(torch.bfloat16)
    return model


def optimizer_for(model):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    kind = cfg.get("optimizer", "adamw")
    if not kind.startswith("adamw-8bit"):
        return torch.optim.AdamW(trained, lr=1e-5, fused=True if kind == "adamw-fused" else None)
    import bitsandbytes

    optimizer = bitsandbytes.optim.AdamW8bit(trained, lr=1e-5)
    if kind == "adamw-8bit-hf":  # transformers' Trainer keeps embeddings' states in 32 bits
        manager = bitsandbytes.optim.GlobalOptimManager.get_instance()
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                manager.register_module_override(module, "weight", {"optim_bits": 32})
    return optimizer


def use_liger(model_type):
    import importlib

    path = f"liger_kernel.transformers.model.{model_type}"
    modeling = importlib.import_module(f"transformers.models.{model_type}.modeling_{model_type}")
    classes = {"qwen3": "Qwen3ForCausalLM", "qwen2": "Qwen2ForCausalLM", "llama": "LlamaForCausalLM"}
    getattr(modeling, classes[model_type]).forward = importlib.import_module(path).lce_forward


def write_trace():
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    lines, stacks, known = [], [], {}
    for event in events:
        if "addr" not in event:
            continue
        lines.append(f"{event['action']} {event['addr']:x} {event['size']} {event['stream']}")
        frames = [f"{os.path.basename(f['filename'])}:{f['line']}:{f['name']}" for f in event.get("frames", [])[:20]]
        stacks.append(known.setdefault(" < ".join(frames[:6]), len(known)))
    with open(os.path.join(folder, name + ".trace.z"), "wb") as out:
        out.write(zlib.compress("\n".join(lines).encode() + b"\n", 9))
    with open(os.path.join(folder, name + ".stacks.json"), "w") as out:
        json.dump({"frames": list(known), "event": stacks}, out)


def main():
    if cfg["strategy"] == "ddp":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + os.getpid() % 1000))
        torch.distributed.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda:0"))
    config = config_of()
    if cfg.get("loss") == "liger":
        use_liger(config.model_type)
    if DEVICE == "cuda" and cfg.get("trace"):
        torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=3000000)
    model = build(config)
    if cfg.get("lora"):
        model = adapt(model)
    model.train()
    if cfg["ac"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = optimizer_for(model)
    if cfg["strategy"] == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    torch.manual_seed(0)
    ids = torch.randint(0, config.vocab_size, (cfg.get("batch", 1), cfg["seq"]), device=DEVICE)
    peaks = []
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats() if DEVICE == "cuda" else None
        for _ in range(cfg.get("accum", 1)):
            with torch.autocast(DEVICE, torch.bfloat16, enabled=cfg["precision"] == "autocast"):
                loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            del loss
        torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if DEVICE != "cuda":
            continue
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        peaks.append({key: stats[f"{key}_bytes.all.peak"] for key in ("allocated", "requested", "active", "reserved")})
        peaks[-1]["end_allocated"] = stats["allocated_bytes.all.current"]
        peaks[-1]["retries"] = stats["num_alloc_retries"]
    with open(os.path.join(folder, name + ".json"), "w") as out:
        json.dump({"cfg": cfg, "ok": True, "peaks": peaks}, out)
        out.write("\n")
    print(name, [(p["allocated"], p["reserved"], p["end_allocated"]) for p in peaks])
    if DEVICE == "cuda" and cfg.get("trace"):
        write_trace()


main()
