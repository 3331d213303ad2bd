// Every parameter tensor a model has, as rows of one table: its name, the part it is counted under,
// where it occurs, its shape in terms of the model's dimensions, what a layer's forward calls it,
// and the features it needs or excludes. Counting and training walk the same rows, in the order of
// transformers' modules, in which torch's optimizers and allocator see them; a family that orders
// them otherwise has a row of its own there.
#include "core/model/model.h"

#include "core/base/num.h"

enum dimension {
    ONE,
    HIDDEN,
    WORD_WIDTH,
    VOCAB,
    POSITIONS,
    LABELS,
    HEADS,
    KV_HEADS,
    HEAD_DIM,
    QUERY_WIDTH,
    KV_WIDTH,
    QKV_WIDTH,
    GATED_QUERY_WIDTH,
    DELTA_HEADS,
    DELTA_TWO_HEADS,
    DELTA_KERNEL,
    DELTA_VALUE_DIM,
    DELTA_VALUES,
    DELTA_MIXED,
    DELTA_ALL,
    INTERMEDIATE,
    GATE_AND_UP,
    EXPERT_COUNT,
    EXPERT_GATE_AND_UP,
    EXPERT_GATE_AND_UP_BIAS,
    EXPERT_DOWN,
    SHARED_WIDTH,
    SHARED_GATE_AND_UP,
    QUERY_RANK,
    KV_RANK,
    KV_RANK_AND_ROPE,
    LATENT_QUERY_WIDTH,
    LATENT_KV_WIDTH,
    LATENT_OUTPUT_WIDTH,
    VISION_HIDDEN,
    VISION_QKV,
    VISION_INTERMEDIATE,
    VISION_PATCH,
    VISION_POSITIONS,
    VISION_MERGED,
    VISION_OUT,
};

struct rule {
    const char *name;
    enum part part;
    enum place place;
    enum dimension rows, columns;
    ptrdiff_t role;
    unsigned target;
    feature_set needs;   // all of these features
    feature_set without; // none of these
    bool buffer;
    bool score; // only where rows are scored, in place of the head over words
};

#define ROLE(member)   .role = offsetof(struct layer_parameters, member)
#define VISION(member) .role = offsetof(struct vision_parameters, member)
#define TARGET(which)  .target = 1u << (which)

