#!/usr/bin/env python3
"""Lays a predicted training step beside the operators that torch really runs for it, on the CPU.

Usage: scripts/compare_operators.py PROGRAM CONFIG.json [--context N] [--batch N] [--gpu GPU]
       [--precision bf16|autocast|fp16|fp32] [--attention sdpa|eager] [--math] [--checkpointing on|off]
       [--images N] [--image-size WxH] [--freeze none|vision]
       [--least BYTES]

Needs torch and transformers, no GPU. A small model with CONFIG's shapes runs one forward and one backward
pass; every storage that an operator makes is noted, and when it goes. The same step is predicted, and where
the two orders of taking and letting go differ, both sides are printed. Some differences are the CPU's and mean
nothing: kernels of attention and softmax have other scratch, and gradients that a GPU adds up in place are
added into new tensors (aten.add) while operators are watched.
"""
import argparse
import difflib
import json
import os
import subprocess
import tempfile

import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel

from watch import Watch


def images(config, ids, given, dtype):
    """Writes the images' tokens into ids; what else the model is given with them."""
    vision = config.vision_config
    if config.model_type == "gemma3":
        return gemma_images(config, ids, given, dtype)
    width, height = (int(side) // vision.patch_size for side in given.image_size.split("x"))
    tokens = height * width // vision.spatial_merge_size**2
    row = ([config.vision_start_token_id] + [config.image_token_id] * tokens + [config.vision_end_token_id]) * given.images
    ids.clamp_(max=config.image_token_id - 1)
    ids[:, :len(row)] = torch.tensor(row)
    values = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
    count = given.images * given.batch
    return {"pixel_values": torch.randn(count * height * width, values, dtype=dtype),
            "image_grid_thw": torch.tensor([[1, height, width]] * count),
            "mm_token_type_ids": (ids == config.image_token_id).int()}


def gemma_images(config, ids, given, dtype):
    side = config.vision_config.image_size
    row = ([config.boi_token_index] + [config.image_token_id] * config.mm_tokens_per_image
           + [config.eoi_token_index]) * given.images
    ids.clamp_(max=config.image_token_id - 1)
    ids[:, :len(row)] = torch.tensor(row)
    return {"pixel_values": torch.randn(given.images * given.batch, 3, side, side, dtype=dtype),
            "token_type_ids": (ids == config.image_token_id).long()}


def really(values, given):
    values = dict(values)
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    config.use_cache = False
    kind = transformers.AutoModelForImageTextToText if given.images else transformers.AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation=given.attention)
    model = model.to(torch.bfloat16 if given.precision == "bf16" else torch.float32).train()
    if given.checkpointing == "on":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    ids = torch.randint(0, config.get_text_config().vocab_size, (given.batch, given.context))
    pictures = images(config, ids, given, next(model.parameters()).dtype) if given.images else {}
    if given.freeze == "vision":
        for part in ("visual", "vision_tower", "multi_modal_projector"):
            if hasattr(model.model, part):
                getattr(model.model, part).requires_grad_(False)
    with Watch(p.untyped_storage()._cdata for p in model.parameters()) as watch:
        half = torch.float16 if given.precision == "fp16" else torch.bfloat16
        kernels = [SDPBackend.MATH] if given.math else [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
        with torch.autocast("cpu", half, enabled=given.precision in ("autocast", "fp16")), sdpa_kernel(kernels):
            loss = model(input_ids=ids, labels=ids, **pictures).loss
        forward = len(watch.events)
        loss.backward()
        del loss
    return watch.events, forward


def predicted(given):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        subprocess.run([given.program, "predict", "--model", given.config, "--gpu", given.gpu, "--trace", trace,
                        f"--context={given.context}", f"--batch={given.batch}", f"--precision={given.precision}",
                        f"--checkpointing={given.checkpointing}", f"--attention={given.attention}",
                        *([f"--images={given.images}", f"--image-size={given.image_size}", f"--freeze={given.freeze}"]
                          if given.images else [])],
                       check=False, stdout=subprocess.DEVNULL)
        with open(trace, encoding="ascii") as file:
            lines = [line.split() for line in file]
    kinds = {"alloc": "A", "free": "F", "free_completed": "F"}
    events = [(kinds[line[0]], int(line[2])) for line in lines if line[0] in kinds]
    ids = events.index(("A", 8 * given.context * given.batch))  # the last thing that building takes
    with open(given.config, encoding="utf-8") as file:
        inputs = (5 if json.load(file)["model_type"] == "gemma3" else 6) if given.images else 1
    return events[ids + inputs:]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("config", metavar="CONFIG.json")
    parser.add_argument("--context", type=int, default=384)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--gpu", default="H200", help="that the step is predicted on")
    parser.add_argument("--precision", choices=("bf16", "autocast", "fp16", "fp32"), default="bf16")
    parser.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    parser.add_argument("--math", action="store_true", help="torch's attention by its math kernel")
    parser.add_argument("--checkpointing", choices=("on", "off"), default="off")
    parser.add_argument("--images", type=int, default=0)
    parser.add_argument("--image-size", default="512x384")
    parser.add_argument("--freeze", choices=("none", "vision"), default="none")
    parser.add_argument("--least", type=int, default=20000, help="smaller storages are left out")
    return parser.parse_args()


def both(given):
    """What torch did, how much of it in the forward pass, and what was predicted, from `least` bytes on."""
    with open(given.config, encoding="utf-8") as file:
        events, forward = really(json.load(file), given)
    workspaces = (32 << 20, 1 << 20)  # cuBLAS's, which a CPU has none of
    real = [event for event in events if event[1] >= given.least]
    forward = sum(event[1] >= given.least for event in events[:forward])
    mine = [event for event in predicted(given) if event[1] >= given.least and event[1] not in workspaces]
    return real, forward, mine[: len(real)]


def main():
    given = arguments()
    real, _, mine = both(given)
    matcher = difflib.SequenceMatcher(None, [event[:2] for event in real], mine, autojunk=False)
    for kind, first, last, mine_first, mine_last in matcher.get_opcodes():
        if kind == "equal":
            print(f"  {last - first} the same")
            continue
        for event in real[first:last]:
            print("torch    ", *event)
        for event in mine[mine_first:mine_last]:
            print("predicted", *event)


if __name__ == "__main__":
    main()
