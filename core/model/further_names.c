// Still more models by name: series that people train less often, and fine-tunes that bear no name
// of what they were made of. As in names.c, shapes are those of the published config.json files as
// we know them (Qwen3.5's and GLM's also as slime's scripts/models write them).
#include "core/model/model.h"

#define PLAIN_NEOX(hidden, layers, heads, inner, vocab)                              \
    "hidden_size=" hidden " num_hidden_layers=" layers " num_attention_heads=" heads \
    " intermediate_size=" inner " vocab_size=" vocab
#define LLAMA(hidden, layers, heads, kv, inner, vocab, positions)                    \
    "hidden_size=" hidden " num_hidden_layers=" layers " num_attention_heads=" heads \
    " num_key_value_heads=" kv " intermediate_size=" inner " vocab_size=" vocab      \
    " max_position_embeddings=" positions
#define SMALL_TOWER \
    " vision.depth=12 vision.hidden_size=768 vision.intermediate_size=3072 vision.num_heads=12"
#define MIDDLE_TOWER \
    " vision.depth=24 vision.hidden_size=1024 vision.intermediate_size=4096 vision.num_heads=16"

const struct catalog_model further_models[] = {
    // Llama
    {"open_llama_3b", "openlm-research", "llama",
     LLAMA("3200", "26", "32", "32", "8640", "32000", "2048"), .also = "open_llama_3b_v2"},
    {"open_llama_7b", "openlm-research", .like = "Llama-2-7b",
     .config = "max_position_embeddings=2048", .also = "open_llama_7b_v2 LLM360/Amber"},
    {"open_llama_13b", "openlm-research", .like = "Llama-2-13b",
     .config = "max_position_embeddings=2048"},
    {"llama-68m", "JackFram", "llama", LLAMA("768", "2", "12", "12", "3072", "32000", "2048")},
    {"llama-160m", "JackFram", "llama", LLAMA("768", "12", "12", "12", "3072", "32000", "2048")},
    {"alpaca-7b", "tatsu-lab", .like = "Llama-2-7b",
     .config = "max_position_embeddings=2048 vocab_size=32001",
     .also = "alpaca-7b-wdiff chavinlo/alpaca-native"},
    {"longchat-7b-v1.5-32k", "lmsys", .like = "Llama-2-7b", .config = "",
     .also = "allenai/tulu-2-7b allenai/tulu-2-dpo-7b stabilityai/StableBeluga-7B "
             "meta-math/MetaMath-7B-V1.0 FlagAlpha/Llama2-Chinese-7b-Chat "
             "WizardLMTeam/WizardMath-7B-V1.0 THUDM/agentlm-7b",
     .nick = "tulu-2"},
    {"Orca-2-7b", "microsoft", .like = "Llama-2-7b", .config = "vocab_size=32003"},
    {"Orca-2-13b", "microsoft", .like = "Llama-2-13b", .config = "vocab_size=32003"},
    {"WizardLM-13B-V1.2", "WizardLMTeam", .like = "Llama-2-13b", .config = "",
     .also = "Gryphe/MythoMax-L2-13b Open-Orca/OpenOrca-Platypus2-13B allenai/tulu-2-13b "
             "meta-math/MetaMath-13B-V1.0 stabilityai/StableBeluga-13B"},
    {"Platypus2-70B", "garage-bAInd", .like = "Llama-2-70b", .config = "",
     .also = "allenai/tulu-2-70b meta-math/MetaMath-70B-V1.0"},
    {"WizardCoder-Python-34B-V1.0", "WizardLM", .like = "CodeLlama-34b",
     .config = "vocab_size=32001"},
    {"llemma_7b", "EleutherAI", .like = "Llama-2-7b",
     .config = "vocab_size=32016 max_position_embeddings=4096"},
    {"chinese-llama-2-1.3b", "hfl", "llama",
     LLAMA("4096", "4", "32", "32", "11008", "55296", "4096"), .also = "chinese-alpaca-2-1.3b"},
    {"chinese-llama-2-7b", "hfl", .like = "Llama-2-7b", .config = "vocab_size=55296",
     .also = "chinese-alpaca-2-7b ziqingyang/chinese-llama-2-7b ziqingyang/chinese-alpaca-2-7b",
     .nick = "chinese-llama-2-7b-hf chinese-alpaca-2-7b-hf"},
    {"chinese-llama-2-13b", "hfl", .like = "Llama-2-13b", .config = "vocab_size=55296",
     .also = "chinese-alpaca-2-13b ziqingyang/chinese-llama-2-13b ziqingyang/chinese-alpaca-2-13b",
     .nick = "chinese-llama-2-13b-hf chinese-alpaca-2-13b-hf"},
    {"chinese-llama-7b", "hfl", .like = "Llama-2-7b",
     .config = "max_position_embeddings=2048 vocab_size=49953",
     .nick = "chinese-llama-plus-7b chinese-alpaca-7b"},
    {"chinese-llama-13b", "hfl", .like = "Llama-2-13b",
     .config = "max_position_embeddings=2048 vocab_size=49953",
     .nick = "chinese-llama-plus-13b chinese-alpaca-13b"},
    {"llama-3-chinese-8b", "hfl", .like = "Llama-3.1-8B", .config = "max_position_embeddings=8192",
     .also = "llama-3-chinese-8b-instruct rinna/llama-3-youko-8b beomi/Llama-3-Open-Ko-8B "
             "princeton-nlp/Llama-3-Instruct-8B-SimPO princeton-nlp/Llama-3-Instruct-8B-SFT "
             "RLHFlow/LLaMA3-iterative-DPO-final openchat/openchat-3.6-8b-20240522"},
    {"Llama-Guard-3-8B", "meta-llama", .like = "Llama-3.1-8B", .config = "",
     .also = "nvidia/Llama-3.1-Nemotron-Nano-8B-v1 tokyotech-llm/Llama-3.1-Swallow-8B-v0.1 "
             "PRIME-RL/Eurus-8B FreedomIntelligence/HuatuoGPT-o1-8B"},
    {"Llama-Guard-3-1B", "meta-llama", .like = "Llama-3.2-1B", .config = ""},
    {"Llama-3.1-Tulu-3-70B", "allenai", .like = "Llama-3.1-70B", .config = "vocab_size=128264",
     .also = "Llama-3.1-Tulu-3-70B-SFT Llama-3.1-Tulu-3-70B-DPO"},
    {"Llama-3.1-Minitron-4B-Width-Base", "nvidia", "llama",
     LLAMA("3072", "32", "32", "8", "9216", "128256", "131072") " head_dim=128"},
    {"INTELLECT-1", "PrimeIntellect", "llama",
     LLAMA("4096", "42", "32", "8", "14336", "128256", "8192"), .also = "INTELLECT-1-Instruct"},
    {"K2", "LLM360", "llama", LLAMA("8192", "80", "64", "64", "22016", "32032", "8192"),
     .also = "K2-Chat"},
    {"Swallow-7b-hf", "tokyotech-llm", .like = "Llama-2-7b", .config = "vocab_size=43176",
     .also = "Swallow-7b-instruct-hf"},
    {"llama-2-ko-7b", "beomi", .like = "Llama-2-7b", .config = "vocab_size=46336"},
    {"llm-jp-3-1.8b", "llm-jp", "llama", LLAMA("2048", "24", "16", "16", "7168", "99584", "4096"),
     .also = "llm-jp-3-1.8b-instruct"},
    {"llm-jp-3-3.7b", "llm-jp", "llama", LLAMA("3072", "28", "24", "24", "8192", "99584", "4096"),
     .also = "llm-jp-3-3.7b-instruct"},
    {"llm-jp-3-13b", "llm-jp", "llama", LLAMA("5120", "40", "40", "40", "13824", "99584", "4096"),
     .also = "llm-jp-3-13b-instruct"},
    {"calm3-22b-chat", "cyberagent", "llama",
     LLAMA("6144", "48", "48", "48", "16384", "65024", "16384")},
    {"EuroLLM-1.7B", "utter-project", "llama",
     LLAMA("2048", "24", "16", "8", "5632", "128000", "4096"), .also = "EuroLLM-1.7B-Instruct"},
    {"EuroLLM-9B", "utter-project", "llama",
     LLAMA("4096", "42", "32", "8", "12288", "128000", "4096"), .also = "EuroLLM-9B-Instruct"},
    {"salamandra-7b", "BSC-LT", "llama", LLAMA("4096", "32", "32", "8", "11008", "256000", "8192"),
     .also = "salamandra-7b-instruct"},
    {"Seed-Coder-8B-Base", "ByteDance-Seed", "llama",
     LLAMA("4096", "32", "32", "8", "14336", "155136", "32768"),
     .also = "Seed-Coder-8B-Instruct Seed-Coder-8B-Reasoning Seed-Coder-8B-Reasoning-bf16"},
    {"OpenCoder-1.5B-Base", "infly", "llama",
     LLAMA("2240", "24", "14", "14", "6144", "96640", "4096"), .also = "OpenCoder-1.5B-Instruct"},
    {"OpenCoder-8B-Base", "infly", "llama",
     LLAMA("4096", "32", "32", "8", "14336", "96640", "8192"), .also = "OpenCoder-8B-Instruct"},
    {"Yi-Coder-1.5B", "01-ai", "llama", LLAMA("2048", "24", "16", "16", "5504", "64000", "131072"),
     .also = "Yi-Coder-1.5B-Chat"},
    {"Yi-Coder-9B", "01-ai", .like = "Yi-9B", .config = "max_position_embeddings=131072",
     .also = "Yi-Coder-9B-Chat"},
    {"xgen-7b-8k-base", "Salesforce", .like = "Llama-2-7b",
     .config = "max_position_embeddings=8192 vocab_size=51200",
     .also = "xgen-7b-8k-inst codegen25-7b-multi codegen25-7b-mono"},
    {"DeepSeek-Prover-V2-7B", "deepseek-ai", .like = "deepseek-llm-7b-base",
     .config = "max_position_embeddings=65536"},
    {"DeepSeek-Prover-V1.5-Base", "deepseek-ai", .like = "deepseek-llm-7b-base", .config = "",
     .also = "DeepSeek-Prover-V1.5-SFT DeepSeek-Prover-V1.5-RL"},
    {"granite-3b-code-base", "ibm-granite", "llama",
     LLAMA("2560", "32", "32", "32", "10240", "49152",
           "2048") " attention_bias=true mlp_bias=true tie_word_embeddings=true",
     .also = "granite-3b-code-instruct"},
    {"granite-8b-code-base", "ibm-granite", "llama",
     LLAMA("4096", "36", "32", "8", "14336", "49152",
           "4096") " attention_bias=true mlp_bias=true tie_word_embeddings=true",
     .also = "granite-8b-code-instruct"},

    // Mistral
    {"openchat-3.5-0106", "openchat", .like = "Mistral-7B-v0.3",
     .config = "vocab_size=32002 sliding_window=4096 max_position_embeddings=8192",
     .also = "openchat_3.5 berkeley-nest/Starling-LM-7B-alpha Nexusflow/Starling-LM-7B-beta "
             "teknium/OpenHermes-2.5-Mistral-7B teknium/OpenHermes-2-Mistral-7B "
             "Open-Orca/Mistral-7B-OpenOrca"},
    {"neural-chat-7b-v3-1", "Intel", .like = "Mistral-7B-v0.3",
     .config = "vocab_size=32000 sliding_window=4096",
     .also =
         "neural-chat-7b-v3-3 HuggingFaceH4/zephyr-7b-sft alignment-handbook/zephyr-7b-sft-qlora "
         "WizardLMTeam/WizardMath-7B-V1.1 speakleash/Bielik-7B-v0.1 "
         "princeton-nlp/Mistral-7B-Base-SFT-DPO Salesforce/xLAM-7b-r",
     .nick = "zephyr-7b zephyr-sft zephyr"},
    {"Mathstral-7B-v0.1", "mistralai", .like = "Mistral-7B-v0.3", .config = ""},
    {"Bielik-11B-v2", "speakleash", .like = "Mistral-7B-v0.3",
     .config = "num_hidden_layers=50 vocab_size=32128", .also = "Bielik-11B-v2.3-Instruct"},
    {"Breeze-7B-Base-v1_0", "MediaTek-Research", .like = "Mistral-7B-v0.3",
     .config = "vocab_size=61872", .also = "Breeze-7B-Instruct-v1_0"},
    {"Mistral-Large-Instruct-2411", "mistralai", .like = "Mistral-Large-Instruct-2407",
     .config = "", .nick = "Mistral-Large-2 Mistral-Large-123B"},
    {"Magistral-Small-2506", "mistralai", .like = "Mistral-Small-24B",
     .config = "max_position_embeddings=40960", .nick = "Mistral-Small-3 Mistral-Small"},
    {"Devstral-Small-2505", "mistralai", .like = "Mistral-Small-24B",
     .config = "max_position_embeddings=131072", .also = "Devstral-Small-2507 sarvamai/sarvam-m"},
    {"Mistral-NeMo-Minitron-8B-Base", "nvidia", "mistral",
     "hidden_size=4096 num_hidden_layers=40 num_attention_heads=32 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=11520 vocab_size=131072 max_position_embeddings=8192 "
     "sliding_window=null",
     .also = "Mistral-NeMo-Minitron-8B-Instruct"},
    {"zephyr-orpo-141b-A35b-v0.1", "HuggingFaceH4", .like = "Mixtral-8x22B-v0.1", .config = ""},

    // Qwen
    {"Qwen-1_8B", "Qwen", "qwen",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 intermediate_size=11008",
     .also = "Qwen-1_8B-Chat"},
    {"Qwen-7B", "Qwen", "qwen",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 intermediate_size=22016",
     .also = "Qwen-7B-Chat"},
    {"Qwen-14B", "Qwen", "qwen",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 intermediate_size=27392 "
     "vocab_size=152064",
     .also = "Qwen-14B-Chat"},
    {"Qwen-72B", "Qwen", "qwen",
     "hidden_size=8192 num_hidden_layers=80 num_attention_heads=64 intermediate_size=49152 "
     "vocab_size=152064 max_position_embeddings=32768",
     .also = "Qwen-72B-Chat"},
    {"CodeQwen1.5-7B", "Qwen", "qwen2", LLAMA("4096", "32", "32", "4", "13440", "92416", "65536"),
     .also = "CodeQwen1.5-7B-Chat"},
    {"Qwen2-Math-1.5B", "Qwen", .like = "Qwen2.5-1.5B", .config = "max_position_embeddings=4096",
     .also = "Qwen2-Math-1.5B-Instruct WeiboAI/VibeThinker-1.5B"},
    {"Qwen2-Math-7B", "Qwen", .like = "Qwen2.5-7B", .config = "max_position_embeddings=4096",
     .also = "Qwen2-Math-7B-Instruct"},
    {"Qwen2-Math-72B", "Qwen", .like = "Qwen2.5-72B", .config = "max_position_embeddings=4096",
     .also = "Qwen2-Math-72B-Instruct"},
    {"Qwen2-57B-A14B", "Qwen", "qwen2_moe",
     "hidden_size=3584 num_hidden_layers=28 num_attention_heads=28 num_key_value_heads=4 "
     "intermediate_size=18944 moe_intermediate_size=2560 num_experts=64 num_experts_per_tok=8 "
     "shared_expert_intermediate_size=20480 max_position_embeddings=131072",
     .also = "Qwen2-57B-A14B-Instruct"},
    {"OpenThinker-7B", "open-thoughts", .like = "Qwen2.5-7B",
     .config = "max_position_embeddings=32768",
     .also = "OpenThinker2-7B OpenThinker3-7B Alibaba-NLP/WebSailor-7B "
             "nvidia/OpenReasoning-Nemotron-7B Skywork/Skywork-OR1-7B open-r1/OpenR1-Distill-7B"},
    {"OpenR1-Qwen-7B", "open-r1", .like = "Qwen2.5-7B", .config = "max_position_embeddings=4096",
     .also = "PRIME-RL/Eurus-2-7B-SFT PRIME-RL/Eurus-2-7B-PRIME nvidia/AceReason-Nemotron-7B"},
    {"Arch-Router-1.5B", "katanemo", .like = "Qwen2.5-1.5B",
     .config = "max_position_embeddings=32768", .also = "nvidia/OpenReasoning-Nemotron-1.5B"},
    {"DeepCoder-14B-Preview", "agentica-org", .like = "Qwen2.5-14B", .config = ""},
    {"Sky-T1-32B-Preview", "NovaSky-AI", .like = "Qwen2.5-32B",
     .config = "max_position_embeddings=32768",
     .also = "GAIR/LIMO LLM360/K2-Think open-thoughts/OpenThinker-32B"},
    {"INTELLECT-2", "PrimeIntellect", .like = "Qwen2.5-32B",
     .config = "max_position_embeddings=40960"},
    {"Kimi-Dev-72B", "moonshotai", .like = "Qwen2.5-72B", .config = ""},
    {"UI-TARS-1.5-7B", "ByteDance-Seed", .like = "Qwen2.5-VL-7B", .config = "",
     .also = "XiaomiMiMo/MiMo-UI-7B"},
    {"Qwen3-Embedding-0.6B", "Qwen", .like = "Qwen3-0.6B",
     .config = "vocab_size=151669 max_position_embeddings=32768", .also = "Qwen3-Reranker-0.6B"},
    {"Qwen3-Embedding-4B", "Qwen", .like = "Qwen3-4B",
     .config = "vocab_size=151665 max_position_embeddings=40960", .also = "Qwen3-Reranker-4B"},
    {"Qwen3-Embedding-8B", "Qwen", .like = "Qwen3-8B",
     .config = "vocab_size=151665 max_position_embeddings=40960", .also = "Qwen3-Reranker-8B"},
    {"Qwen3Guard-Gen-0.6B", "Qwen", .like = "Qwen3-0.6B", .config = ""},
    {"Qwen3Guard-Gen-4B", "Qwen", .like = "Qwen3-4B", .config = ""},
    {"Qwen3Guard-Gen-8B", "Qwen", .like = "Qwen3-8B", .config = ""},
    {"Qwen3-Next-80B-A3B-Instruct", "Qwen", "qwen3_next",
     "hidden_size=2048 num_hidden_layers=48 num_attention_heads=16 intermediate_size=5120 "
     "max_position_embeddings=262144",
     .also = "Qwen3-Next-80B-A3B-Thinking Qwen3-Coder-Next Qwen3-Coder-Next-Base",
     .nick = "Qwen3-Next-80B-A3B"},
    {"Qwen3.5-0.8B", "Qwen", "qwen3_5",
     "hidden_size=1024 num_hidden_layers=24 num_attention_heads=8 num_key_value_heads=2 "
     "intermediate_size=3584 linear_num_value_heads=16 tie_word_embeddings=true "
     "max_position_embeddings=262144 vision.out_hidden_size=1024" SMALL_TOWER,
     .also = "Qwen3.5-0.8B-Base"},
    {"Qwen3.5-2B", "Qwen", "qwen3_5",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=8 num_key_value_heads=2 "
     "intermediate_size=6144 linear_num_value_heads=16 tie_word_embeddings=true "
     "max_position_embeddings=262144 vision.out_hidden_size=2048" MIDDLE_TOWER,
     .also = "Qwen3.5-2B-Base"},
    {"Qwen3.5-4B", "Qwen", "qwen3_5",
     "hidden_size=2560 num_hidden_layers=32 num_attention_heads=16 num_key_value_heads=4 "
     "intermediate_size=9216 tie_word_embeddings=true max_position_embeddings=262144 "
     "vision.out_hidden_size=2560" MIDDLE_TOWER,
     .also = "Qwen3.5-4B-Base"},
    {"Qwen3.5-9B", "Qwen", "qwen3_5",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=16 num_key_value_heads=4 "
     "intermediate_size=12288 max_position_embeddings=262144 vision.out_hidden_size=4096",
     .also = "Qwen3.5-9B-Base"},
    {"Qwen3.5-27B", "Qwen", "qwen3_5",
     "hidden_size=5120 num_hidden_layers=64 num_attention_heads=24 num_key_value_heads=4 "
     "intermediate_size=17408 linear_num_value_heads=48 max_position_embeddings=262144 "
     "vision.out_hidden_size=5120",
     .also = "Qwen3.6-27B"},
    {"Qwen3.5-35B-A3B", "Qwen", "qwen3_5_moe",
     "hidden_size=2048 num_hidden_layers=40 num_attention_heads=16 max_position_embeddings=262144 "
     "vision.out_hidden_size=2048",
     .also = "Qwen3.5-35B-A3B-Base Qwen3.6-35B-A3B"},
    {"Qwen3.5-122B-A10B", "Qwen", "qwen3_5_moe",
     "hidden_size=3072 num_hidden_layers=48 num_attention_heads=32 moe_intermediate_size=1024 "
     "shared_expert_intermediate_size=1024 linear_num_value_heads=64 "
     "max_position_embeddings=262144 vision.out_hidden_size=3072"},
    {"Qwen3.5-397B-A17B", "Qwen", "qwen3_5_moe",
     "hidden_size=4096 num_hidden_layers=60 num_attention_heads=32 moe_intermediate_size=1024 "
     "shared_expert_intermediate_size=1024 num_experts=512 num_experts_per_tok=10 "
     "linear_num_value_heads=64 max_position_embeddings=262144 vision.out_hidden_size=4096"},

    // DeepSeek, Kimi, MiniMax, GLM
    {"DeepSeek-V2", "deepseek-ai", "deepseek_v2",
     "hidden_size=5120 num_hidden_layers=60 num_attention_heads=128 intermediate_size=12288 "
     "moe_intermediate_size=1536 n_routed_experts=160 num_experts_per_tok=6 "
     "first_k_dense_replace=1 max_position_embeddings=163840",
     .also = "DeepSeek-V2-Chat DeepSeek-V2-Chat-0628 DeepSeek-V2.5 DeepSeek-V2.5-1210 "
             "DeepSeek-Coder-V2-Base DeepSeek-Coder-V2-Instruct "
             "DeepSeek-Coder-V2-Instruct-0724"},
    {"DeepSeek-R1-Zero", "deepseek-ai", .like = "DeepSeek-V3", .config = "",
     .also = "DeepSeek-V3.1-Base DeepSeek-V3.1-Terminus", .nick = "DeepSeek-671B"},
    {"Kimi-K2-Instruct", "moonshotai", "kimi_k2",
     "hidden_size=7168 num_hidden_layers=61 num_attention_heads=64 num_key_value_heads=64 "
     "intermediate_size=18432",
     .also = "Kimi-K2-Base Kimi-K2-Instruct-0905 Kimi-K2-Thinking", .nick = "Kimi-K2"},
    {"MiniMax-M2", "MiniMaxAI", "minimax_m2",
     "hidden_size=3072 num_hidden_layers=62 num_attention_heads=48 intermediate_size=1536 "
     "rotary_dim=64",
     .also = "MiniMax-M2.1 MiniMax-M2.5"},
    {"GLM-4.5", "zai-org", "glm4_moe",
     "hidden_size=5120 num_hidden_layers=92 num_attention_heads=96 head_dim=128 "
     "intermediate_size=12288 moe_intermediate_size=1536 n_routed_experts=160 "
     "first_k_dense_replace=3 use_qk_norm=true attention_bias=true",
     .also = "GLM-4.5-Base"},
    {"GLM-4.6", "zai-org", .like = "GLM-4.5", .config = "max_position_embeddings=202752",
     .also = "GLM-4.7"},
    {"GLM-4.5-Air", "zai-org", "glm4_moe",
     "hidden_size=4096 num_hidden_layers=46 num_attention_heads=96 head_dim=128 "
     "intermediate_size=10944 attention_bias=true",
     .also = "GLM-4.5-Air-Base"},
    {"chatglm2-6b", "zai-org", "chatglm",
     "hidden_size=4096 num_layers=28 num_attention_heads=32 multi_query_group_num=2 "
     "ffn_hidden_size=13696 seq_length=32768",
     .also = "THUDM/chatglm2-6b"},
    {"chatglm3-6b", "zai-org", .like = "chatglm2-6b", .config = "seq_length=8192",
     .also = "chatglm3-6b-base THUDM/chatglm3-6b THUDM/chatglm3-6b-base", .nick = "chatglm3"},
    {"chatglm3-6b-32k", "zai-org", .like = "chatglm2-6b", .config = "",
     .also = "THUDM/chatglm3-6b-32k chatglm3-6b-128k THUDM/chatglm3-6b-128k"},
    {"glm-4-9b", "zai-org", "chatglm",
     "hidden_size=4096 num_layers=40 num_attention_heads=32 multi_query_group_num=2 "
     "ffn_hidden_size=13696 padded_vocab_size=151552 seq_length=131072",
     .also = "glm-4-9b-chat THUDM/glm-4-9b THUDM/glm-4-9b-chat"},
    {"glm-4-9b-chat-1m", "zai-org", .like = "glm-4-9b",
     .config = "multi_query_group_num=4 seq_length=1048576", .also = "THUDM/glm-4-9b-chat-1m"},

    // Chinese series whose code comes with the weights
    {"Baichuan-7B", "baichuan-inc", "baichuan",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 intermediate_size=11008 "
     "vocab_size=64000"},
    {"Baichuan-13B-Base", "baichuan-inc", "baichuan",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 intermediate_size=13696 "
     "vocab_size=64000",
     .also = "Baichuan-13B-Chat", .nick = "Baichuan-13B"},
    {"Baichuan2-7B-Base", "baichuan-inc", "baichuan",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 intermediate_size=11008",
     .also = "Baichuan2-7B-Chat", .nick = "Baichuan2-7B"},
    {"Baichuan2-13B-Base", "baichuan-inc", "baichuan",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 intermediate_size=13696",
     .also = "Baichuan2-13B-Chat", .nick = "Baichuan2-13B"},
    {"internlm2-1_8b", "internlm", "internlm2",
     LLAMA("2048", "24", "16", "8", "8192", "92544", "32768"),
     .also = "internlm2-chat-1_8b internlm2_5-1_8b internlm2_5-1_8b-chat"},
    {"internlm2-7b", "internlm", "internlm2",
     LLAMA("4096", "32", "32", "8", "14336", "92544", "32768"),
     .also = "internlm2-base-7b internlm2-chat-7b internlm2_5-7b internlm2_5-7b-chat "
             "internlm2_5-7b-chat-1m internlm2-math-7b"},
    {"internlm2-20b", "internlm", "internlm2",
     LLAMA("6144", "48", "48", "8", "16384", "92544", "32768"),
     .also = "internlm2-base-20b internlm2-chat-20b internlm2_5-20b internlm2_5-20b-chat"},
    {"internlm3-8b-instruct", "internlm", "internlm3",
     LLAMA("4096", "48", "32", "2", "10240", "128512", "32768") " head_dim=128",
     .nick = "internlm3-8b"},

    // Falcon, GPT-NeoX, GPT-2, StarCoder, OPT, MPT, StableLM, Phi
    {"falcon-180B", "tiiuae", "falcon",
     "hidden_size=14848 num_hidden_layers=80 num_attention_heads=232 num_kv_heads=8 "
     "new_decoder_architecture=true",
     .also = "falcon-180B-chat"},
    {"falcon-rw-1b", "tiiuae", "falcon",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=32 vocab_size=50304 alibi=true "
     "bias=true multi_query=false parallel_attn=false"},
    {"falcon-11B", "tiiuae", "falcon",
     "hidden_size=4096 num_hidden_layers=60 num_attention_heads=32 num_kv_heads=8 "
     "ffn_hidden_size=16384 new_decoder_architecture=true num_ln_in_parallel_attn=1 "
     "max_position_embeddings=8192 tie_word_embeddings=false"},
    {"pythia-14m", "EleutherAI", "gpt_neox", PLAIN_NEOX("128", "6", "4", "512", "50304"),
     .also = "pythia-14m-deduped"},
    {"pythia-31m", "EleutherAI", "gpt_neox", PLAIN_NEOX("256", "6", "8", "1024", "50304"),
     .also = "pythia-31m-deduped"},
    {"GPT-NeoXT-Chat-Base-20B", "togethercomputer", .like = "gpt-neox-20b", .config = ""},
    {"dolly-v2-3b", "databricks", .like = "pythia-2.8b", .config = "vocab_size=50280"},
    {"dolly-v2-7b", "databricks", .like = "pythia-6.9b", .config = "vocab_size=50280"},
    {"dolly-v2-12b", "databricks", .like = "pythia-12b", .config = "vocab_size=50280"},
    {"RedPajama-INCITE-Base-3B-v1", "togethercomputer", "gpt_neox",
     PLAIN_NEOX("2560", "32", "32", "10240", "50432") " rotary_pct=1 use_parallel_residual=false",
     .also = "RedPajama-INCITE-Instruct-3B-v1 RedPajama-INCITE-Chat-3B-v1"},
    {"RedPajama-INCITE-7B-Base", "togethercomputer", "gpt_neox",
     PLAIN_NEOX("4096", "32", "32", "16384", "50432") " rotary_pct=1 use_parallel_residual=false",
     .also = "RedPajama-INCITE-7B-Instruct RedPajama-INCITE-7B-Chat"},
    {"polyglot-ko-1.3b", "EleutherAI", "gpt_neox",
     PLAIN_NEOX("2048", "24", "16", "8192", "30080") " rotary_pct=0.5"},
    {"polyglot-ko-5.8b", "EleutherAI", "gpt_neox",
     PLAIN_NEOX("4096", "28", "16", "16384", "30080")},
    {"polyglot-ko-12.8b", "EleutherAI", "gpt_neox",
     PLAIN_NEOX("5120", "40", "40", "20480", "30080") " rotary_pct=0.5",
     .also = "nlpai-lab/kullm-polyglot-12.8b-v2 beomi/KoAlpaca-Polyglot-12.8B"},
    {"stablelm-base-alpha-3b", "stabilityai", "gpt_neox",
     PLAIN_NEOX("4096", "16", "32", "16384", "50688") " max_position_embeddings=4096",
     .also = "stablelm-tuned-alpha-3b"},
    {"stablelm-base-alpha-7b", "stabilityai", "gpt_neox",
     PLAIN_NEOX("6144", "16", "48", "24576", "50432") " max_position_embeddings=4096",
     .also = "stablelm-tuned-alpha-7b"},
    {"open-calm-7b", "cyberagent", "gpt_neox",
     PLAIN_NEOX("4096", "32", "32", "16384", "52096") " rotary_pct=1 use_parallel_residual=false"},
    {"japanese-gpt-neox-3.6b", "rinna", "gpt_neox",
     PLAIN_NEOX("2816", "36", "22", "11264", "32000") " rotary_pct=1 use_parallel_residual=false"},
    {"distilgpt2", "distilbert", "gpt2",
     "hidden_size=768 num_hidden_layers=6 num_attention_heads=12"},
    {"Cerebras-GPT-111M", "cerebras", "gpt2",
     "hidden_size=768 num_hidden_layers=10 num_attention_heads=12 n_positions=2048 "
     "activation_function=gelu"},
    {"Cerebras-GPT-590M", "cerebras", "gpt2",
     "hidden_size=1536 num_hidden_layers=18 num_attention_heads=12 n_positions=2048 "
     "activation_function=gelu"},
    {"Cerebras-GPT-1.3B", "cerebras", "gpt2",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 n_positions=2048 "
     "activation_function=gelu"},
    {"Cerebras-GPT-6.7B", "cerebras", "gpt2",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=32 n_positions=2048 "
     "activation_function=gelu"},
    {"Cerebras-GPT-13B", "cerebras", "gpt2",
     "hidden_size=5120 num_hidden_layers=40 num_attention_heads=40 n_positions=2048 "
     "activation_function=gelu"},
    {"starcoderbase-3b", "bigcode", "gpt_bigcode",
     "hidden_size=2816 num_hidden_layers=36 num_attention_heads=22 intermediate_size=11264 "
     "vocab_size=49152 max_position_embeddings=8192"},
    {"starcoderbase-7b", "bigcode", "gpt_bigcode",
     "hidden_size=4096 num_hidden_layers=42 num_attention_heads=32 intermediate_size=16384 "
     "vocab_size=49152 max_position_embeddings=8192"},
    {"gpt_bigcode-santacoder", "bigcode", "gpt_bigcode",
     "hidden_size=2048 num_hidden_layers=24 num_attention_heads=16 intermediate_size=8192 "
     "vocab_size=49280 max_position_embeddings=2048",
     .nick = "santacoder"},
    {"octocoder", "bigcode", .like = "starcoder", .config = "", .also = "starcoderplus",
     .nick = "starcoder-15b starcoderbase-15b starcoder-15.5b"},
    {"WizardCoder-15B-V1.0", "WizardLMTeam", .like = "starcoder", .config = "vocab_size=49153"},
    {"granite-20b-code-base", "ibm-granite", .like = "starcoder", .config = "num_hidden_layers=52",
     .also = "granite-20b-code-instruct"},
    {"granite-34b-code-base", "ibm-granite", .like = "starcoder", .config = "num_hidden_layers=88",
     .also = "granite-34b-code-instruct"},
    {"starcoder2-15b", "bigcode", "starcoder2",
     "hidden_size=6144 num_hidden_layers=40 num_attention_heads=48 num_key_value_heads=4 "
     "intermediate_size=24576 max_position_embeddings=16384 sliding_window=4096 "
     "residual_dropout=0.1 embedding_dropout=0.1 attention_dropout=0.1 tie_word_embeddings=false",
     .also = "starcoder2-15b-instruct-v0.1"},
    {"opt-350m", "facebook", "opt",
     "hidden_size=1024 num_hidden_layers=24 num_attention_heads=16 intermediate_size=4096 "
     "word_embed_proj_dim=512 do_layer_norm_before=false"},
    {"opt-175b", "facebook", "opt",
     "hidden_size=12288 num_hidden_layers=96 num_attention_heads=96 intermediate_size=49152"},
    {"mpt-30b", "mosaicml", "mpt",
     "hidden_size=7168 num_hidden_layers=48 num_attention_heads=64 vocab_size=50432 "
     "max_seq_len=8192",
     .also = "mpt-30b-instruct mpt-30b-chat"},
    {"stablelm-3b-4e1t", "stabilityai", "stablelm",
     LLAMA("2560", "32", "32", "32", "6912", "50304", "4096"), .also = "stablelm-zephyr-3b"},
    {"stable-code-3b", "stabilityai", .like = "stablelm-3b-4e1t",
     .config = "max_position_embeddings=16384"},
    {"stablelm-2-1_6b", "stabilityai", "stablelm",
     LLAMA("2048", "24", "32", "32", "5632", "100352", "4096") " use_qkv_bias=true",
     .also = "stablelm-2-zephyr-1_6b stablelm-2-1_6b-chat"},
    {"phi-1", "microsoft", .like = "phi-1_5", .config = ""},
    {"Phi-4-mini-reasoning", "microsoft", .like = "Phi-4-mini-instruct", .config = ""},
    {"codegemma-2b", "google", .like = "gemma-2b", .config = "",
     .also = "codegemma-1.1-2b HuggingFaceH4/zephyr-2b-gemma"},
    {"codegemma-1.1-7b-it", "google", .like = "gemma-7b", .config = "",
     .also = "HuggingFaceH4/zephyr-7b-gemma-v0.1 HuggingFaceH4/zephyr-7b-gemma-sft-v0.1"},
    {"gemma-3-270m", "google", "gemma3_text",
     "hidden_size=640 num_hidden_layers=18 num_attention_heads=4 num_key_value_heads=1 "
     "intermediate_size=2048 vocab_size=262144 max_position_embeddings=32768 sliding_window=512",
     .also = "gemma-3-270m-it"},
    {"medgemma-4b-it", "google", .like = "gemma-3-4b", .config = "",
     .also = "medgemma-4b-pt medgemma-1.5-4b-it"},
    {"medgemma-27b-it", "google", .like = "gemma-3-27b", .config = ""},
    {"medgemma-27b-text-it", "google", "gemma3_text",
     "hidden_size=5376 num_hidden_layers=62 num_attention_heads=32 num_key_value_heads=16 "
     "head_dim=128 intermediate_size=21504 vocab_size=262144 sliding_window=1024"},

    // OLMo, Granite, Cohere, Llama 4, Nemotron, ERNIE, Arcee
    {"OLMo-2-0325-32B", "allenai", "olmo2",
     LLAMA("5120", "64", "40", "8", "27648", "100352", "4096"), .also = "OLMo-2-0325-32B-Instruct",
     .nick = "OLMo-2-32B"},
    {"Olmo-3-1025-7B", "allenai", "olmo3",
     LLAMA("4096", "32", "32", "32", "11008", "100278", "65536"),
     .also = "Olmo-3-7B-Instruct Olmo-3-7B-Think Olmo-3-7B-Instruct-SFT Olmo-3-7B-Think-SFT "
             "Olmo-3-7B-RL-Zero-Math",
     .nick = "Olmo-3-7B"},
    {"Olmo-3-1125-32B", "allenai", "olmo3",
     LLAMA("5120", "64", "40", "8", "27648", "100278", "65536"),
     .also = "Olmo-3-32B-Think Olmo-3.1-32B-Think Olmo-3.1-32B-Instruct", .nick = "Olmo-3-32B"},
    {"OLMoE-1B-7B-0924", "allenai", "olmoe",
     "hidden_size=2048 num_hidden_layers=16 num_attention_heads=16 num_key_value_heads=16 "
     "intermediate_size=1024",
     .also = "OLMoE-1B-7B-0924-Instruct OLMoE-1B-7B-0924-SFT OLMoE-1B-7B-0125 "
             "OLMoE-1B-7B-0125-Instruct",
     .nick = "OLMoE-1B-7B"},
    {"granite-3.0-2b-base", "ibm-granite", .like = "granite-3.3-2b-instruct",
     .config = "vocab_size=49155 max_position_embeddings=4096", .also = "granite-3.0-2b-instruct"},
    {"granite-3.0-8b-base", "ibm-granite", .like = "granite-3.3-8b-instruct",
     .config = "vocab_size=49155 max_position_embeddings=4096", .also = "granite-3.0-8b-instruct"},
    {"granite-3.2-2b-instruct", "ibm-granite", .like = "granite-3.3-2b-instruct",
     .config = "vocab_size=49155"},
    {"granite-3.2-8b-instruct", "ibm-granite", .like = "granite-3.3-8b-instruct",
     .config = "vocab_size=49155"},
    {"granite-3.3-2b-base", "ibm-granite", .like = "granite-3.3-2b-instruct",
     .config = "vocab_size=49152"},
    {"granite-3.3-8b-base", "ibm-granite", .like = "granite-3.3-8b-instruct",
     .config = "vocab_size=49152"},
    {"granite-3.1-1b-a400m-base", "ibm-granite", "granitemoe",
     "hidden_size=1024 num_hidden_layers=24 num_attention_heads=16 num_key_value_heads=8 "
     "intermediate_size=512 num_local_experts=32 num_experts_per_tok=8 vocab_size=49155 "
     "tie_word_embeddings=true max_position_embeddings=131072",
     .also = "granite-3.1-1b-a400m-instruct"},
    {"granite-3.0-1b-a400m-base", "ibm-granite", .like = "granite-3.1-1b-a400m-base",
     .config = "max_position_embeddings=4096", .also = "granite-3.0-1b-a400m-instruct"},
    {"granite-3.1-3b-a800m-base", "ibm-granite", "granitemoe",
     "hidden_size=1536 num_hidden_layers=32 num_attention_heads=24 num_key_value_heads=8 "
     "intermediate_size=512 num_local_experts=40 num_experts_per_tok=8 vocab_size=49155 "
     "tie_word_embeddings=true max_position_embeddings=131072",
     .also = "granite-3.1-3b-a800m-instruct"},
    {"granite-3.0-3b-a800m-base", "ibm-granite", .like = "granite-3.1-3b-a800m-base",
     .config = "max_position_embeddings=4096", .also = "granite-3.0-3b-a800m-instruct"},
    {"granite-4.0-micro", "ibm-granite", "granitemoehybrid",
     "hidden_size=2560 num_hidden_layers=40 num_attention_heads=40 num_key_value_heads=8 "
     "intermediate_size=8192 shared_intermediate_size=8192 num_local_experts=0 vocab_size=100352 "
     "tie_word_embeddings=true max_position_embeddings=131072 position_embedding_type=rope",
     .also = "granite-4.0-micro-base"},
    {"granite-4.0-1b", "ibm-granite", "granitemoehybrid",
     "hidden_size=2048 num_hidden_layers=40 num_attention_heads=16 num_key_value_heads=4 "
     "intermediate_size=4096 shared_intermediate_size=4096 num_local_experts=0 vocab_size=100352 "
     "tie_word_embeddings=true max_position_embeddings=131072 position_embedding_type=rope",
     .also = "granite-4.0-1b-base"},
    {"granite-4.0-350m", "ibm-granite", "granitemoehybrid",
     "hidden_size=1024 num_hidden_layers=28 num_attention_heads=16 num_key_value_heads=4 "
     "intermediate_size=2048 shared_intermediate_size=2048 num_local_experts=0 vocab_size=100352 "
     "tie_word_embeddings=true max_position_embeddings=32768 position_embedding_type=rope",
     .also = "granite-4.0-350m-base"},
    {"aya-expanse-32b", "CohereLabs", .like = "c4ai-command-r-08-2024", .config = "",
     .nick = "Command-R-08-2024"},
    {"command-a-reasoning-08-2025", "CohereLabs", .like = "c4ai-command-a-03-2025", .config = "",
     .nick = "Command-A"},
    {"Llama-4-Scout-17B-16E", "meta-llama", "llama4_text",
     "hidden_size=5120 num_hidden_layers=48 num_attention_heads=40 intermediate_size=8192 "
     "max_position_embeddings=10485760",
     .also = "Llama-4-Scout-17B-16E-Instruct", .nick = "Llama-4-Scout Llama-4-109B"},
    {"Llama-4-Maverick-17B-128E", "meta-llama", "llama4_text",
     "hidden_size=5120 num_hidden_layers=48 num_attention_heads=40 intermediate_size=8192 "
     "num_local_experts=128 interleave_moe_layer_step=2 use_qk_norm=false "
     "max_position_embeddings=1048576",
     .also = "Llama-4-Maverick-17B-128E-Instruct", .nick = "Llama-4-Maverick"},
    {"Minitron-8B-Base", "nvidia", "nemotron",
     "hidden_size=4096 num_hidden_layers=32 num_attention_heads=48 num_key_value_heads=8 "
     "head_dim=128 intermediate_size=16384 max_position_embeddings=4096"},
    {"ERNIE-4.5-21B-A3B-PT", "baidu", "ernie4_5_moe",
     "hidden_size=2560 num_hidden_layers=28 num_attention_heads=20 intermediate_size=12288",
     .also = "ERNIE-4.5-21B-A3B-Base-PT ERNIE-4.5-21B-A3B-Thinking"},
    {"ERNIE-4.5-300B-A47B-PT", "baidu", "ernie4_5_moe",
     "hidden_size=8192 num_hidden_layers=54 num_attention_heads=64 num_key_value_heads=8 "
     "intermediate_size=28672 moe_intermediate_size=3584 moe_k=8 moe_num_shared_experts=0 "
     "moe_layer_start_index=3 tie_word_embeddings=false",
     .also = "ERNIE-4.5-300B-A47B-Base-PT"},
    {"AFM-4.5B", "arcee-ai", "arcee",
     "hidden_size=2560 num_hidden_layers=36 num_attention_heads=20 num_key_value_heads=4 "
     "head_dim=128 intermediate_size=18432 vocab_size=128004 max_position_embeddings=65536",
     .also = "AFM-4.5B-Base"},
};

const ptrdiff_t further_model_count = COUNT_OF(further_models);
