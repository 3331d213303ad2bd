// The families that are mixtures of experts, and the hybrids of linear attention, with and without
// them. What a row says is in family.c.
#include "core/model/family.h"

#define QWEN35_VISION                                                                            \
    "vision.patch_size=16 vision.in_channels=3 vision.temporal_patch_size=2 "                    \
    "vision.spatial_merge_size=2 vision.num_position_embeddings=2304 "                           \
    "vision.depth=27 vision.hidden_size=1152 vision.intermediate_size=4304 vision.num_heads=16 " \
    "vision.out_hidden_size=3584"
#define DEEPSEEK_LATENT                                                         \
    "kv_lora_rank=512 qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 " \
    "q_lora_rank=1536"
#define GRANITE_EXPERTS                                                  \
    "vocab_size=32000 max_position_embeddings=2048 num_local_experts=8 " \
    "num_experts_per_tok=2"
#define HYBRID_LAYERS                                                                        \
    (FEATURE_DELTA_NET | FEATURE_GATED_ATTENTION | FEATURE_QK_NORM | FEATURE_NORM_FROM_ONE | \
     FEATURE_ROTARY_PART | FEATURE_PARTS_LATE)
#define HYBRID                                                                     \
    "head_dim=256 partial_rotary_factor=0.25 linear_num_key_heads=16 "             \
    "linear_num_value_heads=32 linear_key_head_dim=128 linear_value_head_dim=128 " \
    "linear_conv_kernel_dim=4 full_attention_interval=4"
#define LLAMA4_TEXT                                                               \
    "vocab_size=202048 num_key_value_heads=8 head_dim=128 "                       \
    "max_position_embeddings=131072 attention_chunk_size=8192 "                   \
    "no_rope_layer_interval=4 num_local_experts=16 num_experts_per_tok=1 "        \
    "interleave_moe_layer_step=1 intermediate_size_mlp=16384 n_shared_experts=1 " \
    "use_qk_norm=true"

