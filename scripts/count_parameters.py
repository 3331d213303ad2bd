#!/usr/bin/env python3
"""Counts the parameters of every catalogue model as transformers builds it.

Usage: scripts/count_parameters.py > tests/data/parameters.json

Needs torch, transformers and a C compiler; no weights and no network: the catalogue's rows are read as the compiler
sees them (each says what the model's config.json would), and models are built on the meta device, so what is checked
is the structure (which tensors a family has), by an independent implementation of it. The shapes themselves are
checked against published totals in tests/unit/test_model.c. Families whose code comes with their weights are left
out.
"""
import json
import os
import re
import subprocess
import sys

import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLES = ["catalog.c", "names.c", "further_names.c"]
TEXT = r'((?:"[^"]*"\s*)+)'
ROW = re.compile(r'\{\s*"([^"]+)",\s*"[^"]+",\s*(?:' + TEXT + r",\s*" + TEXT + r"|\.like = " + TEXT +
                 r",\s*\.config = " + TEXT + ")")
# What transformers has as another family; the values are what fathom takes for granted of the row's own.
AS = {"kimi_k2": ("deepseek_v3", {"n_group": 1, "topk_group": 1, "n_routed_experts": 384, "vocab_size": 163840,
                                  "first_k_dense_replace": 1})}
TOWERS = {"qwen3_vl", "qwen3_vl_moe", "qwen2_5_vl", "gemma3", "qwen3_5", "qwen3_5_moe"}


def joined(pieces):
    return "".join(re.findall(r'"([^"]*)"', pieces))


def value_of(text):
    return {"true": True, "false": False, "null": None}.get(text, float(text) if re.fullmatch(r"\d*\.\d+", text) else
                                                            int(text) if text.isdigit() else text)


def settings_of(text):
    return {key: value_of(value) for key, value in (word.split("=") for word in text.split())}


def rows():
    """(name, model_type, settings) of every row, variants with what they share."""
    found = {}
    for table in TABLES:
        source = os.path.join(ROOT, "core", "model", table)
        text = subprocess.run(["cc", "-E", "-P", "-I", ROOT, source], capture_output=True, text=True, check=True).stdout
        for name, family, config, like, own in ROW.findall(text[text.index("catalog_model", text.index("_models[]") - 40):]):
            if like:
                base = found[joined(like)]
                found[name] = (base[0], {**base[1], **settings_of(joined(own))})
            else:
                found[name] = (joined(family), settings_of(joined(config)))
    return found


def nested(settings):
    """Text and vision apart, "deepstack_at.0" as a list."""
    text, vision = {}, {}
    for key, value in settings.items():
        scope, key = (vision, key[len("vision."):]) if key.startswith("vision.") else (text, key)
        if "." not in key:
            scope[key] = value
        elif key.startswith("deepstack_at."):
            scope.setdefault("deepstack_visual_indexes", []).append(value)
    return text, vision


def named_for(family, text):
    """As the class calls them, where that is not what the row says."""
    if "intermediate_size" in text:
        text.update(n_inner=text["intermediate_size"], ffn_dim=text["intermediate_size"],
                    ffn_hidden_size=text["intermediate_size"])
    if family == "granitemoehybrid":
        text["layer_types"] = ["attention"] * text["num_hidden_layers"]
    if family in ("falcon", "gpt_neox", "opt", "bloom", "gptj", "gpt2", "gpt_bigcode", "mpt"):
        text.pop("head_dim", None)
    if family == "exaone4":
        text.pop("sliding_window", None)  # its class divides by the pattern of windows that there are none of
    if family == "nemotron":
        text.setdefault("num_key_value_heads", text["num_attention_heads"])
    return text


def build(family, settings):
    family, assumed = AS.get(family, (family, {}))
    text, vision = nested({**assumed, **settings})
    text = named_for(family, text)
    if family not in TOWERS:
        config = transformers.AutoConfig.for_model(family, **text)
        return transformers.AutoModelForCausalLM.from_config(config)
    if family == "gemma3":
        vision["vision_use_head"] = False
    config = transformers.AutoConfig.for_model(
        family, text_config=text, vision_config=vision, tie_word_embeddings=text.get("tie_word_embeddings", family == "gemma3"))
    return transformers.AutoModelForImageTextToText.from_config(config)


def count(family, settings):
    with torch.device("meta"):
        built = build(family, settings)
    built.tie_weights()
    buffers = sum(
        b.numel() for name, b in built.named_buffers() if name.endswith("e_score_correction_bias")
    )
    return {"parameters": sum(p.numel() for p in built.parameters()), "balancing_bias": buffers}


def main():
    result = {"transformers": transformers.__version__, "torch": torch.__version__, "models": {}}
    for name, (family, settings) in rows().items():
        if family not in AS and family not in transformers.CONFIG_MAPPING:
            continue
        result["models"][name] = count(family, settings)
        print(name, result["models"][name], file=sys.stderr)
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
