// The families without experts: what transformers 5.17 builds for each model_type. `defaults` are
// the values of its configuration classes (models/*/configuration_*.py) for keys that published
// config.json files leave out.
#include "core/model/family.h"

#define OLMO_LAYERS                                                                     \
    (FEATURE_NORMS_AFTER | FEATURE_NORM_WIDE | FEATURE_QK_NORM | FEATURE_QK_NORM_WIDE | \
     FEATURE_ROTARY_WIDE)
#define GEMMA_LAYERS  (FEATURE_POST_NORMS | FEATURE_NORM_FROM_ONE | FEATURE_EMBEDDING_SCALE)
#define GEMMA3_LAYERS (GEMMA_LAYERS | FEATURE_QK_NORM | FEATURE_QK_NORM_LATE | FEATURE_LOCAL_ROTARY)
#define GLM_LAYERS \
    (FEATURE_FUSED_MLP | FEATURE_ROTARY_PART | FEATURE_PARTS_LATE | FEATURE_ROTARY_PAIRS)
#define COHERE_LAYERS                                                                    \
    (FEATURE_NORM_CENTERED | FEATURE_PARALLEL | FEATURE_ONE_NORM | FEATURE_ROTARY_CAST | \
     FEATURE_LOGIT_SCALE)
#define HELD_PARTS (FEATURE_ROTARY_PART | FEATURE_PARTS_LATE | FEATURE_PARTS_HELD)
#define GPT_LAYERS                                                                             \
    (FEATURE_LAYER_NORM | FEATURE_NO_GATE | FEATURE_FUSED_PROJECTIONS |                        \
     FEATURE_SPLIT_PROJECTIONS | FEATURE_HEADS_LAST | FEATURE_QKV_BIAS | FEATURE_OUTPUT_BIAS | \
     FEATURE_MLP_BIAS)
#define GPT_NAMES                                                                    \
    "^layers=h ^embed_tokens=wte ^embed_positions=wpe self_attn.o_proj=attn.c_proj " \
    "self_attn.qkv_proj=attn.c_attn mlp.up_proj=mlp.c_fc mlp.down_proj=mlp.c_proj "  \
    "input_layernorm=ln_1 post_attention_layernorm=ln_2 ^norm=ln_f"
#define GLM_TEXT                                                                           \
    "vocab_size=151552 num_key_value_heads=2 head_dim=128 max_position_embeddings=131072 " \
    "attention_bias=true partial_rotary_factor=0.5"
#define GEMMA3_TEXT                                                               \
    "vocab_size=262208 num_attention_heads=8 num_key_value_heads=4 head_dim=256 " \
    "max_position_embeddings=131072 sliding_window=4096 tie_word_embeddings=true"

