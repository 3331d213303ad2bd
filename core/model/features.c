// The features that are told to people, by name.
#include "core/model/model.h"

const struct feature_name feature_names[] = {
    {FEATURE_TIED, "tied head"},
    {FEATURE_QKV_BIAS, "q/k/v biases"},
    {FEATURE_OUTPUT_BIAS, "output bias"},
    {FEATURE_MLP_BIAS, "MLP biases"},
    {FEATURE_QK_NORM, "q/k norm"},
    {FEATURE_POST_NORMS, "four norms a layer"},
    {FEATURE_SINKS, "attention sinks"},
    {FEATURE_MLA, "latent attention (MLA)"},
    {FEATURE_QUERY_LORA, "low-rank queries"},
    {FEATURE_EXPERTS, "mixture of experts"},
    {FEATURE_SHARED_EXPERT, "shared expert"},
    {FEATURE_EXPERT_BIAS, "expert biases"},
    {FEATURE_ROUTER_BALANCE, "router balancing bias"},
    {FEATURE_ATTENTION_CAP, "soft-capped attention"},
    {FEATURE_LOGIT_CAP, "soft-capped logits"},
    {FEATURE_FUSED_PROJECTIONS, "fused projections"},
    {FEATURE_FURTHER_NORMS, "four norms a layer"},
    {FEATURE_NORMS_AFTER, "norms after each block"},
    {FEATURE_MULTIPLIERS, "multipliers"},
    {FEATURE_DELTA_NET, "linear attention (gated delta net)"},
    {FEATURE_GATED_ATTENTION, "gated attention"},
    {FEATURE_EXPERTS_DENSE, "every expert over every token"},
    {FEATURE_VISION_QWEN3, "vision tower (Qwen3-VL)"},
    {FEATURE_VISION_SIGLIP, "vision tower (SigLIP)"},
    {FEATURE_VISION_WINDOWS, "vision tower (Qwen2.5-VL)"},
};

const ptrdiff_t feature_name_count = COUNT_OF(feature_names);
