// More models by the names that people use, for an answer without a network: shapes that the
// catalogue's first table does not have, and the hub's other names for shapes that it has. A name
// with an owner in `also` is that owner's; one without is the row's own. Shapes are those of the
// published config.json files as we know them, not downloaded for this; what transformers builds of
// them is counted (tests/data/parameters.json), and many totals stand in test_model.c.
#include "core/model/model.h"

#define LLAMA2 "vocab_size=32000 max_position_embeddings=4096"
#define LLAMA1 "vocab_size=32000 max_position_embeddings=2048"
#define CODER  "vocab_size=32256 max_position_embeddings=16384"

const struct catalog_model named_models[] = {
    {"llama-7b", "huggyllama", .like = "Llama-2-7b", .config = "max_position_embeddings=2048",
     .also = "lmsys/vicuna-7b-v1.3 decapoda-research/llama-7b-hf", .nick = "LLaMA-1-7B"},
    {"llama-13b", "huggyllama", .like = "Llama-2-13b", .config = "max_position_embeddings=2048",
     .also = "lmsys/vicuna-13b-v1.3 decapoda-research/llama-13b-hf", .nick = "LLaMA-1-13B"},
    {"llama-30b", "huggyllama", "llama",
     "hidden_size=6656 num_hidden_layers=60 num_attention_heads=52 num_key_value_heads=52 "
     "intermediate_size=17920 " LLAMA1,
     .also = "lmsys/vicuna-33b-v1.3", .nick = "llama-33b LLaMA-1-30B"},
    {"llama-65b", "huggyllama", "llama",
     "hidden_size=8192 num_hidden_layers=80 num_attention_heads=64 num_key_value_heads=64 "
     "intermediate_size=22016 " LLAMA1,
     .nick = "LLaMA-1-65B"},
    {"vicuna-7b-v1.5", "lmsys", .like = "Llama-2-7b", .config = "", .nick = "vicuna-7b"},
    {"vicuna-13b-v1.5", "lmsys", .like = "Llama-2-13b", .config = "", .nick = "vicuna-13b"},
    {"Llama-2-70b", "meta-llama", "llama",
     "hidden_size=8192 num_hidden_layers=80 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=28672 " LLAMA2,
     .also = "Llama-2-70b-hf Llama-2-70b-chat-hf", .hub = "Llama-2-70b-hf"},
    {"Meta-Llama-3-8B", "meta-llama", .like = "Llama-3.1-8B",
     .config = "max_position_embeddings=8192",
     .also = "Meta-Llama-3-8B-Instruct OpenRLHF/Llama-3-8b-sft-mixture "
             "RLHFlow/LLaMA3-SFT princeton-nlp/Llama-3-Base-8B-SFT",
     .nick = "Llama-3-8B Llama-3-8B-Instruct"},
    {"Meta-Llama-3-70B", "meta-llama", .like = "Llama-3.1-70B",
     .config = "max_position_embeddings=8192", .also = "Meta-Llama-3-70B-Instruct",
     .nick = "Llama-3-70B Llama-3-70B-Instruct"},
    {"Llama-3.1-Nemotron-70B-Instruct", "nvidia", .like = "Llama-3.1-70B", .config = "",
     .also = "Llama-3.1-Nemotron-70B-Instruct-HF", .nick = "Nemotron-70B"},
    {"Llama-3.1-Tulu-3-8B", "allenai", .like = "Llama-3.1-8B", .config = "vocab_size=128264",
     .also = "Llama-3.1-Tulu-3-8B-SFT Llama-3.1-Tulu-3-8B-DPO"},

    {"CodeLlama-7b", "codellama", .like = "Llama-2-7b",
     .config = "vocab_size=32016 max_position_embeddings=16384",
     .also = "CodeLlama-7b-hf CodeLlama-7b-Instruct-hf", .hub = "CodeLlama-7b-hf"},
    {"CodeLlama-13b", "codellama", .like = "Llama-2-13b",
     .config = "vocab_size=32016 max_position_embeddings=16384",
     .also = "CodeLlama-13b-hf CodeLlama-13b-Instruct-hf", .hub = "CodeLlama-13b-hf"},
    {"CodeLlama-34b", "codellama", "llama",
     "hidden_size=8192 num_hidden_layers=48 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=22016 vocab_size=32000 max_position_embeddings=16384",
     .also = "CodeLlama-34b-hf CodeLlama-34b-Instruct-hf CodeLlama-34b-Python-hf "
             "Phind/Phind-CodeLlama-34B-v2",
     .hub = "CodeLlama-34b-hf"},
    {"CodeLlama-70b", "codellama", .like = "Llama-2-70b",
     .config = "vocab_size=32016 max_position_embeddings=16384",
     .also = "CodeLlama-70b-hf CodeLlama-70b-Python-hf", .hub = "CodeLlama-70b-hf"},
    {"SOLAR-10.7B-v1.0", "upstage", "llama",
     "hidden_size=4096 num_hidden_layers=48 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=14336 " LLAMA2,
     .also = "SOLAR-10.7B-Instruct-v1.0"},
    {"Sheared-LLaMA-1.3B", "princeton-nlp", "llama",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=5504 " LLAMA2},
    {"SmolLM-135M", "HuggingFaceTB", .like = "SmolLM2-135M",
     .config = "max_position_embeddings=2048", .also = "SmolLM-135M-Instruct"},
    {"SmolLM-360M", "HuggingFaceTB", .like = "SmolLM2-360M",
     .config = "max_position_embeddings=2048", .also = "SmolLM-360M-Instruct"},
    {"SmolLM-1.7B", "HuggingFaceTB", .like = "SmolLM2-1.7B",
     .config = "max_position_embeddings=2048", .also = "SmolLM-1.7B-Instruct"},

    {"DeepSeek-R1-Distill-Llama-8B", "deepseek-ai", .like = "Llama-3.1-8B", .config = ""},
    {"DeepSeek-R1-Distill-Llama-70B", "deepseek-ai", .like = "Llama-3.1-70B", .config = ""},
    {"DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-ai", .like = "Qwen2.5-1.5B",
     .config = "tie_word_embeddings=false", .also = "agentica-org/DeepScaleR-1.5B-Preview"},
    {"DeepSeek-R1-Distill-Qwen-7B", "deepseek-ai", .like = "Qwen2.5-7B", .config = ""},
    {"DeepSeek-R1-Distill-Qwen-14B", "deepseek-ai", .like = "Qwen2.5-14B", .config = ""},
    {"DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai", .like = "Qwen2.5-32B", .config = ""},
    {"DeepSeek-R1-0528-Qwen3-8B", "deepseek-ai", .like = "Qwen3-8B",
     .config = "max_position_embeddings=131072"},
    {"deepseek-coder-1.3b-base", "deepseek-ai", "llama",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=5504 " CODER,
     .also = "deepseek-coder-1.3b-instruct", .nick = "deepseek-coder-1.3b"},
    {"deepseek-coder-6.7b-base", "deepseek-ai", "llama",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=32 "
     "intermediate_size=11008 " CODER,
     .also = "deepseek-coder-6.7b-instruct", .nick = "deepseek-coder-6.7b"},
    {"deepseek-coder-33b-base", "deepseek-ai", "llama",
     "hidden_size=7168 num_hidden_layers=62 num_attention_heads=56 num_key_value_heads=8 "
     "intermediate_size=19200 " CODER,
     .also = "deepseek-coder-33b-instruct", .nick = "deepseek-coder-33b"},
    {"deepseek-llm-7b-base", "deepseek-ai", "llama",
     "hidden_size=4096 num_hidden_layers=30 num_attention_heads=32 num_key_value_heads=32 "
     "intermediate_size=11008 vocab_size=102400 max_position_embeddings=4096",
     .also = "deepseek-llm-7b-chat deepseek-math-7b-base deepseek-math-7b-instruct "
             "deepseek-math-7b-rl deepseek-coder-7b-base-v1.5 deepseek-coder-7b-instruct-v1.5",
     .nick = "deepseek-llm-7b deepseek-math-7b"},
    {"deepseek-llm-67b-base", "deepseek-ai", "llama",
     "hidden_size=8192 num_hidden_layers=95 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=22016 vocab_size=102400 max_position_embeddings=4096",
     .also = "deepseek-llm-67b-chat", .nick = "deepseek-llm-67b"},

    {"Yi-6B", "01-ai", "llama",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=4 "
     "intermediate_size=11008 vocab_size=64000 max_position_embeddings=4096",
     .also = "Yi-6B-Chat Yi-1.5-6B Yi-1.5-6B-Chat"},
    {"Yi-9B", "01-ai", "llama",
     "hidden_size=4096 num_hidden_layers=48 num_attention_heads=32 num_key_value_heads=4 "
     "intermediate_size=11008 vocab_size=64000 max_position_embeddings=4096",
     .also = "Yi-1.5-9B Yi-1.5-9B-Chat"},
    {"Yi-34B", "01-ai", "llama",
     "hidden_size=7168 num_hidden_layers=60 num_attention_heads=56 num_key_value_heads=8 "
     "intermediate_size=20480 vocab_size=64000 max_position_embeddings=4096",
     .also = "Yi-34B-Chat Yi-1.5-34B Yi-1.5-34B-Chat"},
    {"Yi-34B-200K", "01-ai", .like = "Yi-34B", .config = "max_position_embeddings=200000"},

    {"Qwen1.5-0.5B", "Qwen", "qwen2",
     "hidden_size=1024 num_hidden_layers=24 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=2816 tie_word_embeddings=true max_position_embeddings=32768",
     .also = "Qwen1.5-0.5B-Chat"},
    {"Qwen1.5-1.8B", "Qwen", "qwen2",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=5504 max_position_embeddings=32768",
     .also = "Qwen1.5-1.8B-Chat"},
    {"Qwen1.5-4B", "Qwen", "qwen2",
     "hidden_size=2560 num_hidden_layers=40 num_attention_heads=20 num_key_value_heads=20 "
     "intermediate_size=6912 max_position_embeddings=32768",
     .also = "Qwen1.5-4B-Chat"},
    {"Qwen1.5-7B", "Qwen", "qwen2",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=32 "
     "intermediate_size=11008 max_position_embeddings=32768",
     .also = "Qwen1.5-7B-Chat"},
    {"Qwen1.5-14B", "Qwen", "qwen2",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 num_key_value_heads=40 "
     "intermediate_size=13696 vocab_size=152064 max_position_embeddings=32768",
     .also = "Qwen1.5-14B-Chat"},
    {"Qwen1.5-32B", "Qwen", "qwen2",
     "hidden_size=5120 num_hidden_layers=64 num_attention_heads=40 num_key_value_heads=8 "
     "intermediate_size=27392 vocab_size=152064 max_position_embeddings=32768",
     .also = "Qwen1.5-32B-Chat"},
    {"Qwen1.5-72B", "Qwen", "qwen2",
     "hidden_size=8192 num_hidden_layers=80 num_attention_heads=64 num_key_value_heads=64 "
     "intermediate_size=24576 vocab_size=152064 max_position_embeddings=32768",
     .also = "Qwen1.5-72B-Chat"},
    {"Qwen1.5-110B", "Qwen", "qwen2",
     "hidden_size=8192 num_hidden_layers=80 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=49152 vocab_size=152064 max_position_embeddings=32768",
     .also = "Qwen1.5-110B-Chat"},
    {"Qwen2-0.5B", "Qwen", .like = "Qwen2.5-0.5B", .config = "max_position_embeddings=131072"},
    {"Qwen2-0.5B-Instruct", "Qwen", .like = "Qwen2.5-0.5B", .config = ""},
    {"Qwen2-1.5B", "Qwen", .like = "Qwen2.5-1.5B", .config = ""},
    {"Qwen2-1.5B-Instruct", "Qwen", .like = "Qwen2.5-1.5B",
     .config = "max_position_embeddings=32768"},
    {"Qwen2-7B", "Qwen", .like = "Qwen2.5-7B", .config = ""},
    {"Qwen2-7B-Instruct", "Qwen", .like = "Qwen2.5-7B", .config = "max_position_embeddings=32768"},
    {"Qwen2-72B", "Qwen", .like = "Qwen2.5-72B", .config = ""},
    {"Qwen2-72B-Instruct", "Qwen", .like = "Qwen2.5-72B",
     .config = "max_position_embeddings=32768"},
    {"Qwen2.5-Math-1.5B", "Qwen", .like = "Qwen2.5-1.5B", .config = "max_position_embeddings=4096",
     .also = "Qwen2.5-Math-1.5B-Instruct"},
    {"Qwen2.5-Math-7B", "Qwen", .like = "Qwen2.5-7B", .config = "max_position_embeddings=4096",
     .also = "Qwen2.5-Math-7B-Instruct"},
    {"Qwen2.5-Math-72B", "Qwen", .like = "Qwen2.5-72B", .config = "max_position_embeddings=4096",
     .also = "Qwen2.5-Math-72B-Instruct"},
    {"Qwen2.5-Coder-0.5B", "Qwen", .like = "Qwen2.5-0.5B", .config = "",
     .also = "Qwen2.5-Coder-0.5B-Instruct"},
    {"Qwen2.5-Coder-1.5B", "Qwen", .like = "Qwen2.5-1.5B",
     .config = "max_position_embeddings=32768", .also = "Qwen2.5-Coder-1.5B-Instruct"},
    {"Qwen2.5-Coder-3B", "Qwen", .like = "Qwen2.5-3B", .config = "",
     .also = "Qwen2.5-Coder-3B-Instruct"},
    {"Qwen2.5-Coder-7B", "Qwen", .like = "Qwen2.5-7B", .config = "max_position_embeddings=32768",
     .also = "Qwen2.5-Coder-7B-Instruct"},
    {"Qwen2.5-Coder-14B", "Qwen", .like = "Qwen2.5-14B", .config = "max_position_embeddings=32768",
     .also = "Qwen2.5-Coder-14B-Instruct"},
    {"Qwen2.5-Coder-32B", "Qwen", .like = "Qwen2.5-32B", .config = "max_position_embeddings=32768",
     .also = "Qwen2.5-Coder-32B-Instruct"},
    {"Qwen2.5-7B-Instruct-1M", "Qwen", .like = "Qwen2.5-7B",
     .config = "max_position_embeddings=1010000"},
    {"Qwen2.5-14B-Instruct-1M", "Qwen", .like = "Qwen2.5-14B",
     .config = "max_position_embeddings=1010000"},
    {"QwQ-32B", "Qwen", .like = "Qwen2.5-32B", .config = "max_position_embeddings=40960"},
    {"QwQ-32B-Preview", "Qwen", .like = "Qwen2.5-32B", .config = "max_position_embeddings=32768"},
    {"s1.1-32B", "simplescaling", .like = "Qwen2.5-32B", .config = "max_position_embeddings=32768",
     .also = "s1-32B"},
    {"Qwen3-Coder-30B-A3B-Instruct", "Qwen", .like = "Qwen3-30B-A3B",
     .config = "max_position_embeddings=262144"},
    {"Qwen3-Coder-480B-A35B-Instruct", "Qwen", "qwen3_moe",
     "hidden_size=6144 num_hidden_layers=62 num_attention_heads=96 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=8192 moe_intermediate_size=2560 num_experts=160 "
     "num_experts_per_tok=8 max_position_embeddings=262144"},

    {"zephyr-7b-beta", "HuggingFaceH4", .like = "Mistral-7B-v0.3",
     .config = "vocab_size=32000 sliding_window=4096",
     .also = "zephyr-7b-alpha alignment-handbook/zephyr-7b-sft-full "
             "alignment-handbook/zephyr-7b-dpo-full HuggingFaceH4/mistral-7b-sft-beta"},
    {"Mistral-7B-v0.2", "mistral-community", .like = "Mistral-7B-v0.3",
     .config = "vocab_size=32000"},
    {"Mistral-Small-Instruct-2409", "mistralai", "mistral",
     "hidden_size=6144 num_hidden_layers=56 num_attention_heads=48 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=16384 vocab_size=32768 max_position_embeddings=32768 "
     "sliding_window=null",
     .also = "Codestral-22B-v0.1"},
    {"Mistral-Large-Instruct-2407", "mistralai", "mistral",
     "hidden_size=12288 num_hidden_layers=88 num_attention_heads=96 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=28672 vocab_size=32768 max_position_embeddings=131072 "
     "sliding_window=null",
     .nick = "Mistral-Large"},
    {"Mixtral-8x22B-v0.1", "mistralai", "mixtral",
     "hidden_size=6144 num_hidden_layers=56 num_attention_heads=48 num_key_value_heads=8 "
     "intermediate_size=16384 vocab_size=32000 max_position_embeddings=65536",
     .nick = "Mixtral-8x22B"},
    {"Mixtral-8x22B-Instruct-v0.1", "mistralai", .like = "Mixtral-8x22B-v0.1",
     .config = "vocab_size=32768"},
    {"Phi-3-medium-128k-instruct", "microsoft", .like = "Phi-3-medium-4k-instruct",
     .config = "max_position_embeddings=131072 sliding_window=131072"},
    {"phi-4-reasoning", "microsoft", .like = "phi-4", .config = "max_position_embeddings=32768",
     .also = "phi-4-reasoning-plus"},
    {"codegemma-7b", "google", .like = "gemma-7b", .config = "", .also = "codegemma-7b-it"},
    {"granite-3.1-2b-instruct", "ibm-granite", .like = "granite-3.3-2b-instruct",
     .config = "vocab_size=49155", .also = "granite-3.1-2b-base"},
    {"granite-3.1-8b-instruct", "ibm-granite", .like = "granite-3.3-8b-instruct",
     .config = "vocab_size=49155", .also = "granite-3.1-8b-base"},
    {"Qwen1.5-MoE-A2.7B", "Qwen", "qwen2_moe",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=5632 max_position_embeddings=8192",
     .also = "Qwen1.5-MoE-A2.7B-Chat"},
    {"DeepSeek-V2-Lite", "deepseek-ai", "deepseek_v2",
     "hidden_size=2048 num_hidden_layers=27 num_attention_heads=16 intermediate_size=10944 "
     "moe_intermediate_size=1408 num_experts_per_tok=6 first_k_dense_replace=1 q_lora_rank=null "
     "max_position_embeddings=163840",
     .also = "DeepSeek-V2-Lite-Chat DeepSeek-Coder-V2-Lite-Base DeepSeek-Coder-V2-Lite-Instruct"},
    {"Moonlight-16B-A3B", "moonshotai", "deepseek_v3",
     "hidden_size=2048 num_hidden_layers=27 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=11264 moe_intermediate_size=1408 n_routed_experts=64 n_shared_experts=2 "
     "num_experts_per_tok=6 n_group=1 topk_group=1 first_k_dense_replace=1 q_lora_rank=null "
     "vocab_size=163840 max_position_embeddings=8192",
     .also = "Moonlight-16B-A3B-Instruct", .nick = "Moonlight-16B Moonlight"},
};

const ptrdiff_t named_model_count = COUNT_OF(named_models);

// Pixtral's tower (24 layers of 1024, gated MLPs of 4096, a merger of 4 patches) and MoonViT (27
// layers of 1152, MLPs of 4304, 64 x 64 positions, a projector over 4 patches), as their
// config.json have them.
#define PIXTRAL_24B                                                                          \
    .like = "Mistral-Small-24B", .positions = 131072, .whole = 4847616, .shared = 434110464, \
    .image_tokens = 3025, .patch_width = 4 * 1024 + 2 * 4096, .patches = 4

// The same tower of patches of 16 x 16 without a merger, under Mistral-Nemo.
#define PIXTRAL_12B                                                                               \
    .like = "Mistral-Nemo-Base-2407", .positions = 1024000, .whole = 846848, .shared = 434110464, \
    .image_tokens = 4096, .patch_width = 4 * 1024 + 2 * 4096, .patches = 1

const struct served_model served_models[] = {
    {"Pixtral-12B-2409", "mistralai", PIXTRAL_12B},
    {"pixtral-12b", "mistral-community", PIXTRAL_12B},
    {"Mistral-Small-3.1-24B-Instruct-2503", "mistralai", PIXTRAL_24B},
    {"Mistral-Small-3.1-24B-Base-2503", "mistralai", PIXTRAL_24B},
    {"Mistral-Small-3.2-24B-Instruct-2506", "mistralai", PIXTRAL_24B},
    {"Kimi-VL-A3B-Instruct", "moonshotai", .like = "Moonlight-16B-A3B", .positions = 131072,
     .whole = 447543248, .image_tokens = 4096, .patch_width = 4 * 1152 + 4304, .patches = 4},
    {"Kimi-VL-A3B-Thinking", "moonshotai", .like = "Moonlight-16B-A3B", .positions = 131072,
     .whole = 447543248, .image_tokens = 4096, .patch_width = 4 * 1152 + 4304, .patches = 4},
};

const ptrdiff_t served_model_count = COUNT_OF(served_models);

const struct packing packings[] = {
    {"-unsloth-bnb-4bit", "bitsandbytes' nf4", true, "bnb-4bit"},
    {"-bnb-4bit", "bitsandbytes' nf4", true, "bnb-4bit"},
    {"-bnb-8bit", "bitsandbytes' int8", .served = "bnb-8bit"},
    {"-BNB-NF4", "bitsandbytes' nf4", true, "bnb-4bit"},
    {"-AQLM", "AQLM"},
    {"-HQQ", "HQQ"},
    {"-HIGGS", "HIGGS"},
    {"-SpQR", "SpQR"},
    {"-VPTQ", "VPTQ"},
    {"-woft", "VPTQ"}, // as VPTQ-community ends its names
    {"-EXL2", "EXL2"},
    {"-EXL3", "EXL3"},
    {"-torchao", "torchao"},
    {"-AutoRound", "AutoRound"},
    {"-ov", "OpenVINO"},
    {"-GPTQ-Int4", "GPTQ", .served = "gptq"},
    {"-GPTQ-Int8", "GPTQ", .served = "gptq-int8"},
    {"-GPTQ", "GPTQ", .served = "gptq"},
    {"-AWQ-INT4", "AWQ", .served = "awq"},
    {"-AWQ", "AWQ", .served = "awq"},
    {"-quantized.w8a8", "int8", .served = "w8a8"},
    {"-quantized.w8a16", "int8", .served = "w8a8"},
    {"-quantized.w4a16", "int4", .served = "w4a16"},
    {"-W4A16", "int4", .served = "w4a16"},
    {"-W8A8", "int8", .served = "w8a8"},
    {"-INT4", "int4", .served = "w4a16"},
    {"-INT8", "int8", .served = "w8a8"},
    {"-FP8-dynamic", "FP8", .served = "fp8"},
    {"-FP8-KV", "FP8", .served = "fp8"},
    {"-FP8", "FP8", .served = "fp8"},
    {"-NVFP4", "NVFP4", .served = "nvfp4"},
    {"-NVFP4A16", "NVFP4", .served = "nvfp4"},
    {"-FP4", "NVFP4", .served = "nvfp4"},
    {"-GGUF", "GGUF", .served = "gguf"},
    {"-4bit", "bitsandbytes' nf4", true, "bnb-4bit"},
    {"-8bit", "int8", .served = "w8a8"},
};

const ptrdiff_t packing_count = COUNT_OF(packings);