static const struct rule rules[] = {
    {"embed_tokens.weight", PART_EMBEDDING, PLACE_MODEL, VOCAB, WORD_WIDTH},
    {"embed_positions.weight", PART_EMBEDDING, PLACE_MODEL, POSITIONS, HIDDEN,
     .needs = FEATURE_POSITIONS},
    {"embed_project_out.weight", PART_EMBEDDING, PLACE_MODEL, WORD_WIDTH, HIDDEN,
     .needs = FEATURE_WORDS_PROJECTED},
    {"embed_project_in.weight", PART_EMBEDDING, PLACE_MODEL, HIDDEN, WORD_WIDTH,
     .needs = FEATURE_WORDS_PROJECTED},
    {"word_embeddings_layernorm.weight", PART_EMBEDDING, PLACE_MODEL, HIDDEN, ONE,
     .needs = FEATURE_ALIBI},
    {"word_embeddings_layernorm.bias", PART_EMBEDDING, PLACE_MODEL, HIDDEN, ONE,
     .needs = FEATURE_ALIBI},

    {"layers.{layer}.linear_attn.dt_bias", PART_ATTENTION, PLACE_LINEAR_LAYER, DELTA_HEADS, ONE,
     ROLE(delta_shift), .needs = FEATURE_DELTA_NET},
    {"layers.{layer}.linear_attn.A_log", PART_ATTENTION, PLACE_LINEAR_LAYER, DELTA_HEADS, ONE,
     ROLE(delta_rate), .needs = FEATURE_DELTA_NET},
    {"layers.{layer}.linear_attn.conv1d.weight", PART_ATTENTION, PLACE_LINEAR_LAYER, DELTA_MIXED,
     DELTA_KERNEL, ROLE(delta_conv), .needs = FEATURE_DELTA_NET},
    {"layers.{layer}.linear_attn.in_proj_qkvz.weight", PART_ATTENTION, PLACE_LINEAR_LAYER,
     DELTA_ALL, HIDDEN, ROLE(delta_qkvz), TARGET(TARGET_UNNAMED), .needs = FEATURE_DELTA_FUSED},
    {"layers.{layer}.linear_attn.in_proj_ba.weight", PART_ATTENTION, PLACE_LINEAR_LAYER,
     DELTA_TWO_HEADS, HIDDEN, ROLE(delta_ba), TARGET(TARGET_UNNAMED), .needs = FEATURE_DELTA_FUSED},
    {"layers.{layer}.linear_attn.norm.weight", PART_NORMS, PLACE_LINEAR_LAYER, DELTA_VALUE_DIM, ONE,
     ROLE(delta_norm), .needs = FEATURE_DELTA_NET},
    {"layers.{layer}.linear_attn.out_proj.weight", PART_ATTENTION, PLACE_LINEAR_LAYER, HIDDEN,
     DELTA_VALUES, ROLE(delta_out), TARGET(TARGET_UNNAMED), .needs = FEATURE_DELTA_NET},
    {"layers.{layer}.linear_attn.in_proj_qkv.weight", PART_ATTENTION, PLACE_LINEAR_LAYER,
     DELTA_MIXED, HIDDEN, ROLE(delta_qkv), TARGET(TARGET_UNNAMED), .needs = FEATURE_DELTA_NET,
     .without = FEATURE_DELTA_FUSED},
    {"layers.{layer}.linear_attn.in_proj_z.weight", PART_ATTENTION, PLACE_LINEAR_LAYER,
     DELTA_VALUES, HIDDEN, ROLE(delta_z), TARGET(TARGET_UNNAMED), .needs = FEATURE_DELTA_NET,
     .without = FEATURE_DELTA_FUSED},
    {"layers.{layer}.linear_attn.in_proj_b.weight", PART_ATTENTION, PLACE_LINEAR_LAYER, DELTA_HEADS,
     HIDDEN, ROLE(delta_b), TARGET(TARGET_UNNAMED), .needs = FEATURE_DELTA_NET,
     .without = FEATURE_DELTA_FUSED},
    {"layers.{layer}.linear_attn.in_proj_a.weight", PART_ATTENTION, PLACE_LINEAR_LAYER, DELTA_HEADS,
     HIDDEN, ROLE(delta_a), TARGET(TARGET_UNNAMED), .needs = FEATURE_DELTA_NET,
     .without = FEATURE_DELTA_FUSED},
    {"layers.{layer}.self_attn.sinks", PART_ATTENTION, PLACE_ATTENTION_LAYER, HEADS, ONE,
     ROLE(sinks), .needs = FEATURE_SINKS},
    {"layers.{layer}.self_attn.o_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER, HIDDEN,
     QUERY_WIDTH, ROLE(o), TARGET(TARGET_O), .needs = FEATURE_FUSED_PROJECTIONS},
    {"layers.{layer}.self_attn.qkv_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER, QKV_WIDTH,
     HIDDEN, ROLE(qkv), .target = 1u << TARGET_Q | 1u << TARGET_K | 1u << TARGET_V,
     .needs = FEATURE_FUSED_PROJECTIONS},
    {"layers.{layer}.self_attn.qkv_proj.bias", PART_ATTENTION, PLACE_ATTENTION_LAYER, QKV_WIDTH,
     ONE, ROLE(qkv_bias), .needs = FEATURE_FUSED_PROJECTIONS | FEATURE_QKV_BIAS},
    {"layers.{layer}.self_attn.q_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER,
     GATED_QUERY_WIDTH, HIDDEN, ROLE(q), TARGET(TARGET_Q), .needs = FEATURE_GATED_ATTENTION},
    {"layers.{layer}.self_attn.q_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER, QUERY_WIDTH,
     HIDDEN, ROLE(q), TARGET(TARGET_Q),
     .without = FEATURE_MLA | FEATURE_FUSED_PROJECTIONS | FEATURE_GATED_ATTENTION},
    {"layers.{layer}.self_attn.q_proj.bias", PART_ATTENTION, PLACE_ATTENTION_LAYER, QUERY_WIDTH,
     ONE, ROLE(q_bias), .needs = FEATURE_QKV_BIAS,
     .without = FEATURE_MLA | FEATURE_FUSED_PROJECTIONS},
    {"layers.{layer}.self_attn.k_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER, KV_WIDTH,
     HIDDEN, ROLE(k), TARGET(TARGET_K), .without = FEATURE_MLA | FEATURE_FUSED_PROJECTIONS},
    {"layers.{layer}.self_attn.k_proj.bias", PART_ATTENTION, PLACE_ATTENTION_LAYER, KV_WIDTH, ONE,
     ROLE(k_bias), .needs = FEATURE_QKV_BIAS, .without = FEATURE_MLA | FEATURE_FUSED_PROJECTIONS},
    {"layers.{layer}.self_attn.v_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER, KV_WIDTH,
     HIDDEN, ROLE(v), TARGET(TARGET_V), .without = FEATURE_MLA | FEATURE_FUSED_PROJECTIONS},
    {"layers.{layer}.self_attn.v_proj.bias", PART_ATTENTION, PLACE_ATTENTION_LAYER, KV_WIDTH, ONE,
     ROLE(v_bias), .needs = FEATURE_QKV_BIAS, .without = FEATURE_MLA | FEATURE_FUSED_PROJECTIONS},
    {"layers.{layer}.self_attn.q_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER,
     LATENT_QUERY_WIDTH, HIDDEN, ROLE(q), .needs = FEATURE_MLA, .without = FEATURE_QUERY_LORA},
    {"layers.{layer}.self_attn.q_a_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER, QUERY_RANK,
     HIDDEN, ROLE(q_a), .needs = FEATURE_QUERY_LORA},
    {"layers.{layer}.self_attn.q_a_proj.bias", PART_ATTENTION, PLACE_ATTENTION_LAYER, QUERY_RANK,
     ONE, ROLE(q_a_bias), .needs = FEATURE_QUERY_LORA | FEATURE_QKV_BIAS},
    {"layers.{layer}.self_attn.q_a_layernorm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, QUERY_RANK,
     ONE, ROLE(q_a_norm), .needs = FEATURE_QUERY_LORA},
    {"layers.{layer}.self_attn.q_b_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER,
     LATENT_QUERY_WIDTH, QUERY_RANK, ROLE(q_b), .needs = FEATURE_QUERY_LORA},
    {"layers.{layer}.self_attn.kv_a_proj_with_mqa.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER,
     KV_RANK_AND_ROPE, HIDDEN, ROLE(kv_a), .needs = FEATURE_MLA},
    {"layers.{layer}.self_attn.kv_a_proj_with_mqa.bias", PART_ATTENTION, PLACE_ATTENTION_LAYER,
     KV_RANK_AND_ROPE, ONE, ROLE(kv_a_bias), .needs = FEATURE_MLA | FEATURE_QKV_BIAS},
    {"layers.{layer}.self_attn.kv_a_layernorm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, KV_RANK,
     ONE, ROLE(kv_a_norm), .needs = FEATURE_MLA},
    {"layers.{layer}.self_attn.kv_b_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER,
     LATENT_KV_WIDTH, KV_RANK, ROLE(kv_b), .needs = FEATURE_MLA},
    {"layers.{layer}.self_attn.o_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER, HIDDEN,
     LATENT_OUTPUT_WIDTH, ROLE(o), .needs = FEATURE_MLA},
    {"layers.{layer}.self_attn.o_proj.weight", PART_ATTENTION, PLACE_ATTENTION_LAYER, HIDDEN,
     QUERY_WIDTH, ROLE(o), TARGET(TARGET_O), .without = FEATURE_MLA | FEATURE_FUSED_PROJECTIONS},
    {"layers.{layer}.self_attn.o_proj.bias", PART_ATTENTION, PLACE_ATTENTION_LAYER, HIDDEN, ONE,
     ROLE(o_bias), .needs = FEATURE_OUTPUT_BIAS},
    {"layers.{layer}.self_attn.query_layernorm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, HEAD_DIM,
     ONE, ROLE(q_norm), .needs = FEATURE_QK_NORM_TURNED},
    {"layers.{layer}.self_attn.key_layernorm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, HEAD_DIM,
     ONE, ROLE(k_norm), .needs = FEATURE_QK_NORM_TURNED},
    {"layers.{layer}.self_attn.q_norm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, HEAD_DIM, ONE,
     ROLE(q_norm), .needs = FEATURE_QK_NORM,
     .without = FEATURE_QK_NORM_WIDE | FEATURE_QK_NORM_TURNED},
    {"layers.{layer}.self_attn.q_norm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, QUERY_WIDTH, ONE,
     ROLE(q_norm), .needs = FEATURE_QK_NORM_WIDE, .without = FEATURE_NORM_CENTERED},
    {"layers.{layer}.self_attn.q_norm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, HEADS, HEAD_DIM,
     ROLE(q_norm), .needs = FEATURE_QK_NORM_WIDE | FEATURE_NORM_CENTERED},
    {"layers.{layer}.self_attn.k_norm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, HEAD_DIM, ONE,
     ROLE(k_norm), .needs = FEATURE_QK_NORM,
     .without = FEATURE_QK_NORM_WIDE | FEATURE_QK_NORM_TURNED},
    {"layers.{layer}.self_attn.k_norm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, KV_WIDTH, ONE,
     ROLE(k_norm), .needs = FEATURE_QK_NORM_WIDE, .without = FEATURE_NORM_CENTERED},
    {"layers.{layer}.self_attn.k_norm.weight", PART_NORMS, PLACE_ATTENTION_LAYER, KV_HEADS,
     HEAD_DIM, ROLE(k_norm), .needs = FEATURE_QK_NORM_WIDE | FEATURE_NORM_CENTERED},

    {"layers.{layer}.mlp.gate_up_proj.weight", PART_MLP, PLACE_DENSE_LAYER, GATE_AND_UP, HIDDEN,
     ROLE(gate_up), .target = 1u << TARGET_GATE | 1u << TARGET_UP, .needs = FEATURE_FUSED_MLP},
    {"layers.{layer}.mlp.down_proj.weight", PART_MLP, PLACE_DENSE_LAYER, HIDDEN, INTERMEDIATE,
     ROLE(down), TARGET(TARGET_DOWN), .needs = FEATURE_FUSED_MLP},
    {"layers.{layer}.mlp.gate_proj.weight", PART_MLP, PLACE_DENSE_LAYER, INTERMEDIATE, HIDDEN,
     ROLE(gate), TARGET(TARGET_GATE), .without = FEATURE_FUSED_MLP | FEATURE_NO_GATE},
    {"layers.{layer}.mlp.gate_proj.bias", PART_MLP, PLACE_DENSE_LAYER, INTERMEDIATE, ONE,
     ROLE(gate_bias), .needs = FEATURE_MLP_BIAS, .without = FEATURE_NO_GATE},
    {"layers.{layer}.mlp.up_proj.weight", PART_MLP, PLACE_DENSE_LAYER, INTERMEDIATE, HIDDEN,
     ROLE(up), TARGET(TARGET_UP), .without = FEATURE_FUSED_MLP},
    {"layers.{layer}.mlp.up_proj.bias", PART_MLP, PLACE_DENSE_LAYER, INTERMEDIATE, ONE,
     ROLE(up_bias), .needs = FEATURE_MLP_BIAS},
    {"layers.{layer}.mlp.down_proj.weight", PART_MLP, PLACE_DENSE_LAYER, HIDDEN, INTERMEDIATE,
     ROLE(down), TARGET(TARGET_DOWN), .without = FEATURE_FUSED_MLP},
    {"layers.{layer}.mlp.down_proj.bias", PART_MLP, PLACE_DENSE_LAYER, HIDDEN, ONE, ROLE(down_bias),
     .needs = FEATURE_MLP_BIAS},

    {"layers.{layer}.input_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(input_norm), .needs = FEATURE_NORMS_FIRST},
    {"layers.{layer}.post_attention_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(before_mlp_norm), .needs = FEATURE_NORMS_FIRST},
    {"layers.{layer}.mlp.gate.weight", PART_ROUTER, PLACE_EXPERT_LAYER, EXPERT_COUNT, HIDDEN,
     ROLE(router), TARGET(TARGET_UNNAMED), .needs = FEATURE_ROUTER_FIRST},
    {"layers.{layer}.mlp.gate.bias", PART_ROUTER, PLACE_EXPERT_LAYER, EXPERT_COUNT, ONE,
     ROLE(router_bias), .needs = FEATURE_EXPERT_BIAS | FEATURE_ROUTER_FIRST},
    {"layers.{layer}.mlp.experts.gate_up_proj", PART_EXPERTS, PLACE_EXPERT_LAYER, EXPERT_COUNT,
     EXPERT_GATE_AND_UP, ROLE(gate_up), .target = 1u << TARGET_GATE | 1u << TARGET_UP},
    {"layers.{layer}.mlp.experts.gate_up_proj_bias", PART_EXPERTS, PLACE_EXPERT_LAYER, EXPERT_COUNT,
     EXPERT_GATE_AND_UP_BIAS, ROLE(gate_up_bias), .needs = FEATURE_EXPERT_BIAS},
    {"layers.{layer}.mlp.experts.down_proj", PART_EXPERTS, PLACE_EXPERT_LAYER, EXPERT_COUNT,
     EXPERT_DOWN, ROLE(experts_down), TARGET(TARGET_DOWN)},
    {"layers.{layer}.mlp.experts.down_proj_bias", PART_EXPERTS, PLACE_EXPERT_LAYER, EXPERT_COUNT,
     HIDDEN, ROLE(experts_down_bias), .needs = FEATURE_EXPERT_BIAS},
    {"layers.{layer}.mlp.gate.weight", PART_ROUTER, PLACE_EXPERT_LAYER, EXPERT_COUNT, HIDDEN,
     ROLE(router), TARGET(TARGET_UNNAMED), .without = FEATURE_ROUTER_FIRST},
    {"layers.{layer}.mlp.gate.bias", PART_ROUTER, PLACE_EXPERT_LAYER, EXPERT_COUNT, ONE,
     ROLE(router_bias), .needs = FEATURE_EXPERT_BIAS, .without = FEATURE_ROUTER_FIRST},
    {"layers.{layer}.mlp.gate.e_score_correction_bias", PART_ROUTER, PLACE_EXPERT_LAYER,
     EXPERT_COUNT, ONE, .needs = FEATURE_ROUTER_BALANCE, .buffer = true},
    {"layers.{layer}.mlp.gate.moe_statics.e_score_correction_bias", PART_ROUTER, PLACE_EXPERT_LAYER,
     EXPERT_COUNT, ONE, .needs = FEATURE_ROUTER_STATICS, .buffer = true},
    {"layers.{layer}.mlp.e_score_correction_bias", PART_ROUTER, PLACE_EXPERT_LAYER, EXPERT_COUNT,
     ONE, .needs = FEATURE_ROUTER_SIGMOID, .buffer = true},
    {"layers.{layer}.shared_mlp.input_linear.weight", PART_SHARED_EXPERTS, PLACE_EXPERT_LAYER,
     SHARED_GATE_AND_UP, HIDDEN, ROLE(shared_gate_up), .needs = FEATURE_SHARED_FUSED},
    {"layers.{layer}.mlp.shared_experts.gate_proj.weight", PART_SHARED_EXPERTS, PLACE_EXPERT_LAYER,
     SHARED_WIDTH, HIDDEN, ROLE(shared_gate), TARGET(TARGET_GATE), .needs = FEATURE_SHARED_EXPERT,
     .without = FEATURE_SHARED_FUSED},
    {"layers.{layer}.mlp.shared_experts.up_proj.weight", PART_SHARED_EXPERTS, PLACE_EXPERT_LAYER,
     SHARED_WIDTH, HIDDEN, ROLE(shared_up), TARGET(TARGET_UP), .needs = FEATURE_SHARED_EXPERT,
     .without = FEATURE_SHARED_FUSED},
    {"layers.{layer}.mlp.shared_experts.down_proj.weight", PART_SHARED_EXPERTS, PLACE_EXPERT_LAYER,
     HIDDEN, SHARED_WIDTH, ROLE(shared_down), TARGET(TARGET_DOWN), .needs = FEATURE_SHARED_EXPERT},
    {"layers.{layer}.mlp.shared_expert_gate.weight", PART_SHARED_EXPERTS, PLACE_EXPERT_LAYER, ONE,
     HIDDEN, ROLE(shared_weight), TARGET(TARGET_UNNAMED), .needs = FEATURE_SHARED_GATE},

    {"layers.{layer}.input_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(input_norm), .without = FEATURE_NORMS_AFTER | FEATURE_NORMS_FIRST},
    {"layers.{layer}.input_layernorm.bias", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(input_norm_bias), .needs = FEATURE_LAYER_NORM},
    {"layers.{layer}.post_attention_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(before_mlp_norm),
     .without = FEATURE_POST_NORMS | FEATURE_NORMS_AFTER | FEATURE_ONE_NORM | FEATURE_NORMS_FIRST},
    {"layers.{layer}.post_attention_layernorm.bias", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(before_mlp_norm_bias), .needs = FEATURE_LAYER_NORM, .without = FEATURE_ONE_NORM},
    {"layers.{layer}.post_attention_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(after_attention_norm), .needs = FEATURE_POST_NORMS},
    {"layers.{layer}.post_attention_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(after_attention_norm), .needs = FEATURE_NORMS_AFTER},
    {"layers.{layer}.pre_feedforward_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(before_mlp_norm), .needs = FEATURE_POST_NORMS},
    {"layers.{layer}.post_feedforward_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(after_mlp_norm), .needs = FEATURE_POST_NORMS},
    {"layers.{layer}.post_feedforward_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(after_mlp_norm), .needs = FEATURE_NORMS_AFTER},

    {"layers.{layer}.post_self_attn_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(after_attention_norm), .needs = FEATURE_FURTHER_NORMS},
    {"layers.{layer}.post_mlp_layernorm.weight", PART_NORMS, PLACE_LAYER, HIDDEN, ONE,
     ROLE(after_mlp_norm), .needs = FEATURE_FURTHER_NORMS},

    {"norm.weight", PART_NORMS, PLACE_MODEL, HIDDEN, ONE, .without = FEATURE_NORMS_BEHIND},
    {"norm.bias", PART_NORMS, PLACE_MODEL, HIDDEN, ONE, .needs = FEATURE_LAYER_NORM,
     .without = FEATURE_NORMS_BEHIND},
    {"lm_head.weight", PART_HEAD, PLACE_MODEL, VOCAB, WORD_WIDTH, .without = FEATURE_TIED},
    {"lm_head.bias", PART_HEAD, PLACE_MODEL, VOCAB, ONE, .needs = FEATURE_HEAD_BIAS},
    {"score.weight", PART_HEAD, PLACE_MODEL, LABELS, WORD_WIDTH, .score = true},

    {"visual.patch_embed.proj.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN, VISION_PATCH,
     VISION(patch), .needs = FEATURE_VISION_QWEN3},
    {"visual.patch_embed.proj.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN, VISION_PATCH,
     VISION(patch), .needs = FEATURE_VISION_WINDOWS},
    {"visual.patch_embed.proj.bias", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(patch_bias), .needs = FEATURE_VISION_QWEN3},
    {"visual.pos_embed.weight", PART_VISION, PLACE_MODEL, VISION_POSITIONS, VISION_HIDDEN,
     VISION(positions), .needs = FEATURE_VISION_QWEN3},
    {"visual.blocks.{block}.norm1.weight", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN, ONE,
     VISION(norm), .without = FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.norm1.bias", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN, ONE,
     VISION(norm_bias), .without = FEATURE_VISION_WINDOWS | FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.norm2.weight", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN, ONE,
     VISION(norm2), .without = FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.norm2.bias", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN, ONE,
     VISION(norm2_bias), .without = FEATURE_VISION_WINDOWS | FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.attn.qkv.weight", PART_VISION, PLACE_VISION_BLOCK, VISION_QKV,
     VISION_HIDDEN, VISION(qkv), .without = FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.attn.qkv.bias", PART_VISION, PLACE_VISION_BLOCK, VISION_QKV, ONE,
     VISION(qkv_bias), .without = FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.attn.proj.weight", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN,
     VISION_HIDDEN, VISION(proj), .without = FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.attn.proj.bias", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN, ONE,
     VISION(proj_bias), .without = FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.mlp.fc1.weight", PART_VISION, PLACE_VISION_BLOCK, VISION_INTERMEDIATE,
     VISION_HIDDEN, VISION(fc1), .without = FEATURE_VISION_WINDOWS | FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.mlp.fc1.bias", PART_VISION, PLACE_VISION_BLOCK, VISION_INTERMEDIATE,
     ONE, VISION(fc1_bias), .without = FEATURE_VISION_WINDOWS | FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.mlp.fc2.weight", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN,
     VISION_INTERMEDIATE, VISION(fc2), .without = FEATURE_VISION_WINDOWS | FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.mlp.fc2.bias", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN, ONE,
     VISION(fc2_bias), .without = FEATURE_VISION_WINDOWS | FEATURE_VISION_SIGLIP},
    {"visual.blocks.{block}.mlp.gate_proj.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_INTERMEDIATE, VISION_HIDDEN, VISION(gate), .needs = FEATURE_VISION_WINDOWS},
    {"visual.blocks.{block}.mlp.gate_proj.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_INTERMEDIATE, ONE, VISION(gate_bias), .needs = FEATURE_VISION_WINDOWS},
    {"visual.blocks.{block}.mlp.up_proj.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_INTERMEDIATE, VISION_HIDDEN, VISION(up), .needs = FEATURE_VISION_WINDOWS},
    {"visual.blocks.{block}.mlp.up_proj.bias", PART_VISION, PLACE_VISION_BLOCK, VISION_INTERMEDIATE,
     ONE, VISION(up_bias), .needs = FEATURE_VISION_WINDOWS},
    {"visual.blocks.{block}.mlp.down_proj.weight", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN,
     VISION_INTERMEDIATE, VISION(fc2), .needs = FEATURE_VISION_WINDOWS},
    {"visual.blocks.{block}.mlp.down_proj.bias", PART_VISION, PLACE_VISION_BLOCK, VISION_HIDDEN,
     ONE, VISION(fc2_bias), .needs = FEATURE_VISION_WINDOWS},
    {"visual.merger.ln_q.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE, VISION(norm),
     .needs = FEATURE_VISION_WINDOWS},
    {"visual.merger.mlp.0.weight", PART_VISION, PLACE_MODEL, VISION_MERGED, VISION_MERGED,
     VISION(fc1), .needs = FEATURE_VISION_WINDOWS},
    {"visual.merger.mlp.0.bias", PART_VISION, PLACE_MODEL, VISION_MERGED, ONE, VISION(fc1_bias),
     .needs = FEATURE_VISION_WINDOWS},
    {"visual.merger.mlp.2.weight", PART_VISION, PLACE_MODEL, VISION_OUT, VISION_MERGED, VISION(fc2),
     .needs = FEATURE_VISION_WINDOWS},
    {"visual.merger.mlp.2.bias", PART_VISION, PLACE_MODEL, VISION_OUT, ONE, VISION(fc2_bias),
     .needs = FEATURE_VISION_WINDOWS},
    {"visual.merger.norm.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE, VISION(norm),
     .needs = FEATURE_VISION_QWEN3},
    {"visual.merger.norm.bias", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE, VISION(norm_bias),
     .needs = FEATURE_VISION_QWEN3},
    {"visual.merger.linear_fc1.weight", PART_VISION, PLACE_MODEL, VISION_MERGED, VISION_MERGED,
     VISION(fc1), .needs = FEATURE_VISION_QWEN3},
    {"visual.merger.linear_fc1.bias", PART_VISION, PLACE_MODEL, VISION_MERGED, ONE,
     VISION(fc1_bias), .needs = FEATURE_VISION_QWEN3},
    {"visual.merger.linear_fc2.weight", PART_VISION, PLACE_MODEL, VISION_OUT, VISION_MERGED,
     VISION(fc2), .needs = FEATURE_VISION_QWEN3},
    {"visual.merger.linear_fc2.bias", PART_VISION, PLACE_MODEL, VISION_OUT, ONE, VISION(fc2_bias),
     .needs = FEATURE_VISION_QWEN3},
    {"visual.deepstack_merger_list.{block}.norm.weight", PART_VISION, PLACE_VISION_DEEPSTACK,
     VISION_MERGED, ONE, VISION(norm)},
    {"visual.deepstack_merger_list.{block}.norm.bias", PART_VISION, PLACE_VISION_DEEPSTACK,
     VISION_MERGED, ONE, VISION(norm_bias)},
    {"visual.deepstack_merger_list.{block}.linear_fc1.weight", PART_VISION, PLACE_VISION_DEEPSTACK,
     VISION_MERGED, VISION_MERGED, VISION(fc1)},
    {"visual.deepstack_merger_list.{block}.linear_fc1.bias", PART_VISION, PLACE_VISION_DEEPSTACK,
     VISION_MERGED, ONE, VISION(fc1_bias)},
    {"visual.deepstack_merger_list.{block}.linear_fc2.weight", PART_VISION, PLACE_VISION_DEEPSTACK,
     VISION_OUT, VISION_MERGED, VISION(fc2)},
    {"visual.deepstack_merger_list.{block}.linear_fc2.bias", PART_VISION, PLACE_VISION_DEEPSTACK,
     VISION_OUT, ONE, VISION(fc2_bias)},

    {"vision_tower.embeddings.patch_embedding.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN,
     VISION_PATCH, VISION(patch), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.embeddings.patch_embedding.bias", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(patch_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.embeddings.position_embedding.weight", PART_VISION, PLACE_MODEL,
     VISION_POSITIONS, VISION_HIDDEN, VISION(positions), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.layer_norm1.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(norm), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.layer_norm1.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(norm_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.self_attn.k_proj.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, VISION_HIDDEN, VISION(k), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.self_attn.k_proj.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(k_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.self_attn.v_proj.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, VISION_HIDDEN, VISION(v), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.self_attn.v_proj.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(v_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.self_attn.q_proj.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, VISION_HIDDEN, VISION(q), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.self_attn.q_proj.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(q_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.self_attn.out_proj.weight", PART_VISION,
     PLACE_VISION_BLOCK, VISION_HIDDEN, VISION_HIDDEN, VISION(proj),
     .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.self_attn.out_proj.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(proj_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.layer_norm2.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(norm2), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.layer_norm2.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(norm2_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.mlp.fc1.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_INTERMEDIATE, VISION_HIDDEN, VISION(fc1), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.mlp.fc1.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_INTERMEDIATE, ONE, VISION(fc1_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.mlp.fc2.weight", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, VISION_INTERMEDIATE, VISION(fc2), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.encoder.layers.{block}.mlp.fc2.bias", PART_VISION, PLACE_VISION_BLOCK,
     VISION_HIDDEN, ONE, VISION(fc2_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.post_layernorm.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(norm), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.post_layernorm.bias", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(norm_bias), .needs = FEATURE_VISION_SIGLIP},
    {"vision_tower.head.probe", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE, VISION(pooling),
     .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.attention.in_proj_weight", PART_VISION, PLACE_MODEL, VISION_QKV,
     VISION_HIDDEN, VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.attention.in_proj_bias", PART_VISION, PLACE_MODEL, VISION_QKV, ONE,
     VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.attention.out_proj.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN,
     VISION_HIDDEN, VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.attention.out_proj.bias", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.layernorm.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.layernorm.bias", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.mlp.fc1.weight", PART_VISION, PLACE_MODEL, VISION_INTERMEDIATE,
     VISION_HIDDEN, VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.mlp.fc1.bias", PART_VISION, PLACE_MODEL, VISION_INTERMEDIATE, ONE,
     VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.mlp.fc2.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN,
     VISION_INTERMEDIATE, VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"vision_tower.head.mlp.fc2.bias", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(pooling_end), .needs = FEATURE_VISION_POOLED},
    {"multi_modal_projector.mm_input_projection_weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN,
     HIDDEN, VISION(proj), .needs = FEATURE_VISION_SIGLIP},
    {"multi_modal_projector.mm_soft_emb_norm.weight", PART_VISION, PLACE_MODEL, VISION_HIDDEN, ONE,
     VISION(norm2), .needs = FEATURE_VISION_SIGLIP},
};

// Products of dimensions stay far below 2^64: load.c bounds every factor at 2^20 or less but for
// the patch (channels * temporal * patch^2 <= 2^36) and an expert (2^41). Sums over layers and
// experts saturate.
static uint64_t dimension_of(const struct model *m, enum dimension d)
{
    const struct latent_attention *l = &m->latent;
    const struct vision *v = &m->vision;
    uint64_t temporal = v->temporal_patch ? v->temporal_patch : 1;
    uint64_t channels = v->channels ? v->channels : 3;
    uint64_t delta_keys = m->delta.key_heads * m->delta.key_head_dim;
    uint64_t delta_values = m->delta.value_heads * m->delta.value_head_dim;
    const uint64_t values[] = {
        [ONE] = 1,
        [HIDDEN] = m->hidden,
        [WORD_WIDTH] = m->word_width ? m->word_width : m->hidden,
        [VOCAB] = m->vocab,
        [POSITIONS] = m->max_position + m->first_position,
        [LABELS] = m->labels,
        [HEADS] = m->heads,
        [KV_HEADS] = m->kv_heads,
        [HEAD_DIM] = m->head_dim,
        [QUERY_WIDTH] = m->heads * m->head_dim,
        [KV_WIDTH] = m->kv_heads * m->head_dim,
        [QKV_WIDTH] = (m->heads + 2 * m->kv_heads) * m->head_dim,
        [GATED_QUERY_WIDTH] = 2 * m->heads * m->head_dim,
        [DELTA_HEADS] = m->delta.value_heads,
        [DELTA_TWO_HEADS] = 2 * m->delta.value_heads,
        [DELTA_KERNEL] = m->delta.kernel,
        [DELTA_VALUE_DIM] = m->delta.value_head_dim,
        [DELTA_VALUES] = delta_values,
        [DELTA_MIXED] = 2 * delta_keys + delta_values,
        [DELTA_ALL] = 2 * delta_keys + 2 * delta_values,
        [INTERMEDIATE] = m->intermediate,
        [GATE_AND_UP] = 2 * m->intermediate,
        [EXPERT_COUNT] = m->experts.count,
        [EXPERT_GATE_AND_UP] = 2 * m->experts.intermediate * m->hidden,
        [EXPERT_GATE_AND_UP_BIAS] = 2 * m->experts.intermediate,
        [EXPERT_DOWN] = m->experts.intermediate * m->hidden,
        [SHARED_WIDTH] = m->experts.shared_intermediate,
        [SHARED_GATE_AND_UP] = 2 * m->experts.shared_intermediate,
        [QUERY_RANK] = l->query_rank,
        [KV_RANK] = l->kv_rank,
        [KV_RANK_AND_ROPE] = l->kv_rank + l->rope_head_dim,
        [LATENT_QUERY_WIDTH] = m->heads * (l->nope_head_dim + l->rope_head_dim),
        [LATENT_KV_WIDTH] = m->heads * (l->nope_head_dim + l->value_head_dim),
        [LATENT_OUTPUT_WIDTH] = m->heads * l->value_head_dim,
        [VISION_HIDDEN] = v->hidden,
        [VISION_QKV] = 3 * v->hidden,
        [VISION_INTERMEDIATE] = v->intermediate,
        [VISION_PATCH] = channels * temporal * v->patch * v->patch,
        [VISION_POSITIONS] = v->positions,
        [VISION_MERGED] = v->merge * v->merge * v->hidden,
        [VISION_OUT] = v->out_hidden,
    };
    return values[d];
}

static uint64_t linear_layers(const struct model *m)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < m->layers; i++)
        count += m->layer[i].linear;
    return count;
}

static uint64_t copies_of(const struct model *m, enum place place)
{
    uint64_t expert_layers = model_expert_layers(m);
    switch (place) {
    case PLACE_ATTENTION_LAYER:
        return m->layers - linear_layers(m);
    case PLACE_LINEAR_LAYER:
        return linear_layers(m);
    case PLACE_MODEL:
        return 1;
    case PLACE_LAYER:
        return m->layers;
    case PLACE_DENSE_LAYER:
        return m->layers - expert_layers;
    case PLACE_EXPERT_LAYER:
        return expert_layers;
    case PLACE_VISION_BLOCK:
        return m->vision.depth;
    case PLACE_VISION_DEEPSTACK:
        return model_has(m, FEATURE_VISION_QWEN3) ? m->vision.deepstack : 0;
    }
    __builtin_trap();
}

bool tensor_is_in(const struct tensor *t, const struct layer_kind *layer)
{
    return t->place == PLACE_LAYER ||
           t->place == (layer->linear ? PLACE_LINEAR_LAYER : PLACE_ATTENTION_LAYER) ||
           t->place == (layer->experts ? PLACE_EXPERT_LAYER : PLACE_DENSE_LAYER);
}

bool tensor_is_folded(const struct tensor *t)
{
    return t->part == PART_EXPERTS || t->part == PART_ROUTER;
}

// peft 0.21, utils/transformers_weight_conversion.py, with transformers 5.17,
// conversion_mapping.py: the families whose experts had modules of their own before. qwen2_moe,
// whose names these are, is not among them.
bool model_folds_experts(const struct model *m)
{
    return words_have("qwen3_moe|olmoe|glm4_moe|ernie4_5_moe|hunyuan_v1_moe|deepseek_v2|"
                      "deepseek_v3|qwen3_next|mixtral|minimax_m2",
                      '|', str_from(m->family->model_type));
}

bool model_merges_experts(const struct model *m)
{
    return model_folds_experts(m) || str_is(str_from(m->family->model_type), "qwen2_moe");
}

bool model_numbers_experts(const struct model *m)
{
    return words_have("mixtral|minimax_m2", '|', str_from(m->family->model_type));
}

// Beside experts that have adapters the names of an MLP's layers stand for theirs alone: dense
// layers and shared experts get none.
bool tensor_has_adapter(const struct tensor *t, bool folds, unsigned targets)
{
    const unsigned of_mlp = 1u << TARGET_GATE | 1u << TARGET_UP | 1u << TARGET_DOWN;
    bool left_out = tensor_is_folded(t) ? !folds : folds && (t->target & of_mlp);
    return (t->target & targets) && !left_out;
}

static bool applies(const struct rule *r, const struct model *m)
{
    bool is_other_head = r->part == PART_HEAD && r->score != (m->labels > 0);
    return (m->features & r->needs) == r->needs && !(m->features & r->without) && !is_other_head;
}

static ptrdiff_t find_part(struct str name, struct str part)
{
    for (ptrdiff_t i = 0; i + part.n <= name.n; i++)
        if (str_starts(str_slice(name, i, name.n), part))
            return i;
    return -1;
}

// The name as the family's modules have it.
static const char *name_in(struct arena *a, const struct family *f, const char *name)
{
    struct words pairs = words_of(f->names ? f->names : "", ' ');
    struct str full = str_from(name);
    while (words_next(&pairs)) {
        struct str_cut pair = str_cut(pairs.word, '=');
        bool outside = str_starts(pair.head, STR("^"));
        if (outside)
            pair.head = str_slice(pair.head, 1, pair.head.n);
        ptrdiff_t at = find_part(full, pair.head);
        if (at == 0 || (at > 0 && !outside))
            full = str_format(a, "%.*s%.*s%.*s", (int)at, full.p, STR_ARGS(pair.tail),
                              (int)(full.n - at - pair.head.n), full.p + at + pair.head.n);
    }
    return full.p;
}

static struct tensor tensor_of(const struct rule *r, const struct model *m)
{
    struct tensor t = {.name = r->name,
                       .part = r->part,
                       .place = r->place,
                       .copies = copies_of(m, r->place),
                       .role = r->role,
                       .target = r->target,
                       .buffer = r->buffer};
    t.shape[0] = dimension_of(m, r->rows);
    t.shape[1] = dimension_of(m, r->columns);
    t.elements = sat_mul(t.shape[0], t.shape[1]);
    return t;
}

bool parameters_of(struct parameters *p, struct arena *a, const struct model *m, struct error *e)
{
    struct parameters sum = {0};
    struct tensor *tensors = NEW(a, struct tensor, COUNT_OF(rules));
    for (ptrdiff_t i = 0; i < COUNT_OF(rules); i++) {
        if (!applies(&rules[i], m))
            continue;
        struct tensor t = tensor_of(&rules[i], m);
        if (t.copies == 0)
            continue;
        t.name = name_in(a, m->family, t.name);
        tensors[sum.tensor_count++] = t;
        uint64_t elements = sat_mul(t.elements, t.copies);
        sum.by_part[t.part] = sat_add(sum.by_part[t.part], elements);
        sum.total = sat_add(sum.total, elements);
    }
    // Bytes must be countable too: no precision has more than four a parameter.
    if (sat_mul(sum.total, 4) == U64_SATURATED)
        return FAIL(e, OVERFLOW, m->source, "the model has more parameters than can be counted");
    sum.tensors = tensors;
    sum.active = sum.total - sum.by_part[PART_EXPERTS];
    if (m->experts.count)
        sum.active += sum.by_part[PART_EXPERTS] / m->experts.count * m->experts.per_token;
    *p = sum;
    return true;
}

static const struct {
    const char *name, *key;
} parts[] = {
    [PART_EMBEDDING] = {"embedding", "embedding"},
    [PART_ATTENTION] = {"attention", "attention"},
    [PART_MLP] = {"mlp", "mlp"},
    [PART_EXPERTS] = {"experts", "experts"},
    [PART_SHARED_EXPERTS] = {"shared experts", "shared_experts"},
    [PART_ROUTER] = {"router", "router"},
    [PART_NORMS] = {"norms", "norms"},
    [PART_HEAD] = {"head", "head"},
    [PART_VISION] = {"vision tower", "vision_tower"},
};

const char *part_name(enum part p)
{
    return parts[p].name;
}

const char *part_key(enum part p)
{
    return parts[p].key;
}
