// The models known by name. A row holds what the model's config.json says, so that it takes the
// same road as a file would. Every total that follows from these rows is compared with the
// parameters that transformers itself creates (tests/data/parameters.json).
#include "core/model/model.h"

#define QWEN3_VISION_24                                                                          \
    " vision.depth=24 vision.hidden_size=1024 vision.intermediate_size=4096 vision.num_heads=16" \
    " vision.deepstack_at.0=5 vision.deepstack_at.1=11 vision.deepstack_at.2=17"
#define QWEN3_VISION_27 \
    " vision.depth=27 vision.hidden_size=1152 vision.intermediate_size=4304 vision.num_heads=16"
#define SIGLIP                                                                           \
    " vision.num_hidden_layers=27 vision.hidden_size=1152 vision.intermediate_size=4304" \
    " vision.num_attention_heads=16 vision.patch_size=14 vision.image_size=896"          \
    " vision.vision_use_head=false"                                                      \
    " rope_scaling.rope_type=linear rope_scaling.factor=8"

// The cards of Qwen3 (huggingface.co/Qwen/Qwen3-8B and others, 2025): "Context Length: 32,768
// natively and 131,072 tokens with YaRN", validated by the makers; the 40960 positions are 32768
// for the answer and 8192 for the prompt. Those of 0.6B and 1.7B say 32,768 only.
#define QWEN3_NATIVE       .native = {32768, 131072}
#define QWEN3_SMALL_NATIVE .native = {32768}
// Qwen2.5-7B-Instruct and larger: config.json "is set for context length up to 32,768 tokens", the
// card says "Full 131,072 tokens", with YaRN.
#define QWEN25_NATIVE .native = {.yarn_length = 131072}