const struct family expert_families[] = {
    {
        .model_type = "qwen3_moe",
        .title = "Qwen3 mixture of experts",
        .features = FEATURE_QK_NORM | FEATURE_EXPERTS | FEATURE_ROUTER_LOSS,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_IF_SWITCHED_ON,
        .defaults = "vocab_size=151936 num_key_value_heads=4 max_position_embeddings=32768 "
                    "sliding_window=4096 max_window_layers=28 num_experts=128 "
                    "num_experts_per_tok=8 moe_intermediate_size=768 decoder_sparse_step=1",
    },
    {
        .model_type = "mixtral",
        .title = "Mixtral",
        .features =
            FEATURE_EXPERTS | FEATURE_ROUTER_WIDE | FEATURE_ROUTER_FIRST | FEATURE_ROUTER_LOSS,
        .window = WINDOW_ALL,
        .defaults = "vocab_size=32000 num_key_value_heads=8 max_position_embeddings=131072 "
                    "num_local_experts=8 num_experts_per_tok=2",
    },
    {
        .model_type = "qwen3_vl_moe",
        .title = "Qwen3-VL mixture of experts",
        .scores_nothing = true,
        .features = FEATURE_QK_NORM | FEATURE_EXPERTS | FEATURE_VISION_QWEN3,
        .nested = true,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=151936 num_key_value_heads=16 head_dim=128 "
                    "max_position_embeddings=128000 "
                    "num_experts=60 num_experts_per_tok=4 moe_intermediate_size=1408 "
                    "decoder_sparse_step=1 " QWEN3_VISION,
    },
    {
        .model_type = "gpt_oss",
        .title = "gpt-oss",
        .features = FEATURE_EXPERTS | FEATURE_EXPERT_BIAS | FEATURE_SINKS | FEATURE_ROUTER_FIRST |
                    FEATURE_ROTARY_HALVES | FEATURE_NORM_WIDE | FEATURE_ROUTER_LOSS,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_PERIODIC,
        .window_period = 2,
        .defaults = "vocab_size=201088 num_key_value_heads=8 head_dim=64 attention_bias=true "
                    "max_position_embeddings=131072 sliding_window=128 num_local_experts=128 "
                    "num_experts_per_tok=4",
    },
    {
        .model_type = "deepseek_v3",
        .title = "DeepSeek-V3",
        .features = FEATURE_MLA | FEATURE_EXPERTS | FEATURE_SHARED_EXPERT | FEATURE_ROUTER_BALANCE,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=129280 max_position_embeddings=4096 n_routed_experts=256 n_group=8 "
                    "num_experts_per_tok=8 n_shared_experts=1 first_k_dense_replace=3 "
                    "moe_intermediate_size=2048 kv_lora_rank=512 qk_nope_head_dim=128 "
                    "qk_rope_head_dim=64 v_head_dim=128 q_lora_rank=1536",
    },

    {
        .model_type = "kimi_k2", // transformers has it as DeepSeek-V3
        .title = "Kimi-K2",
        .features = FEATURE_MLA | FEATURE_EXPERTS | FEATURE_SHARED_EXPERT | FEATURE_ROUTER_BALANCE,
        .reads = READS_ATTENTION_BIAS,
        .unmeasured = true,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=163840 max_position_embeddings=131072 n_routed_experts=384 "
                    "num_experts_per_tok=8 n_shared_experts=1 first_k_dense_replace=1 "
                    "moe_intermediate_size=2048 " DEEPSEEK_LATENT,
    },
    {
        .model_type = "deepseek_v2",
        .title = "DeepSeek-V2",
        .features = FEATURE_MLA | FEATURE_EXPERTS | FEATURE_SHARED_EXPERT | FEATURE_ROUTER_SOFTMAX |
                    FEATURE_ROTARY_COMPLEX,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        // its class has no experts a token, and could not run; the published models have six
        .defaults = "vocab_size=102400 max_position_embeddings=2048 n_routed_experts=64 "
                    "n_shared_experts=2 first_k_dense_replace=0 num_experts_per_tok=6 "
                    "moe_intermediate_size=1407 " DEEPSEEK_LATENT,
    },
    {
        .model_type = "glm4_moe",
        .title = "GLM-4.5 and GLM-4.6",
        .scores_nothing = true,
        .features = FEATURE_EXPERTS | FEATURE_SHARED_EXPERT | FEATURE_ROUTER_BALANCE |
                    FEATURE_ROTARY_PART | FEATURE_PARTS_LATE,
        .reads = READS_QKV_BIAS | READS_QK_NORM,
        .floors_heads = true, // by its own defaults 4096 over 96 heads
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=151552 num_key_value_heads=8 max_position_embeddings=131072 "
                    "partial_rotary_factor=0.5 n_routed_experts=128 num_experts_per_tok=8 "
                    "n_shared_experts=1 first_k_dense_replace=1 moe_intermediate_size=1408",
    },
    {
        .model_type = "minimax_m2",
        .title = "MiniMax-M2",
        .scores_nothing = true,
        .features = FEATURE_QK_NORM | FEATURE_QK_NORM_WIDE | FEATURE_ROTARY_PART |
                    FEATURE_PARTS_LATE | FEATURE_EXPERTS | FEATURE_ROUTER_FIRST |
                    FEATURE_ROUTER_SIGMOID | FEATURE_ROUTER_LOSS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=200064 num_key_value_heads=8 head_dim=128 "
                    "max_position_embeddings=196608 num_local_experts=256 num_experts_per_tok=8",
    },
    {
        .model_type = "qwen2_moe",
        .title = "Qwen2 mixture of experts",
        .features = FEATURE_QKV_BIAS | FEATURE_EXPERTS | FEATURE_ROUTER_FIRST |
                    FEATURE_ROUTER_LOSS | FEATURE_SHARED_EXPERT | FEATURE_SHARED_GATE |
                    FEATURE_IDLE_MASK,
        .reads = READS_NORM_TOPK,
        .window = WINDOW_IF_SWITCHED_ON,
        .defaults = "vocab_size=151936 num_key_value_heads=16 max_position_embeddings=32768 "
                    "sliding_window=4096 max_window_layers=28 num_experts=60 "
                    "num_experts_per_tok=4 moe_intermediate_size=1408 decoder_sparse_step=1 "
                    "shared_expert_intermediate_size=5632",
    },
    {
        .model_type = "olmoe",
        .title = "OLMoE",
        .scores_nothing = true,
        .features = FEATURE_QK_NORM | FEATURE_QK_NORM_WIDE | FEATURE_EXPERTS |
                    FEATURE_ROUTER_FIRST | FEATURE_ROUTER_LOSS,
        .reads = READS_ATTENTION_BIAS | READS_NORM_TOPK,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=50304 max_position_embeddings=4096 num_experts=64 "
                    "num_experts_per_tok=8",
    },
    {
        .model_type = "granitemoe",
        .title = "Granite 3 mixture of experts",
        .scores_nothing = true,
        .features = FEATURE_MULTIPLIERS | FEATURE_EXPERTS | FEATURE_ROUTER_FIRST |
                    FEATURE_ROUTER_LAST | FEATURE_NORMS_FIRST,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = GRANITE_EXPERTS,
    },
    {
        .model_type = "granitemoeshared",
        .title = "Granite 3 mixture of experts with a shared one",
        .scores_nothing = true,
        .features = FEATURE_MULTIPLIERS | FEATURE_EXPERTS | FEATURE_ROUTER_FIRST |
                    FEATURE_ROUTER_LAST | FEATURE_NORMS_FIRST | FEATURE_SHARED_EXPERT |
                    FEATURE_SHARED_FUSED,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = GRANITE_EXPERTS " shared_intermediate_size=0",
    },
    {
        .model_type = "llama4_text",
        .title = "Llama 4, text only",
        .scores_nothing = true,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_DENSE | FEATURE_SHARED_EXPERT |
                    FEATURE_ROTARY_COMPLEX,
        .reads = READS_ATTENTION_BIAS | READS_L2_NORM,
        .window = WINDOW_PERIODIC,
        .window_period = 4,
        .defaults = LLAMA4_TEXT,
    },
    {
        .model_type = "llama4",
        .title = "Llama 4, text only",
        .scores_nothing = true,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_DENSE | FEATURE_SHARED_EXPERT |
                    FEATURE_ROTARY_COMPLEX,
        .reads = READS_ATTENTION_BIAS | READS_L2_NORM,
        .nested = true, // with a tower, which is left out as AutoModelForCausalLM does
        .window = WINDOW_PERIODIC,
        .window_period = 4,
        .defaults = LLAMA4_TEXT,
    },

    {
        .model_type = "ernie4_5_moe",
        .title = "Ernie 4.5 mixture of experts",
        .scores_nothing = true,
        .features = FEATURE_ROTARY_PAIRS | FEATURE_ROTARY_CAST | FEATURE_ROTARY_WIDE |
                    FEATURE_EXPERTS | FEATURE_ROUTER_FIRST | FEATURE_ROUTER_STATICS |
                    FEATURE_SHARED_EXPERT | FEATURE_SHARED_FIRST | FEATURE_ROUTER_LOSS,
        .reads = READS_USE_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=103424 num_key_value_heads=4 max_position_embeddings=131072 "
                    "moe_num_experts=64 moe_k=6 moe_num_shared_experts=2 moe_layer_start_index=1 "
                    "moe_layer_interval=1 moe_intermediate_size=1536 tie_word_embeddings=true",
    },
    {
        .model_type = "hunyuan_v1_moe",
        .title = "Hunyuan mixture of experts",
        .features = FEATURE_QK_NORM | FEATURE_QK_NORM_TURNED | FEATURE_EXPERTS |
                    FEATURE_ROUTER_FIRST | FEATURE_SHARED_EXPERT | FEATURE_SHARED_FIRST,
        .reads = READS_ATTENTION_BIAS,
        .unmeasured = true,
        .window = WINDOW_NEVER,
        .names = "mlp.shared_experts=mlp.shared_mlp mlp.gate.weight=mlp.gate.wg.weight",
        .defaults = "vocab_size=290943 max_position_embeddings=2048 num_experts=1 moe_topk=1 "
                    "n_shared_experts=1",
    },

    // Hybrids of gated delta nets and attention, without the packages that have kernels for them.
    {
        .model_type = "qwen3_next",
        .title = "Qwen3-Next",
        .features = HYBRID_LAYERS | FEATURE_DELTA_FUSED | FEATURE_EXPERTS | FEATURE_ROUTER_FIRST |
                    FEATURE_ROUTER_LOSS | FEATURE_SHARED_EXPERT | FEATURE_SHARED_GATE,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=151936 num_key_value_heads=2 max_position_embeddings=32768 "
                    "num_experts=512 num_experts_per_tok=10 moe_intermediate_size=512 "
                    "decoder_sparse_step=1 shared_expert_intermediate_size=512 " HYBRID,
    },
    {
        .model_type = "qwen3_5_text",
        .title = "Qwen3.5, text only",
        .features = HYBRID_LAYERS,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=248320 num_key_value_heads=4 max_position_embeddings=32768 " HYBRID,
    },
    {
        .model_type = "qwen3_5_moe_text",
        .title = "Qwen3.5 mixture of experts, text only",
        .scores_nothing = true,
        .features = HYBRID_LAYERS | FEATURE_EXPERTS | FEATURE_ROUTER_FIRST | FEATURE_ROUTER_LOSS |
                    FEATURE_SHARED_EXPERT | FEATURE_SHARED_GATE,
        .reads = READS_ATTENTION_BIAS,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=248320 num_key_value_heads=2 max_position_embeddings=32768 "
                    "num_experts=256 num_experts_per_tok=8 moe_intermediate_size=512 "
                    "shared_expert_intermediate_size=512 " HYBRID,
    },
    {
        .model_type = "qwen3_5",
        .title = "Qwen3.5",
        .features = HYBRID_LAYERS | FEATURE_VISION_QWEN3,
        .reads = READS_ATTENTION_BIAS,
        .nested = true,
        .unmeasured = true,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=248320 num_key_value_heads=4 max_position_embeddings=32768 " HYBRID
                    " " QWEN35_VISION,
    },
    {
        .model_type = "qwen3_5_moe",
        .title = "Qwen3.5 mixture of experts",
        .scores_nothing = true,
        .features = HYBRID_LAYERS | FEATURE_EXPERTS | FEATURE_ROUTER_FIRST | FEATURE_ROUTER_LOSS |
                    FEATURE_SHARED_EXPERT | FEATURE_SHARED_GATE | FEATURE_VISION_QWEN3,
        .reads = READS_ATTENTION_BIAS,
        .nested = true,
        .unmeasured = true,
        .window = WINDOW_NEVER,
        .defaults = "vocab_size=248320 num_key_value_heads=2 max_position_embeddings=32768 "
                    "num_experts=256 num_experts_per_tok=8 moe_intermediate_size=512 "
                    "shared_expert_intermediate_size=512 " HYBRID " " QWEN35_VISION,
    },
};

const ptrdiff_t expert_family_count = COUNT_OF(expert_families);
