// What rules ask of adapters beside experts. peft 0.21 reaches experts and their router in some
// families, where it adds its adapters to the weights themselves (core/ops/folded.c).
#include "core/job/conditions.h"

enum {
    GATE = 1 << TARGET_GATE,
    UP = 1 << TARGET_UP,
    DOWN = 1 << TARGET_DOWN,
    OF_EXPERTS = GATE | UP | DOWN,
};

// The families whose attention and block of experts are run with adapters as they are without.
bool has_other_experts(const struct job *j)
{
    const char *known = "qwen3_moe|qwen2_moe|mixtral|olmoe|glm4_moe|minimax_m2";
    return !words_have(known, '|', str_from(j->model.family->model_type));
}

static bool is_gpt_oss(const struct job *j)
{
    return str_is(str_from(j->model.family->model_type), "gpt_oss");
}

// transformers 5.17, quantizers/auto.py, merge_quantization_configs: ValueError, of a
// checkpoint that is packed otherwise.
bool packs_gpt_oss(const struct job *j)
{
    return j->packed && is_gpt_oss(j);
}

// Experts and routers of gpt-oss are no linear layers: peft's all-linear is its attention, seen on
// fake tensors (tests/runs/sinks_fake.jsonl).
bool adapts_other_experts(const struct job *j)
{
    bool attention = j->lora_targets == LORA_ALL_TARGETS || !(j->lora_targets & OF_EXPERTS);
    return has_other_experts(j) && !(attention && is_gpt_oss(j));
}

bool folds_experts(const struct job *j)
{
    return job_folds_experts(j) && (j->lora_targets & (OF_EXPERTS | 1u << TARGET_UNNAMED));
}

// With peft 0.20 (axolotl 0.19) and 0.18 (LLaMA-Factory 0.9.5).
bool names_experts_elsewhere(const struct job *j)
{
    return model_folds_experts(&j->model) && !job_folds_experts(j) &&
           j->lora_targets != LORA_ALL_TARGETS && (j->lora_targets & OF_EXPERTS);
}

// utils/transformers_weight_conversion.py, _convert_peft_config_moe: "Cannot convert PEFT target(s)
// gate_proj without also targeting up_proj".
bool folds_half(const struct job *j)
{
    unsigned both = j->lora_targets & (GATE | UP);
    return folds_experts(j) && both && both != (GATE | UP);
}

bool names_numbered_experts(const struct job *j)
{
    return folds_experts(j) && model_numbers_experts(&j->model) &&
           j->lora_targets != LORA_ALL_TARGETS;
}

// DeepSpeed gathers what is in a module without children (core/strategies/zero/zero3.c, is_leaf);
// what becomes of adapters there that are layers of their own, and elsewhere, nobody has seen.
bool folds_outside_leaves(const struct job *j)
{
    const char *leaves = "mixtral|qwen3_moe";
    return model_has(&j->model, FEATURE_EXPERTS) &&
           (j->lora_targets & (OF_EXPERTS | 1u << TARGET_UNNAMED)) &&
           !words_have(leaves, '|', str_from(j->model.family->model_type));
}