static const struct catalog_model catalog_models[] = {
    {"Qwen3-0.6B", "Qwen", "qwen3",
     "hidden_size=1024 num_hidden_layers=28 num_attention_heads=16 num_key_value_heads=8 "
     "intermediate_size=3072 tie_word_embeddings=true max_position_embeddings=40960",
     QWEN3_SMALL_NATIVE},
    {"Qwen3-1.7B", "Qwen", "qwen3",
     "hidden_size=2048 num_hidden_layers=28 num_attention_heads=16 num_key_value_heads=8 "
     "intermediate_size=6144 tie_word_embeddings=true max_position_embeddings=40960",
     QWEN3_SMALL_NATIVE},
    {"Qwen3-4B", "Qwen", "qwen3",
     "hidden_size=2560 num_hidden_layers=36 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=9728 tie_word_embeddings=true max_position_embeddings=40960",
     QWEN3_NATIVE},
    {"Qwen3-8B", "Qwen", "qwen3",
     "hidden_size=4096 num_hidden_layers=36 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=12288 max_position_embeddings=40960",
     QWEN3_NATIVE},
    {"Qwen3-14B", "Qwen", "qwen3",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 num_key_value_heads=8 "
     "intermediate_size=17408 max_position_embeddings=40960",
     QWEN3_NATIVE},
    {"Qwen3-32B", "Qwen", "qwen3",
     "hidden_size=5120 num_hidden_layers=64 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=25600 max_position_embeddings=40960",
     QWEN3_NATIVE},
    {"Qwen3-30B-A3B", "Qwen", "qwen3_moe",
     "hidden_size=2048 num_hidden_layers=48 num_attention_heads=32 num_key_value_heads=4 "
     "head_dim=128 intermediate_size=6144 moe_intermediate_size=768 num_experts=128 "
     "num_experts_per_tok=8 max_position_embeddings=40960",
     QWEN3_NATIVE},
    {"Qwen3-235B-A22B", "Qwen", "qwen3_moe",
     "hidden_size=4096 num_hidden_layers=94 num_attention_heads=64 num_key_value_heads=4 "
     "head_dim=128 intermediate_size=12288 moe_intermediate_size=1536 num_experts=128 "
     "num_experts_per_tok=8 max_position_embeddings=40960",
     QWEN3_NATIVE},

    {"Qwen3-0.6B-Base", "Qwen", .like = "Qwen3-0.6B", .config = "max_position_embeddings=32768"},
    {"Qwen3-1.7B-Base", "Qwen", .like = "Qwen3-1.7B", .config = "max_position_embeddings=32768"},
    {"Qwen3-4B-Base", "Qwen", .like = "Qwen3-4B", .config = "max_position_embeddings=32768"},
    {"Qwen3-8B-Base", "Qwen", .like = "Qwen3-8B", .config = "max_position_embeddings=32768"},
    {"Qwen3-14B-Base", "Qwen", .like = "Qwen3-14B", .config = "max_position_embeddings=32768"},
    {"Qwen3-30B-A3B-Base", "Qwen", .like = "Qwen3-30B-A3B",
     .config = "max_position_embeddings=32768"},
    {"Qwen3-4B-Instruct-2507", "Qwen", .like = "Qwen3-4B",
     .config = "max_position_embeddings=262144", .also = "Qwen3-4B-Thinking-2507"},
    {"Qwen3-30B-A3B-Instruct-2507", "Qwen", .like = "Qwen3-30B-A3B",
     .config = "max_position_embeddings=262144", .also = "Qwen3-30B-A3B-Thinking-2507"},
    {"Qwen3-235B-A22B-Instruct-2507", "Qwen", .like = "Qwen3-235B-A22B",
     .config = "max_position_embeddings=262144", .also = "Qwen3-235B-A22B-Thinking-2507"},

    {"Qwen3-VL-2B", "Qwen", "qwen3_vl",
     "hidden_size=2048 num_hidden_layers=28 num_attention_heads=16 num_key_value_heads=8 "
     "intermediate_size=6144 tie_word_embeddings=true max_position_embeddings=262144 "
     "vision.out_hidden_size=2048" QWEN3_VISION_24,
     .also = "Qwen3-VL-2B-Instruct Qwen3-VL-2B-Thinking", .hub = "Qwen3-VL-2B-Instruct"},
    {"Qwen3-VL-4B", "Qwen", "qwen3_vl",
     "hidden_size=2560 num_hidden_layers=36 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=9728 tie_word_embeddings=true max_position_embeddings=262144 "
     "vision.out_hidden_size=2560" QWEN3_VISION_24,
     .also = "Qwen3-VL-4B-Instruct Qwen3-VL-4B-Thinking", .hub = "Qwen3-VL-4B-Instruct"},
    {"Qwen3-VL-8B", "Qwen", "qwen3_vl",
     "hidden_size=4096 num_hidden_layers=36 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=12288 max_position_embeddings=262144 "
     "vision.out_hidden_size=4096" QWEN3_VISION_27,
     .also = "Qwen3-VL-8B-Instruct Qwen3-VL-8B-Thinking", .hub = "Qwen3-VL-8B-Instruct"},
    {"Qwen3-VL-32B", "Qwen", "qwen3_vl",
     "hidden_size=5120 num_hidden_layers=64 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=25600 max_position_embeddings=262144 "
     "vision.out_hidden_size=5120" QWEN3_VISION_27,
     .also = "Qwen3-VL-32B-Instruct Qwen3-VL-32B-Thinking", .hub = "Qwen3-VL-32B-Instruct"},
    {"Qwen3-VL-30B-A3B", "Qwen", "qwen3_vl_moe",
     "hidden_size=2048 num_hidden_layers=48 num_attention_heads=32 num_key_value_heads=4 "
     "head_dim=128 intermediate_size=6144 moe_intermediate_size=768 num_experts=128 "
     "num_experts_per_tok=8 max_position_embeddings=262144 "
     "vision.out_hidden_size=2048" QWEN3_VISION_27,
     .also = "Qwen3-VL-30B-A3B-Instruct Qwen3-VL-30B-A3B-Thinking",
     .hub = "Qwen3-VL-30B-A3B-Instruct"},
    {"Qwen3-VL-235B-A22B", "Qwen", "qwen3_vl_moe",
     "hidden_size=4096 num_hidden_layers=94 num_attention_heads=64 num_key_value_heads=4 "
     "head_dim=128 intermediate_size=12288 moe_intermediate_size=1536 num_experts=128 "
     "num_experts_per_tok=8 max_position_embeddings=262144 "
     "vision.out_hidden_size=4096" QWEN3_VISION_27,
     .also = "Qwen3-VL-235B-A22B-Instruct Qwen3-VL-235B-A22B-Thinking",
     .hub = "Qwen3-VL-235B-A22B-Instruct"},

    {"Qwen2.5-VL-3B", "Qwen", "qwen2_5_vl",
     "hidden_size=2048 num_hidden_layers=36 num_attention_heads=16 num_key_value_heads=2 "
     "intermediate_size=11008 vocab_size=151936 tie_word_embeddings=true "
     "max_position_embeddings=128000 vision.hidden_size=1280 vision.out_hidden_size=2048",
     .also = "Qwen2.5-VL-3B-Instruct", .hub = "Qwen2.5-VL-3B-Instruct"},
    {"Qwen2.5-VL-7B", "Qwen", "qwen2_5_vl",
     "hidden_size=3584 num_hidden_layers=28 num_attention_heads=28 num_key_value_heads=4 "
     "intermediate_size=18944 max_position_embeddings=128000 vision.hidden_size=1280",
     .also = "Qwen2.5-VL-7B-Instruct", .hub = "Qwen2.5-VL-7B-Instruct"},
    {"Qwen2.5-VL-32B", "Qwen", "qwen2_5_vl",
     "hidden_size=5120 num_hidden_layers=64 num_attention_heads=40 num_key_value_heads=8 "
     "intermediate_size=27648 max_position_embeddings=128000 vision.hidden_size=1280 "
     "vision.intermediate_size=3456 vision.out_hidden_size=5120",
     .also = "Qwen2.5-VL-32B-Instruct", .hub = "Qwen2.5-VL-32B-Instruct"},
    {"Qwen2.5-VL-72B", "Qwen", "qwen2_5_vl",
     "hidden_size=8192 num_hidden_layers=80 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=29568 max_position_embeddings=128000 vision.hidden_size=1280 "
     "vision.intermediate_size=3456 vision.out_hidden_size=8192",
     .also = "Qwen2.5-VL-72B-Instruct", .hub = "Qwen2.5-VL-72B-Instruct"},

    {"Qwen2.5-0.5B", "Qwen", "qwen2",
     "hidden_size=896 num_hidden_layers=24 num_attention_heads=14 num_key_value_heads=2 "
     "intermediate_size=4864 tie_word_embeddings=true max_position_embeddings=32768",
     .also = "Qwen2.5-0.5B-Instruct"},
    {"Qwen2.5-1.5B", "Qwen", "qwen2",
     "hidden_size=1536 num_hidden_layers=28 num_attention_heads=12 num_key_value_heads=2 "
     "intermediate_size=8960 tie_word_embeddings=true max_position_embeddings=131072"},
    {"Qwen2.5-3B", "Qwen", "qwen2",
     "hidden_size=2048 num_hidden_layers=36 num_attention_heads=16 num_key_value_heads=2 "
     "intermediate_size=11008 tie_word_embeddings=true max_position_embeddings=32768",
     .also = "Qwen2.5-3B-Instruct"},
    {"Qwen2.5-7B", "Qwen", "qwen2",
     "hidden_size=3584 num_hidden_layers=28 num_attention_heads=28 num_key_value_heads=4 "
     "intermediate_size=18944 vocab_size=152064 max_position_embeddings=131072"},
    {"Qwen2.5-14B", "Qwen", "qwen2",
     "hidden_size=5120 num_hidden_layers=48 num_attention_heads=40 num_key_value_heads=8 "
     "intermediate_size=13824 vocab_size=152064 max_position_embeddings=131072"},
    {"Qwen2.5-32B", "Qwen", "qwen2",
     "hidden_size=5120 num_hidden_layers=64 num_attention_heads=40 num_key_value_heads=8 "
     "intermediate_size=27648 vocab_size=152064 max_position_embeddings=131072"},
    {"Qwen2.5-72B", "Qwen", "qwen2",
     "hidden_size=8192 num_hidden_layers=80 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=29568 vocab_size=152064 max_position_embeddings=131072"},
    {"Qwen2.5-1.5B-Instruct", "Qwen", .like = "Qwen2.5-1.5B",
     .config = "max_position_embeddings=32768"},
    {"Qwen2.5-7B-Instruct", "Qwen", .like = "Qwen2.5-7B", .config = "max_position_embeddings=32768",
     QWEN25_NATIVE},
    {"Qwen2.5-14B-Instruct", "Qwen", .like = "Qwen2.5-14B",
     .config = "max_position_embeddings=32768", QWEN25_NATIVE},
    {"Qwen2.5-32B-Instruct", "Qwen", .like = "Qwen2.5-32B",
     .config = "max_position_embeddings=32768", QWEN25_NATIVE},
    {"Qwen2.5-72B-Instruct", "Qwen", .like = "Qwen2.5-72B",
     .config = "max_position_embeddings=32768", QWEN25_NATIVE},

    {"Llama-3.1-8B", "meta-llama", "llama",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=14336 vocab_size=128256 max_position_embeddings=131072",
     .also = "Llama-3.1-8B-Instruct Meta-Llama-3.1-8B Meta-Llama-3.1-8B-Instruct"},
    {"Llama-3.1-70B", "meta-llama", "llama",
     "hidden_size=8192 num_hidden_layers=80 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=28672 vocab_size=128256 max_position_embeddings=131072",
     .also = "Llama-3.1-70B-Instruct Meta-Llama-3.1-70B Meta-Llama-3.1-70B-Instruct"},
    {"Llama-3.1-405B", "meta-llama", "llama",
     "hidden_size=16384 num_hidden_layers=126 num_attention_heads=128 num_key_value_heads=8 "
     "intermediate_size=53248 vocab_size=128256 max_position_embeddings=131072",
     .also = "Llama-3.1-405B-Instruct Meta-Llama-3.1-405B Meta-Llama-3.1-405B-Instruct"},
    {"Llama-3.2-1B", "meta-llama", "llama",
     "hidden_size=2048 num_hidden_layers=16 num_attention_heads=32 num_key_value_heads=8 "
     "head_dim=64 intermediate_size=8192 vocab_size=128256 tie_word_embeddings=true "
     "max_position_embeddings=131072",
     .also = "Llama-3.2-1B-Instruct"},
    {"Llama-3.2-3B", "meta-llama", "llama",
     "hidden_size=3072 num_hidden_layers=28 num_attention_heads=24 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=8192 vocab_size=128256 tie_word_embeddings=true "
     "max_position_embeddings=131072",
     .also = "Llama-3.2-3B-Instruct"},
    {"Llama-3.3-70B", "meta-llama", .like = "Llama-3.1-70B", .config = "",
     .also = "Llama-3.3-70B-Instruct", .hub = "Llama-3.3-70B-Instruct"},

    {"Llama-2-7b", "meta-llama", "llama",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=32 "
     "intermediate_size=11008 vocab_size=32000 max_position_embeddings=4096",
     .also = "Llama-2-7b-hf Llama-2-7b-chat-hf", .hub = "Llama-2-7b-hf"},
    {"Llama-2-13b", "meta-llama", "llama",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 num_key_value_heads=40 "
     "intermediate_size=13824 vocab_size=32000 max_position_embeddings=4096",
     .also = "Llama-2-13b-hf Llama-2-13b-chat-hf", .hub = "Llama-2-13b-hf"},
    {"TinyLlama-1.1B", "TinyLlama", "llama",
     "hidden_size=2048 num_hidden_layers=22 num_attention_heads=32 num_key_value_heads=4 "
     "intermediate_size=5632 vocab_size=32000 max_position_embeddings=2048",
     .also = "TinyLlama-1.1B-Chat-v1.0 TinyLlama_v1.1 TinyLlama-1.1B-intermediate-step-1431k-3T",
     .nick = "TinyLlama", .hub = "TinyLlama-1.1B-Chat-v1.0"},
    {"SmolLM2-135M", "HuggingFaceTB", "llama",
     "hidden_size=576 num_hidden_layers=30 num_attention_heads=9 num_key_value_heads=3 "
     "intermediate_size=1536 vocab_size=49152 tie_word_embeddings=true "
     "max_position_embeddings=8192",
     .also = "SmolLM2-135M-Instruct"},
    {"SmolLM2-360M", "HuggingFaceTB", "llama",
     "hidden_size=960 num_hidden_layers=32 num_attention_heads=15 num_key_value_heads=5 "
     "intermediate_size=2560 vocab_size=49152 tie_word_embeddings=true "
     "max_position_embeddings=8192",
     .also = "SmolLM2-360M-Instruct"},
    {"SmolLM2-1.7B", "HuggingFaceTB", "llama",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=32 num_key_value_heads=32 "
     "intermediate_size=8192 vocab_size=49152 tie_word_embeddings=true "
     "max_position_embeddings=8192",
     .also = "SmolLM2-1.7B-Instruct"},
    {"SmolLM3-3B", "HuggingFaceTB", "smollm3",
     "hidden_size=2048 num_hidden_layers=36 num_attention_heads=16 num_key_value_heads=4 "
     "intermediate_size=11008 max_position_embeddings=65536",
     .also = "SmolLM3-3B-Base"},

    {"granite-3.3-2b-instruct", "ibm-granite", "granite",
     "hidden_size=2048 num_hidden_layers=40 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=8192 vocab_size=49159 tie_word_embeddings=true "
     "max_position_embeddings=131072"},
    {"granite-3.3-8b-instruct", "ibm-granite", "granite",
     "hidden_size=4096 num_hidden_layers=40 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=12800 vocab_size=49159 tie_word_embeddings=true "
     "max_position_embeddings=131072"},

    {"Mistral-7B-v0.3", "mistralai", "mistral",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=14336 vocab_size=32768 max_position_embeddings=32768 "
     "sliding_window=null",
     .also = "Mistral-7B-Instruct-v0.3", .nick = "Mistral-7B"},
    {"Mistral-7B-v0.1", "mistralai", .like = "Mistral-7B-v0.3",
     .config = "vocab_size=32000 sliding_window=4096", .also = "Mistral-7B-Instruct-v0.1"},
    {"Mistral-7B-Instruct-v0.2", "mistralai", .like = "Mistral-7B-v0.3",
     .config = "vocab_size=32000"},

    {"Mistral-Nemo-Base-2407", "mistralai", "mistral",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=32 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=14336 vocab_size=131072 sliding_window=null",
     .also = "Mistral-Nemo-Instruct-2407", .nick = "Mistral-Nemo-12B Mistral-Nemo"},

    {"Mixtral-8x7B-v0.1", "mistralai", "mixtral",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=14336 vocab_size=32000 max_position_embeddings=32768",
     .also = "Mixtral-8x7B-Instruct-v0.1", .nick = "Mixtral-8x7B"},

    {"Phi-3-mini-4k-instruct", "microsoft", "phi3",
     "hidden_size=3072 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=32 "
     "intermediate_size=8192 sliding_window=2047",
     .nick = "Phi-3-mini"},
    {"Phi-3.5-mini-instruct", "microsoft", .like = "Phi-3-mini-4k-instruct",
     .config = "max_position_embeddings=131072 sliding_window=262144",
     .also = "Phi-3-mini-128k-instruct", .nick = "Phi-3.5-mini"},
    {"Phi-3-medium-4k-instruct", "microsoft", "phi3",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 num_key_value_heads=10 "
     "intermediate_size=17920 sliding_window=2047",
     .nick = "Phi-3-medium"},
    {"phi-4", "microsoft", "phi3",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 num_key_value_heads=10 "
     "intermediate_size=17920 vocab_size=100352 max_position_embeddings=16384"},
    {"Phi-4-mini-instruct", "microsoft", "phi3",
     "hidden_size=3072 num_hidden_layers=32 num_attention_heads=24 num_key_value_heads=8 "
     "intermediate_size=8192 vocab_size=200064 tie_word_embeddings=true "
     "max_position_embeddings=131072 sliding_window=262144 partial_rotary_factor=0.75",
     .nick = "Phi-4-mini"},

    {"OLMo-2-0425-1B", "allenai", "olmo2",
     "hidden_size=2048 num_hidden_layers=16 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=8192 vocab_size=100352 max_position_embeddings=4096",
     .also = "OLMo-2-0425-1B-Instruct", .nick = "OLMo-2-1B"},
    {"OLMo-2-1124-7B", "allenai", "olmo2",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=32 "
     "intermediate_size=11008 vocab_size=100352 max_position_embeddings=4096",
     .also = "OLMo-2-1124-7B-Instruct", .nick = "OLMo-2-7B"},
    {"OLMo-2-1124-13B", "allenai", "olmo2",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 num_key_value_heads=40 "
     "intermediate_size=13824 vocab_size=100352 max_position_embeddings=4096",
     .also = "OLMo-2-1124-13B-Instruct", .nick = "OLMo-2-13B"},

    {"gemma-2b", "google", "gemma",
     "hidden_size=2048 num_hidden_layers=18 num_attention_heads=8 num_key_value_heads=1 "
     "intermediate_size=16384",
     .also = "gemma-2b-it gemma-1.1-2b-it"},
    {"gemma-7b", "google", "gemma",
     "hidden_size=3072 num_hidden_layers=28 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=24576",
     .also = "gemma-7b-it gemma-1.1-7b-it"},
    {"gemma-2-2b", "google", "gemma2",
     "hidden_size=2304 num_hidden_layers=26 num_attention_heads=8 num_key_value_heads=4 "
     "intermediate_size=9216",
     .also = "gemma-2-2b-it"},
    {"gemma-2-9b", "google", "gemma2",
     "hidden_size=3584 num_hidden_layers=42 num_attention_heads=16 num_key_value_heads=8 "
     "intermediate_size=14336",
     .also = "gemma-2-9b-it"},
    {"gemma-2-27b", "google", "gemma2",
     "hidden_size=4608 num_hidden_layers=46 num_attention_heads=32 num_key_value_heads=16 "
     "head_dim=128 intermediate_size=36864",
     .also = "gemma-2-27b-it"},
    {"gemma-3-1b", "google", "gemma3_text",
     "hidden_size=1152 num_hidden_layers=26 num_attention_heads=4 num_key_value_heads=1 "
     "intermediate_size=6912 vocab_size=262144 max_position_embeddings=32768 sliding_window=512",
     .also = "gemma-3-1b-it gemma-3-1b-pt", .hub = "gemma-3-1b-pt"},
    {"gemma-3-4b", "google", "gemma3",
     "hidden_size=2560 num_hidden_layers=34 num_attention_heads=8 num_key_value_heads=4 "
     "intermediate_size=10240 sliding_window=1024" SIGLIP,
     .also = "gemma-3-4b-it gemma-3-4b-pt", .hub = "gemma-3-4b-pt"},
    {"gemma-3-12b", "google", "gemma3",
     "hidden_size=3840 num_hidden_layers=48 num_attention_heads=16 num_key_value_heads=8 "
     "intermediate_size=15360 sliding_window=1024" SIGLIP,
     .also = "gemma-3-12b-it gemma-3-12b-pt", .hub = "gemma-3-12b-pt"},
    {"gemma-3-27b", "google", "gemma3",
     "hidden_size=5376 num_hidden_layers=62 num_attention_heads=32 num_key_value_heads=16 "
     "head_dim=128 intermediate_size=21504 sliding_window=1024" SIGLIP,
     .also = "gemma-3-27b-it gemma-3-27b-pt", .hub = "gemma-3-27b-pt"},

    {"gpt-oss-20b", "openai", "gpt_oss",
     "hidden_size=2880 num_hidden_layers=24 num_attention_heads=64 intermediate_size=2880 "
     "num_local_experts=32"},
    {"gpt-oss-120b", "openai", "gpt_oss",
     "hidden_size=2880 num_hidden_layers=36 num_attention_heads=64 intermediate_size=2880 "
     "num_local_experts=128"},

    {"DeepSeek-V3", "deepseek-ai", "deepseek_v3",
     "hidden_size=7168 num_hidden_layers=61 num_attention_heads=128 num_key_value_heads=128 "
     "intermediate_size=18432 max_position_embeddings=163840",
     .also = "DeepSeek-V3-0324 DeepSeek-V3-Base DeepSeek-V3.1 DeepSeek-R1 DeepSeek-R1-0528"},

    {"Mistral-Small-24B", "mistralai", "mistral",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=32 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=32768 vocab_size=131072 max_position_embeddings=32768 "
     "sliding_window=null",
     .also = "Mistral-Small-24B-Base-2501 Mistral-Small-24B-Instruct-2501",
     .hub = "Mistral-Small-24B-Base-2501"},
    {"Ministral-8B", "mistralai", "mistral",
     "hidden_size=4096 num_hidden_layers=36 num_attention_heads=32 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=12288 vocab_size=131072 max_position_embeddings=32768 "
     "sliding_window=32768",
     .also = "Ministral-8B-Instruct-2410", .hub = "Ministral-8B-Instruct-2410"},
    {"Falcon3-1B-Base", "tiiuae", "llama",
     "hidden_size=2048 num_hidden_layers=18 num_attention_heads=8 num_key_value_heads=4 "
     "head_dim=256 intermediate_size=8192 vocab_size=131072 max_position_embeddings=4096",
     .also = "Falcon3-1B-Instruct"},
    {"Falcon3-3B-Base", "tiiuae", "llama",
     "hidden_size=3072 num_hidden_layers=22 num_attention_heads=12 num_key_value_heads=4 "
     "head_dim=256 intermediate_size=9216 vocab_size=131072 max_position_embeddings=8192",
     .also = "Falcon3-3B-Instruct"},
    {"Falcon3-7B-Base", "tiiuae", "llama",
     "hidden_size=3072 num_hidden_layers=28 num_attention_heads=12 num_key_value_heads=4 "
     "head_dim=256 intermediate_size=23040 vocab_size=131072 max_position_embeddings=32768",
     .also = "Falcon3-7B-Instruct"},
    {"Falcon3-10B-Base", "tiiuae", "llama",
     "hidden_size=3072 num_hidden_layers=40 num_attention_heads=12 num_key_value_heads=4 "
     "head_dim=256 intermediate_size=23040 vocab_size=131072 max_position_embeddings=32768",
     .also = "Falcon3-10B-Instruct"},
    {"glm-4-9b-hf", "zai-org", "glm",
     "hidden_size=4096 num_hidden_layers=40 num_attention_heads=32 num_key_value_heads=2 "
     "head_dim=128 intermediate_size=13696 max_position_embeddings=131072",
     .also = "glm-4-9b-chat-hf"},
    {"GLM-4-9B-0414", "zai-org", "glm4",
     "hidden_size=4096 num_hidden_layers=40 num_attention_heads=32 num_key_value_heads=2 "
     "head_dim=128 intermediate_size=13696 max_position_embeddings=32768",
     .also = "GLM-Z1-9B-0414"},
    {"GLM-4-32B-0414", "zai-org", "glm4",
     "hidden_size=6144 num_hidden_layers=61 num_attention_heads=48 num_key_value_heads=2 "
     "head_dim=128 intermediate_size=23040 max_position_embeddings=32768",
     .also = "GLM-Z1-32B-0414 GLM-4-32B-Base-0414"},
    {"c4ai-command-r-v01", "CohereLabs", "cohere",
     "hidden_size=8192 num_hidden_layers=40 num_attention_heads=64 num_key_value_heads=64 "
     "intermediate_size=22528 max_position_embeddings=131072",
     .also = "aya-23-35B", .nick = "Command-R"},
    {"c4ai-command-r-08-2024", "CohereLabs", "cohere",
     "hidden_size=8192 num_hidden_layers=40 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=24576 max_position_embeddings=131072"},
    {"c4ai-command-r-plus", "CohereLabs", "cohere",
     "hidden_size=12288 num_hidden_layers=64 num_attention_heads=96 num_key_value_heads=8 "
     "intermediate_size=33792 max_position_embeddings=131072 use_qk_norm=true",
     .also = "c4ai-command-r-plus-08-2024", .nick = "Command-R-Plus"},
    {"aya-expanse-8b", "CohereLabs", "cohere",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=14336 max_position_embeddings=8192",
     .also = "aya-23-8B"},
    {"c4ai-command-r7b-12-2024", "CohereLabs", "cohere2",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 "
     "intermediate_size=14336 max_position_embeddings=132096"},
    {"c4ai-command-a-03-2025", "CohereLabs", "cohere2",
     "hidden_size=12288 num_hidden_layers=64 num_attention_heads=96 num_key_value_heads=8 "
     "intermediate_size=36864 max_position_embeddings=131072"},
    {"Minitron-4B-Base", "nvidia", "nemotron",
     "hidden_size=3072 num_hidden_layers=32 num_attention_heads=24 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=9216 max_position_embeddings=4096"},
    {"ERNIE-4.5-0.3B-PT", "baidu", "ernie4_5",
     "hidden_size=1024 num_hidden_layers=18 num_attention_heads=16 num_key_value_heads=2 "
     "head_dim=128 intermediate_size=3072",
     .also = "ERNIE-4.5-0.3B-Base-PT"},
    {"Seed-OSS-36B-Base", "ByteDance-Seed", "seed_oss",
     "hidden_size=5120 num_hidden_layers=64 num_attention_heads=80 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=27648 max_position_embeddings=524288",
     .also = "Seed-OSS-36B-Instruct"},
    {"EXAONE-4.0-32B", "LGAI-EXAONE", "exaone4",
     "hidden_size=5120 num_hidden_layers=64 num_attention_heads=40 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=27392 max_position_embeddings=131072"},
    {"EXAONE-4.0-1.2B", "LGAI-EXAONE", "exaone4",
     "hidden_size=2048 num_hidden_layers=30 num_attention_heads=32 num_key_value_heads=8 "
     "head_dim=64 intermediate_size=4096 max_position_embeddings=65536 sliding_window=null "
     "tie_word_embeddings=true"},
    {"starcoder2-3b", "bigcode", "starcoder2",
     "hidden_size=3072 num_hidden_layers=30 num_attention_heads=24 num_key_value_heads=2 "
     "intermediate_size=12288 max_position_embeddings=16384 sliding_window=4096 "
     "residual_dropout=0.1 embedding_dropout=0.1 attention_dropout=0.1"},
    {"starcoder2-7b", "bigcode", "starcoder2",
     "hidden_size=4608 num_hidden_layers=32 num_attention_heads=36 num_key_value_heads=4 "
     "intermediate_size=18432 max_position_embeddings=16384 sliding_window=4096 "
     "residual_dropout=0.1 embedding_dropout=0.1 attention_dropout=0.1"},
    {"phi-1_5", "microsoft", "phi",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=32 intermediate_size=8192"},
    {"phi-2", "microsoft", "phi",
     "hidden_size=2560 num_hidden_layers=32 num_attention_heads=32 intermediate_size=10240 "
     "partial_rotary_factor=0.4 resid_pdrop=0.1"},
    {"pythia-70m", "EleutherAI", "gpt_neox",
     "hidden_size=512 num_hidden_layers=6 num_attention_heads=8 intermediate_size=2048 "
     "vocab_size=50304",
     .also = "pythia-70m-deduped"},
    {"pythia-160m", "EleutherAI", "gpt_neox",
     "hidden_size=768 num_hidden_layers=12 num_attention_heads=12 intermediate_size=3072 "
     "vocab_size=50304",
     .also = "pythia-160m-deduped"},
    {"pythia-410m", "EleutherAI", "gpt_neox",
     "hidden_size=1024 num_hidden_layers=24 num_attention_heads=16 intermediate_size=4096 "
     "vocab_size=50304",
     .also = "pythia-410m-deduped"},
    {"pythia-1b", "EleutherAI", "gpt_neox",
     "hidden_size=2048 num_hidden_layers=16 num_attention_heads=8 intermediate_size=8192 "
     "vocab_size=50304",
     .also = "pythia-1b-deduped"},
    {"pythia-1.4b", "EleutherAI", "gpt_neox",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 intermediate_size=8192 "
     "vocab_size=50304",
     .also = "pythia-1.4b-deduped"},
    {"pythia-2.8b", "EleutherAI", "gpt_neox",
     "hidden_size=2560 num_hidden_layers=32 num_attention_heads=32 intermediate_size=10240 "
     "vocab_size=50304",
     .also = "pythia-2.8b-deduped"},
    {"pythia-6.9b", "EleutherAI", "gpt_neox",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 intermediate_size=16384 "
     "vocab_size=50432",
     .also = "pythia-6.9b-deduped"},
    {"pythia-12b", "EleutherAI", "gpt_neox",
     "hidden_size=5120 num_hidden_layers=36 num_attention_heads=40 intermediate_size=20480 "
     "vocab_size=50688",
     .also = "pythia-12b-deduped"},
    {"gpt-neox-20b", "EleutherAI", "gpt_neox",
     "hidden_size=6144 num_hidden_layers=44 num_attention_heads=64 intermediate_size=24576 "
     "vocab_size=50432"},
    {"gpt-j-6b", "EleutherAI", "gptj",
     "hidden_size=4096 num_hidden_layers=28 num_attention_heads=16"},
    {"gpt2", "openai-community", "gpt2",
     "hidden_size=768 num_hidden_layers=12 num_attention_heads=12"},
    {"gpt2-medium", "openai-community", "gpt2",
     "hidden_size=1024 num_hidden_layers=24 num_attention_heads=16"},
    {"gpt2-large", "openai-community", "gpt2",
     "hidden_size=1280 num_hidden_layers=36 num_attention_heads=20"},
    {"gpt2-xl", "openai-community", "gpt2",
     "hidden_size=1600 num_hidden_layers=48 num_attention_heads=25", .nick = "gpt2-1.5b"},
    {"starcoderbase-1b", "bigcode", "gpt_bigcode",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 intermediate_size=8192 "
     "vocab_size=49152 max_position_embeddings=8192"},
    {"starcoder", "bigcode", "gpt_bigcode",
     "hidden_size=6144 num_hidden_layers=40 num_attention_heads=48 intermediate_size=24576 "
     "vocab_size=49152 max_position_embeddings=8192",
     .also = "starcoderbase"},
    {"opt-125m", "facebook", "opt",
     "hidden_size=768 num_hidden_layers=12 num_attention_heads=12 intermediate_size=3072"},
    {"opt-1.3b", "facebook", "opt",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=32 intermediate_size=8192"},
    {"opt-2.7b", "facebook", "opt",
     "hidden_size=2560 num_hidden_layers=32 num_attention_heads=32 intermediate_size=10240"},
    {"opt-6.7b", "facebook", "opt",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 intermediate_size=16384"},
    {"opt-13b", "facebook", "opt",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 intermediate_size=20480"},
    {"opt-30b", "facebook", "opt",
     "hidden_size=7168 num_hidden_layers=48 num_attention_heads=56 intermediate_size=28672"},
    {"opt-66b", "facebook", "opt",
     "hidden_size=9216 num_hidden_layers=64 num_attention_heads=72 intermediate_size=36864"},
    {"bloom-560m", "bigscience", "bloom",
     "hidden_size=1024 num_hidden_layers=24 num_attention_heads=16", .also = "bloomz-560m"},
    {"bloom-1b1", "bigscience", "bloom",
     "hidden_size=1536 num_hidden_layers=24 num_attention_heads=16", .also = "bloomz-1b1"},
    {"bloom-1b7", "bigscience", "bloom",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16", .also = "bloomz-1b7"},
    {"bloom-3b", "bigscience", "bloom",
     "hidden_size=2560 num_hidden_layers=30 num_attention_heads=32", .also = "bloomz-3b"},
    {"bloom-7b1", "bigscience", "bloom",
     "hidden_size=4096 num_hidden_layers=30 num_attention_heads=32", .also = "bloomz-7b1"},
    {"bloom", "bigscience", "bloom",
     "hidden_size=14336 num_hidden_layers=70 num_attention_heads=112", .also = "bloomz",
     .nick = "bloom-176b"},
    {"falcon-7b", "tiiuae", "falcon",
     "hidden_size=4544 num_hidden_layers=32 num_attention_heads=71", .also = "falcon-7b-instruct"},
    {"falcon-40b", "tiiuae", "falcon",
     "hidden_size=8192 num_hidden_layers=60 num_attention_heads=128 num_kv_heads=8 "
     "new_decoder_architecture=true",
     .also = "falcon-40b-instruct"},
    {"mpt-7b", "mosaicml", "mpt",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 vocab_size=50432",
     .also = "mpt-7b-instruct mpt-7b-chat"},
};

const struct catalog_model *catalog_model_at(ptrdiff_t i)
{
    ptrdiff_t first = COUNT_OF(catalog_models);
    if (i < first)
        return &catalog_models[i];
    if (i - first < named_model_count)
        return &named_models[i - first];
    i -= first + named_model_count;
    return i < further_model_count ? &further_models[i] : NULL;
}
