#!/usr/bin/env python3
"""Counts the parameters of every catalogue model as transformers builds it.

Usage: fathom models --json | scripts/count_parameters.py > tests/data/parameters.json

Needs torch and transformers; no weights and no network: models are built on the meta device from the
shapes fathom prints, so what is checked is the structure (which tensors a family has), by an
independent implementation of it. The shapes themselves are checked against published totals in
tests/unit/test_model.c.
"""
import json
import sys

import torch
import transformers


def text_config(model):
    config = {
        "hidden_size": model["hidden_size"],
        "num_hidden_layers": model["layers"],
        "num_attention_heads": model["heads"],
        "num_key_value_heads": model["kv_heads"],
        "head_dim": model.get("head_dim"),
        "intermediate_size": model["intermediate_size"],
        "vocab_size": model["vocab_size"],
        "tie_word_embeddings": model["tied"],
        "max_position_embeddings": model["max_position_embeddings"],
        # as other classes call it
        "n_inner": model["intermediate_size"],
        "ffn_dim": model["intermediate_size"],
        "ffn_hidden_size": model["intermediate_size"],
        "use_qk_norm": "q/k norm" in model["features"],
    }
    if model["family"] == "falcon":
        config.update(num_kv_heads=model["kv_heads"], new_decoder_architecture=model["kv_heads"] > 1)
        del config["head_dim"]
    experts = model.get("experts")
    if experts:
        config.update(
            num_experts=experts["count"],
            num_local_experts=experts["count"],
            n_routed_experts=experts["count"],
            num_experts_per_tok=experts["per_token"],
            moe_intermediate_size=experts["intermediate_size"],
        )
        if model["family"] in ("deepseek_v2", "deepseek_v3"):
            config["first_k_dense_replace"] = model["layers"] - experts["layers"]
            config["n_shared_experts"] = experts["shared_intermediate_size"] // experts["intermediate_size"]
    latent = model.get("latent_attention")
    if latent:
        config.update(
            q_lora_rank=latent["query_rank"] or None,
            kv_lora_rank=latent["kv_rank"],
            qk_nope_head_dim=latent["nope_head_dim"],
            qk_rope_head_dim=latent["rope_head_dim"],
            v_head_dim=latent["value_head_dim"],
        )
        del config["head_dim"]
    return config


def vision_config(model):
    vision = model["vision"]
    if model["family"].startswith("gemma3"):
        side = round(vision["positions"] ** 0.5)
        return {
            "hidden_size": vision["hidden_size"],
            "intermediate_size": vision["intermediate_size"],
            "num_hidden_layers": vision["depth"],
            "num_attention_heads": vision["heads"],
            "patch_size": vision["patch_size"],
            "image_size": side * vision["patch_size"],
            "vision_use_head": False,
        }
    step = vision["depth"] // 4
    return {
        "depth": vision["depth"],
        "hidden_size": vision["hidden_size"],
        "intermediate_size": vision["intermediate_size"],
        "num_heads": vision["heads"],
        "patch_size": vision["patch_size"],
        "out_hidden_size": vision["out_hidden_size"],
        "num_position_embeddings": vision["positions"],
        "deepstack_visual_indexes": [step, 2 * step, 3 * step],
    }


def build(model):
    family = model["family"]
    text = text_config(model)
    if "vision" not in model:
        config = transformers.AutoConfig.for_model(family, **text)
        return transformers.AutoModelForCausalLM.from_config(config)
    config = transformers.AutoConfig.for_model(
        family,
        text_config=text,
        vision_config=vision_config(model),
        tie_word_embeddings=model["tied"],
    )
    return transformers.AutoModelForImageTextToText.from_config(config)


def count(model):
    with torch.device("meta"):
        built = build(model)
    built.tie_weights()
    buffers = sum(
        b.numel() for name, b in built.named_buffers() if name.endswith("e_score_correction_bias")
    )
    return {"parameters": sum(p.numel() for p in built.parameters()), "balancing_bias": buffers}


def main():
    catalogue = json.load(sys.stdin)["models"]
    result = {"transformers": transformers.__version__, "torch": torch.__version__, "models": {}}
    for row in catalogue:
        result["models"][row["name"]] = count(row["model"])
        print(row["name"], result["models"][row["name"]], file=sys.stderr)
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
