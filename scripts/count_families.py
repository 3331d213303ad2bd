#!/usr/bin/env python3
"""Counts the parameters of families as transformers builds them from its own configuration classes.

Usage: scripts/count_families.py > tests/data/families.json

Needs torch and transformers; no weights and no network. Each case is a configuration as config.json would have it,
the class's defaults but for what is named here, and its parameters on the meta device; unit.model reads the same.
"""
import json

import torch
import transformers

CASES = {
    "glm": {}, "glm4": {}, "hunyuan_v1_dense": {"head_dim": 128}, "ernie4_5": {}, "ernie4_5 biased": {"use_bias": True},
    "seed_oss": {}, "seed_oss otherwise": {"attention_bias": False, "attention_out_bias": True, "mlp_bias": True},
    "exaone4": {}, "ministral": {"head_dim": 128}, "ministral3": {}, "cohere": {},
    "cohere normed": {"use_qk_norm": True, "num_key_value_heads": 8, "attention_bias": True},
    "cohere2": {}, "nemotron": {"num_key_value_heads": 8},
    "nemotron biased": {"num_key_value_heads": 8, "attention_bias": True, "mlp_bias": True},
    "arcee": {}, "starcoder2": {}, "starcoder2 bare": {"use_bias": False},
    "stablelm": {}, "stablelm biased": {"use_qkv_bias": True}, "phi": {},
    "gpt2": {}, "gpt2 narrow": {"n_inner": 1000}, "gpt_bigcode": {}, "gpt_bigcode multi-head": {"multi_query": False},
    "opt": {}, "opt bare": {"enable_bias": False}, "gptj": {}, "bloom": {"hidden_size": 1024, "n_layer": 24, "n_head": 16},
    "falcon": {}, "falcon grouped": {"new_decoder_architecture": True, "num_kv_heads": 8, "num_attention_heads": 128,
                                     "hidden_size": 8192, "num_hidden_layers": 60},
    "falcon one norm": {"new_decoder_architecture": True, "num_kv_heads": 8, "num_attention_heads": 32,
                        "hidden_size": 4096, "num_ln_in_parallel_attn": 1},
    "falcon serial": {"parallel_attn": False, "multi_query": False, "bias": True, "hidden_size": 2048,
                      "num_attention_heads": 32},
    "mpt": {"d_model": 4096, "n_heads": 32, "n_layers": 32},
    **{name: {} for name in "deepseek_v2 gemma gemma2 gemma3 gemma3_text gpt-sw3 gpt_oss granite granitemoe "
       "granitemoeshared llama llama4_text mistral mixtral olmo2 olmo3 olmoe phi3 qwen2 qwen3 qwen3_5_text "
       "qwen3_moe qwen3_next smollm3".split()},
    "llama4": {"text_config": {"num_hidden_layers": 8}},
    "gpt_neox": {}, "gpt_neox bare": {"attention_bias": False, "use_parallel_residual": False},
}
UNREAD = ("output_hidden_states", "return_dict", "chunk_size_feed_forward", "is_encoder_decoder", "id2label", "label2id",
          "problem_type", "output_attentions", "transformers_version", "architectures", "dtype", "moe_layers",
          "no_rope_layers")


def plain(values):
    """What is a number, a word, a list of words or a table of such."""
    return {key: plain(value) if isinstance(value, dict) else value for key, value in values.items()
            if key not in UNREAD and not key.startswith("_")
            and (value is not None or key == "num_experts_per_tok")}    # DeepSeek-V2's class has none


def main():
    result = {"transformers": transformers.__version__, "torch": torch.__version__, "families": {}}
    for name, values in CASES.items():
        config = transformers.AutoConfig.for_model(name.split()[0], **values)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        model.tie_weights()
        result["families"][name] = {"config": plain(config.to_dict()),
                                    "parameters": sum(p.numel() for p in model.parameters())}
    print(json.dumps(result, indent=1))


main()