const struct family dense_families[] = {
    {
        .model_type = "llama",
        .title = "Llama",
        .reads = READS_ATTENTION_BIAS | READS_MLP_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=32000 max_position_embeddings=2048",
    },
    {
        .model_type = "qwen3",
        .title = "Qwen3",
        .features = FEATURE_QK_NORM,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_IF_SWITCHED_ON,
        .defaults = "vocab_size=151936 num_key_value_heads=32 head_dim=128 "
                    "max_position_embeddings=32768 sliding_window=4096 max_window_layers=28",
    },
    {
        .model_type = "granite",
        .title = "Granite 3",
        .scores_nothing = true,
        .features = FEATURE_MULTIPLIERS,
        .reads = READS_ATTENTION_BIAS | READS_MLP_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=32000 max_position_embeddings=2048",
    },
    {
        .model_type = "granitemoehybrid",
        .title = "Granite 4",
        .scores_nothing = true,
        .features = FEATURE_MULTIPLIERS | FEATURE_FUSED_MLP | FEATURE_SHARED_FUSED,
        .reads = READS_ATTENTION_BIAS | READS_POSITIONS,
        .refuses = "num_local_experts",
        .window = WINDOW_NEVER,
        .names = "mlp.gate_up_proj=shared_mlp.input_linear mlp.down_proj=shared_mlp.output_linear",
        .defaults = "vocab_size=32000 intermediate_size=11008 max_position_embeddings=2048 "
                    "num_local_experts=8 "
                    "shared_intermediate_size=1024",
    },
    {
        .model_type = "mistral",
        .title = "Mistral",
        .window = WINDOW_ALL,
        .defaults = "vocab_size=32000 num_key_value_heads=8 "
                    "max_position_embeddings=131072 sliding_window=4096",
    },
    {
        .model_type = "ministral",
        .title = "Ministral",
        .window = WINDOW_ALL,
        .defaults = "vocab_size=32000 num_key_value_heads=8 "
                    "max_position_embeddings=131072 sliding_window=4096",
    },
    {
        .model_type = "ministral3",
        .title = "Ministral 3",
        .features = FEATURE_QUERY_SCALE,
        .window = WINDOW_ALL,
        .defaults = "vocab_size=131072 num_key_value_heads=8 head_dim=128 "
                    "max_position_embeddings=262144",
    },
    {
        .model_type = "glm",
        .title = "GLM-4-9B",
        .features = GLM_LAYERS,
        .reads = READS_QKV_BIAS,
        .window = WINDOW_NEVER,
        .defaults = GLM_TEXT,
    },
    {
        .model_type = "glm4",
        .title = "GLM-4",
        .features = GLM_LAYERS | FEATURE_FURTHER_NORMS,
        .reads = READS_QKV_BIAS,
        .window = WINDOW_NEVER,
        .defaults = GLM_TEXT,
    },
    {
        .model_type = "hunyuan_v1_dense",
        .title = "Hunyuan",
        .features = FEATURE_QK_NORM | FEATURE_QK_NORM_TURNED,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=290943 max_position_embeddings=2048",
    },
    {
        .model_type = "ernie4_5",
        .title = "Ernie 4.5",
        .scores_nothing = true,
        .features = FEATURE_ROTARY_PAIRS | FEATURE_ROTARY_CAST | FEATURE_ROTARY_WIDE,
        .reads = READS_USE_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=103424 num_key_value_heads=2 head_dim=128 "
                    "max_position_embeddings=131072 tie_word_embeddings=true",
    },
    {
        .model_type = "seed_oss",
        .title = "Seed-OSS",
        .reads = READS_QKV_BIAS | READS_OUTPUT_BIAS | READS_MLP_BIAS | READS_DROPOUT,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=155136 num_key_value_heads=8 head_dim=128 attention_bias=true "
                    "max_position_embeddings=524288 residual_dropout=0.1",
    },
    {
        .model_type = "exaone4",
        .title = "EXAONE 4",
        .features =
            FEATURE_NORMS_AFTER | FEATURE_QK_NORM | FEATURE_QK_NORM_LATE | FEATURE_WINDOWED_ROTARY,
        .window = WINDOW_PERIODIC,
        .window_period = 4,
        .defaults = "vocab_size=102400 num_key_value_heads=32 max_position_embeddings=2048 "
                    "sliding_window=4096",
    },
    {
        .model_type = "cohere",
        .title = "Command-R",
        .scores_nothing = true,
        .features = COHERE_LAYERS,
        .reads = READS_ATTENTION_BIAS | READS_USE_QK_NORM,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=256000 max_position_embeddings=8192 tie_word_embeddings=true",
    },
    {
        .model_type = "cohere2",
        .title = "Command-R7B and Command-A",
        .scores_nothing = true,
        .features = COHERE_LAYERS | FEATURE_WINDOWED_ROTARY,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_PERIODIC,
        .window_period = 4,
        .defaults = "vocab_size=256000 max_position_embeddings=8192 sliding_window=4096 "
                    "tie_word_embeddings=true",
    },
    {
        .model_type = "nemotron",
        .title = "Nemotron and Minitron",
        .features = FEATURE_LAYER_NORM | FEATURE_NORM_PLUS_ONE | FEATURE_NO_GATE |
                    FEATURE_ROTARY_PART | FEATURE_PARTS_LATE | FEATURE_PARTS_NAMED,
        .reads = READS_ATTENTION_BIAS | READS_MLP_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=256000 max_position_embeddings=4096 hidden_act=relu2 "
                    "partial_rotary_factor=0.5",
    },
    {
        .model_type = "arcee",
        .title = "Arcee",
        .features = FEATURE_NO_GATE,
        .reads = READS_ATTENTION_BIAS | READS_MLP_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=32000 max_position_embeddings=4096 hidden_act=relu2",
    },
    {
        .model_type = "starcoder2",
        .title = "StarCoder2",
        .features = FEATURE_LAYER_NORM | FEATURE_NO_GATE,
        .reads = READS_USE_BIAS | READS_DROPOUT,
        .window = WINDOW_ALL,
        .names = "mlp.up_proj=mlp.c_fc mlp.down_proj=mlp.c_proj",
        .defaults = "vocab_size=49152 num_key_value_heads=2 max_position_embeddings=4096 "
                    "hidden_act=gelu_pytorch_tanh use_bias=true tie_word_embeddings=true",
    },
    {
        .model_type = "stablelm",
        .title = "StableLM",
        .features = FEATURE_LAYER_NORM | HELD_PARTS,
        .reads = READS_USE_QKV_BIAS | READS_DROPOUT,
        .modules = {true, false, false},
        .refuses = "qk_layernorm use_parallel_residual",
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=50304 num_key_value_heads=32 max_position_embeddings=4096 "
                    "partial_rotary_factor=0.25",
    },
    {
        .model_type = "phi",
        .title = "Phi-1.5 and Phi-2",
        .features = FEATURE_LAYER_NORM | FEATURE_NO_GATE | FEATURE_PARALLEL | FEATURE_ONE_NORM |
                    HELD_PARTS | FEATURE_QKV_BIAS | FEATURE_OUTPUT_BIAS | FEATURE_MLP_BIAS |
                    FEATURE_HEAD_BIAS,
        .reads = READS_DROPOUT,
        .modules = {true, true, false},
        .refuses = "qk_layernorm",
        .window = WINDOW_NEVER,
        .names = "self_attn.o_proj=self_attn.dense mlp.up_proj=mlp.fc1 mlp.down_proj=mlp.fc2 "
                 "^norm=final_layernorm",
        .defaults = "vocab_size=51200 max_position_embeddings=2048 hidden_act=gelu_new "
                    "partial_rotary_factor=0.5",
    },
    {
        .model_type = "gpt_neox",
        .title = "GPT-NeoX and Pythia",
        .features = FEATURE_LAYER_NORM | FEATURE_NO_GATE | FEATURE_FUSED_PROJECTIONS |
                    FEATURE_SPLIT_PROJECTIONS | FEATURE_ROTARY_PART | FEATURE_PARTS_LATE |
                    FEATURE_MLP_BIAS,
        .reads = READS_HEADS_ONLY | READS_ATTENTION_BIAS | READS_DROPOUT | READS_PARALLEL,
        .modules = {true, true, false},
        .window = WINDOW_NEVER,
        .names = "embed_tokens=embed_in self_attn.=attention. o_proj=dense "
                 "qkv_proj=query_key_value up_proj=dense_h_to_4h down_proj=dense_4h_to_h "
                 "^norm=final_layer_norm lm_head=embed_out",
        .defaults = "vocab_size=50432 max_position_embeddings=2048 hidden_act=gelu "
                    "attention_bias=true use_parallel_residual=true rotary_pct=0.25",
    },
    {
        .model_type = "gpt2",
        .title = "GPT-2",
        .features = GPT_LAYERS | FEATURE_POSITIONS | FEATURE_NO_ROTARY,
        .reads = READS_HEADS_ONLY | READS_DROPOUT,
        .modules = {true, true, true},
        .refuses = "add_cross_attention",
        .window = WINDOW_NEVER,
        .names = GPT_NAMES,
        .defaults = "vocab_size=50257 n_positions=1024 activation_function=gelu_new "
                    "resid_pdrop=0.1 embd_pdrop=0.1 attn_pdrop=0.1 tie_word_embeddings=true",
    },
    {
        .model_type = "gpt_bigcode",
        .title = "StarCoder",
        .features = GPT_LAYERS | FEATURE_POSITIONS | FEATURE_NO_ROTARY,
        .reads = READS_HEADS_ONLY | READS_DROPOUT | READS_MULTI_QUERY,
        .modules = {true, true, false},
        .causal_buffer = true,
        .refuses = "add_cross_attention",
        .window = WINDOW_NEVER,
        .names = GPT_NAMES,
        .defaults = "vocab_size=50257 n_positions=1024 activation_function=gelu_pytorch_tanh "
                    "resid_pdrop=0.1 embd_pdrop=0.1 attn_pdrop=0.1 multi_query=true "
                    "tie_word_embeddings=true",
    },
    {
        .model_type = "opt",
        .title = "OPT",
        .features = FEATURE_LAYER_NORM | FEATURE_NO_GATE | FEATURE_POSITIONS | FEATURE_NO_ROTARY |
                    FEATURE_QUERIES_SCALED,
        .reads = READS_HEADS_ONLY | READS_DROPOUT | READS_ENABLE_BIAS | READS_NORM_PLACE,
        .refuses = "_remove_final_layer_norm",
        .window = WINDOW_NEVER,
        .names = "^layers=decoder.layers ^embed_project=decoder.project ^embed_=decoder.embed_ "
                 "o_proj=out_proj mlp.up_proj=fc1 "
                 "mlp.down_proj=fc2 input_layernorm=self_attn_layer_norm "
                 "post_attention_layernorm=final_layer_norm ^norm=decoder.final_layer_norm",
        .defaults = "vocab_size=50272 max_position_embeddings=2048 activation_function=relu "
                    "dropout=0.1 enable_bias=true first_position=2 tie_word_embeddings=true",
    },
    {
        .model_type = "gptj",
        .title = "GPT-J",
        .features = FEATURE_LAYER_NORM | FEATURE_NO_GATE | FEATURE_PARALLEL | FEATURE_ONE_NORM |
                    FEATURE_MLP_BIAS | FEATURE_HEAD_BIAS | FEATURE_NO_ROTARY | FEATURE_WIDE_SCORES,
        .reads = READS_HEADS_ONLY | READS_DROPOUT,
        .modules = {true, true, true},
        .window = WINDOW_NEVER,
        .names =
            "^layers=h ^embed_tokens=wte self_attn.=attn. o_proj=out_proj mlp.up_proj=mlp.fc_in "
            "mlp.down_proj=mlp.fc_out input_layernorm=ln_1 ^norm=ln_f",
        .defaults = "vocab_size=50400 n_positions=2048 rotary_dim=64 activation_function=gelu_new",
    },
    {
        .model_type = "bloom",
        .title = "BLOOM",
        .features = FEATURE_LAYER_NORM | FEATURE_NO_GATE | FEATURE_FUSED_PROJECTIONS |
                    FEATURE_QKV_BIAS | FEATURE_OUTPUT_BIAS | FEATURE_MLP_BIAS | FEATURE_NO_ROTARY |
                    FEATURE_ALIBI,
        .reads = READS_HEADS_ONLY | READS_DROPOUT,
        .modules = {false, false, true},
        .refuses = "apply_residual_connection_post_layernorm slow_but_exact",
        .window = WINDOW_NEVER,
        .names = "^layers=h ^embed_tokens=word_embeddings self_attn.o_proj=self_attention.dense "
                 "self_attn.qkv_proj=self_attention.query_key_value mlp.up_proj=mlp.dense_h_to_4h "
                 "mlp.down_proj=mlp.dense_4h_to_h ^norm=ln_f",
        .defaults = "vocab_size=250880 max_position_embeddings=2048 activation=bloom "
                    "tie_word_embeddings=true",
    },
    {
        .model_type = "falcon",
        .title = "Falcon",
        .features = FEATURE_LAYER_NORM | FEATURE_NO_GATE | FEATURE_FUSED_PROJECTIONS |
                    FEATURE_PARALLEL | FEATURE_ONE_NORM | FEATURE_MASKED | FEATURE_HEADS_AMONG,
        .reads = READS_MULTI_QUERY | READS_FALCON,
        .refuses = "hidden_dropout attention_dropout",
        .window = WINDOW_NEVER,
        .names = "^layers=h ^embed_tokens=word_embeddings self_attn.o_proj=self_attention.dense "
                 "self_attn.qkv_proj=self_attention.query_key_value mlp.up_proj=mlp.dense_h_to_4h "
                 "mlp.down_proj=mlp.dense_4h_to_h ^norm=ln_f",
        .defaults = "vocab_size=65024 max_position_embeddings=2048 multi_query=true "
                    "parallel_attn=true tie_word_embeddings=true",
    },
    {
        .model_type = "mpt",
        .title = "MPT",
        .features = FEATURE_NO_GATE | FEATURE_FUSED_PROJECTIONS | FEATURE_NO_ROTARY |
                    FEATURE_SCORES_BIASED | FEATURE_NORM_UNBIASED | FEATURE_SPLIT_PROJECTIONS,
        .reads = READS_HEADS_ONLY,
        .refuses = "attn_config.clip_qkv attn_config.attn_pdrop",
        .window = WINDOW_NEVER,
        .names = "^layers=blocks ^embed_tokens=wte self_attn.o_proj=attn.out_proj "
                 "self_attn.qkv_proj=attn.Wqkv mlp.=ffn. input_layernorm=norm_1 "
                 "post_attention_layernorm=norm_2 ^norm=norm_f",
        .defaults = "vocab_size=50368 max_seq_len=2048 tie_word_embeddings=true",
    },
    {
        .model_type = "phi3",
        .title = "Phi-3 and Phi-4",
        .features = FEATURE_FUSED_PROJECTIONS | FEATURE_FUSED_MLP | FEATURE_ROTARY_PART,
        .window = WINDOW_ALL,
        .defaults = "vocab_size=32064 max_position_embeddings=4096",
    },
    {
        .model_type = "olmo2",
        .title = "OLMo 2",
        .features = OLMO_LAYERS,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=50304 max_position_embeddings=2048",
    },
    {
        .model_type = "olmo3",
        .title = "OLMo 3",
        .features = OLMO_LAYERS | FEATURE_LOCAL_ROTARY,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_PERIODIC,
        .window_period = 4,
        .defaults = "vocab_size=50304 max_position_embeddings=2048 sliding_window=4096",
    },
    {
        .model_type = "smollm3",
        .title = "SmolLM3",
        .reads = READS_ATTENTION_BIAS | READS_MLP_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=128256 num_key_value_heads=4 max_position_embeddings=32768 "
                    "no_rope_layer_interval=4 tie_word_embeddings=true",
    },
    {
        .model_type = "qwen2",
        .title = "Qwen2 and Qwen2.5",
        .features = FEATURE_QKV_BIAS,
        .window = WINDOW_IF_SWITCHED_ON,
        .defaults = "vocab_size=151936 num_key_value_heads=32 max_position_embeddings=32768 "
                    "sliding_window=4096 max_window_layers=28",
    },
    {
        .model_type = "qwen3_vl",
        .title = "Qwen3-VL",
        .scores_nothing = true,
        .features = FEATURE_QK_NORM | FEATURE_VISION_QWEN3,
        .nested = true,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=151936 num_key_value_heads=32 head_dim=128 "
                    "max_position_embeddings=128000 " QWEN3_VISION,
    },
    {
        .model_type = "qwen2_5_vl",
        .title = "Qwen2.5-VL",
        .scores_nothing = true,
        .features = FEATURE_QKV_BIAS | FEATURE_VISION_WINDOWS,
        .nested = true,
        .window = WINDOW_IF_SWITCHED_ON,
        .defaults =
            "vocab_size=152064 num_key_value_heads=8 max_position_embeddings=32768 "
            "sliding_window=4096 max_window_layers=80 vision.depth=32 vision.hidden_size=3584 "
            "vision.intermediate_size=3420 vision.num_heads=16 vision.patch_size=14 "
            "vision.in_channels=3 vision.temporal_patch_size=2 vision.spatial_merge_size=2 "
            "vision.window_size=112 vision.out_hidden_size=3584 vision.full_count=4 "
            "vision.full_at.0=7 vision.full_at.1=15 vision.full_at.2=23 vision.full_at.3=31",
    },
    {
        .model_type = "gemma",
        .title = "Gemma",
        .features = FEATURE_NORM_FROM_ONE | FEATURE_EMBEDDING_SCALE,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=256000 num_key_value_heads=16 head_dim=256 "
                    "max_position_embeddings=8192 tie_word_embeddings=true",
    },
    {
        .model_type = "gemma2",
        .title = "Gemma 2",
        .features = GEMMA_LAYERS | FEATURE_ATTENTION_CAP | FEATURE_LOGIT_CAP,
        .reads = READS_ATTENTION_BIAS | READS_SOFTCAPS,
        .window = WINDOW_PERIODIC,
        .window_period = 2,
        .defaults = "vocab_size=256000 num_key_value_heads=4 head_dim=256 "
                    "max_position_embeddings=8192 sliding_window=4096 tie_word_embeddings=true",
    },
    {
        .model_type = "gemma3_text",
        .title = "Gemma 3, text only",
        .features = GEMMA3_LAYERS,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_PERIODIC,
        .window_period = 6,
        .defaults = GEMMA3_TEXT,
    },
    {
        .model_type = "gemma3",
        .title = "Gemma 3 with vision",
        .features = GEMMA3_LAYERS | FEATURE_VISION_SIGLIP,
        .nested = true,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_PERIODIC,
        .window_period = 6,
        .defaults = GEMMA3_TEXT " "
                                "vision.num_hidden_layers=12 vision.hidden_size=768 "
                                "vision.intermediate_size=3072 vision.num_attention_heads=12 "
                                "vision.patch_size=16 vision.num_channels=3 vision.image_size=224",
    },
    // Of code that comes with the weights, which transformers 5.17 lacks: counted as their
    // published files are.
    {
        .model_type = "internlm2",
        .title = "InternLM 2",
        .features = FEATURE_FUSED_PROJECTIONS,
        .unmeasured = true,
        .counted_only = true,
        .refuses = "bias",
        .window = WINDOW_NEVER,
        .names = "embed_tokens=tok_embeddings self_attn.qkv_proj=attention.wqkv "
                 "self_attn.o_proj=attention.wo mlp.gate_proj=feed_forward.w1 "
                 "mlp.up_proj=feed_forward.w3 mlp.down_proj=feed_forward.w2 "
                 "input_layernorm=attention_norm post_attention_layernorm=ffn_norm lm_head=output",
        .defaults = "vocab_size=103168 max_position_embeddings=2048",
    },
    {
        .model_type = "internlm3",
        .title = "InternLM 3",
        .unmeasured = true,
        .counted_only = true,
        .refuses = "bias qkv_bias",
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=128512 max_position_embeddings=32768",
    },
    {
        .model_type = "baichuan",
        .title = "Baichuan 2",
        .features = FEATURE_FUSED_PROJECTIONS,
        .reads = READS_HEADS_ONLY,
        .unmeasured = true,
        .counted_only = true,
        .window = WINDOW_NEVER,
        .names = "qkv_proj=W_pack",
        .defaults = "vocab_size=125696 max_position_embeddings=4096",
    },
    {
        .model_type = "qwen",
        .title = "Qwen 1",
        .features = FEATURE_FUSED_PROJECTIONS | FEATURE_QKV_BIAS,
        .reads = READS_HEADS_ONLY | READS_HALF_MLP,
        .unmeasured = true,
        .counted_only = true,
        .window = WINDOW_NEVER,
        .names = "^layers=h ^embed_tokens=wte self_attn.qkv_proj=attn.c_attn "
                 "self_attn.o_proj=attn.c_proj mlp.gate_proj=mlp.w2 mlp.up_proj=mlp.w1 "
                 "mlp.down_proj=mlp.c_proj input_layernorm=ln_1 post_attention_layernorm=ln_2 "
                 "^norm=ln_f",
        .defaults = "vocab_size=151936 max_position_embeddings=8192",
    },
    {
        .model_type = "chatglm",
        .title = "ChatGLM 2 and 3",
        .features = FEATURE_FUSED_PROJECTIONS | FEATURE_FUSED_MLP | FEATURE_QKV_BIAS,
        .unmeasured = true,
        .counted_only = true,
        .window = WINDOW_NEVER,
        .names = "^layers=encoder.layers ^embed_tokens=embedding.word_embeddings "
                 "self_attn.qkv_proj=self_attention.query_key_value "
                 "self_attn.o_proj=self_attention.dense mlp.gate_up_proj=mlp.dense_h_to_4h "
                 "mlp.down_proj=mlp.dense_4h_to_h ^norm=encoder.final_layernorm "
                 "lm_head=output_layer",
        .defaults = "vocab_size=65024 seq_length=8192 kv_channels=128",
    },
};

const ptrdiff_t dense_family_count = COUNT_OF(dense_families);
