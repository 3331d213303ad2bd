// What rules ask of a job's model: which family, towers that read images, attention and logits that
// are not the usual ones.
#include "core/job/conditions.h"

#define MODELLED_TOWERS (FEATURE_VISION_QWEN3 | FEATURE_VISION_WINDOWS)
#define PLAIN_FEATURES  (FEATURE_TIED | FEATURE_QKV_BIAS | FEATURE_QK_NORM)

static bool is_plain_or_windowed(const struct job *j) // Qwen, Llama and Mistral
{
    return !(j->model.features & ~PLAIN_FEATURES);
}

static bool is_plain_family(const struct job *j)
{
    return is_plain_or_windowed(j) && !job_has_windows(j);
}

bool has_other_layers(const struct job *j)
{
    bool mixed = model_has(&j->model, FEATURE_DELTA_NET) && model_has(&j->model, FEATURE_EXPERTS);
    return mixed || model_has(&j->model, FEATURE_MLA);
}

bool adapts_siglips_images(const struct job *j)
{
    return model_has(&j->model, FEATURE_VISION_SIGLIP) && has_images(j);
}

// peft finds no q_proj where one module computes queries, keys and values.
bool names_parts_of_a_layer(const struct job *j)
{
    unsigned parts = 0;
    if (model_has(&j->model, FEATURE_FUSED_PROJECTIONS))
        parts |= 1u << TARGET_Q | 1u << TARGET_K | 1u << TARGET_V;
    if (model_has(&j->model, FEATURE_FUSED_MLP))
        parts |= 1u << TARGET_GATE | 1u << TARGET_UP;
    return j->lora_targets != LORA_ALL_TARGETS && (j->lora_targets & parts);
}

bool is_special_family(const struct job *j)
{
    return !is_plain_family(j);
}

#define EXPERT_FEATURES                                                                          \
    (FEATURE_EXPERTS | FEATURE_ROUTER_WIDE | FEATURE_ROUTER_FIRST | FEATURE_ROUTER_LOSS |        \
     FEATURE_ROUTER_PLAIN | FEATURE_ROUTER_BALANCE | FEATURE_ROUTER_GROUPS |                     \
     FEATURE_ROUTER_SIGMOID | FEATURE_SHARED_EXPERT | FEATURE_ROTARY_PART | FEATURE_PARTS_LATE | \
     FEATURE_QK_NORM_LATE | FEATURE_QK_NORM_WIDE)

// DeepSpeed's first two stages do not care which module a parameter is in, but whether it decays,
// which the two-dimensional biases of gpt-oss do not.
static bool is_special_but_for_experts(const struct job *j)
{
    feature_set known = PLAIN_FEATURES | MODELLED_TOWERS;
    bool sees_modules = j->strategy != STRATEGY_ZERO1 && j->strategy != STRATEGY_ZERO2;
    if (model_has(&j->model, FEATURE_EXPERTS))
        known |= sees_modules ? EXPERT_FEATURES : ~FEATURE_EXPERT_BIAS;
    return (j->model.features & ~known) || job_has_windows(j);
}

bool is_special_under_trinity(const struct job *j)
{
    return is_verls(j) && is_special_but_for_experts(j);
}

// Frozen, and called by the same lines in modeling_mixtral.py and modeling_qwen3_moe.py.
static bool has_experts_in_turn(const struct job *j)
{
    const unsigned attention = 1u << TARGET_Q | 1u << TARGET_K | 1u << TARGET_V | 1u << TARGET_O;
    bool known = words_have("mixtral|qwen3_moe", '|', str_from(j->model.family->model_type));
    bool held = j->packed ? j->strategy == STRATEGY_SINGLE || j->strategy == STRATEGY_DDP ||
                                j->strategy == STRATEGY_FSDP1
                          : j->strategy != STRATEGY_ZERO3;
    return known && held && j->lora_rank && !(j->lora_targets & ~attention);
}

// transformers before 5 has each expert as a module of its own and calls one after another.
bool is_before_grouped_experts(const struct job *j)
{
    bool older = job_stands_on_4(j) || (is_verls(j) && j->version == 0);
    return model_has(&j->model, FEATURE_EXPERTS) && older && !has_experts_in_turn(j);
}

bool has_images(const struct job *j)
{
    return j->images > 0;
}

bool freezes_part(const struct job *j)
{
    return j->freeze != FREEZE_NONE;
}

bool has_odd_images(const struct job *j)
{
    struct image_grid grid;
    return has_images(j) && !image_grid_of(&grid, &j->model, j->image_width, j->image_height);
}

bool has_no_room_for_text(const struct job *j)
{
    return has_images(j) && j->context && job_image_tokens(j) >= j->context;
}

bool trains_nothing(const struct job *j)
{
    return j->freeze == FREEZE_LANGUAGE && !has_images(j);
}

bool has_idle_tower(const struct job *j)
{
    return !has_images(j) && j->freeze == FREEZE_NONE;
}

// Of a model that is peft's the Trainer has ddp look for what gets none (transformers 5.17,
// trainer.py, ddp_find_unused_parameters).
bool waits_for_tower(const struct job *j)
{
    return has_idle_tower(j) && !(j->lora_rank && (is_trl(j) || job_is_trainers(j)));
}

bool has_untrained_part(const struct job *j)
{
    return !has_images(j) || freezes_part(j);
}

bool has_unfit_tower(const struct job *j)
{
    const struct vision *v = &j->model.vision;
    return has_images(j) && v->out_hidden && v->out_hidden != j->model.hidden;
}

bool names_no_layer(const struct job *j)
{
    return j->freeze == FREEZE_LANGUAGE && j->lora_targets != LORA_ALL_TARGETS;
}

bool has_idle_adapters(const struct job *j)
{
    const unsigned of_windows = 1u << TARGET_GATE | 1u << TARGET_UP | 1u << TARGET_DOWN;
    bool windows = model_has(&j->model, FEATURE_VISION_WINDOWS);
    bool named = windows && (j->lora_targets & of_windows);
    return has_idle_tower(j) && (j->lora_targets == LORA_ALL_TARGETS || named);
}

bool is_not_plain(const struct job *j)
{
    bool plain = j->recipe == RECIPE_HF || j->recipe == RECIPE_TRANSFORMERS;
    bool texts = j->freeze == FREEZE_VISION && !has_images(j) && has_own_adapters(j);
    return !plain && ((j->recipe != RECIPE_TRL && !texts) || j->task != TASK_SFT);
}

bool has_other_attention(const struct job *j)
{
    return has_images(j) && job_attention(j) != ATTENTION_SDPA;
}

bool has_odd_batches(const struct job *j)
{
    return has_images(j) && (j->evaluation_batch || j->batching != BATCHING_FULL);
}

bool keeps_images_elsewhere(const struct job *j)
{
    return has_images(j) && (j->checkpoint_offload || j->activation_offload);
}

bool has_siglip(const struct job *j) // as Gemma 3
{
    return model_has(&j->model, FEATURE_VISION_SIGLIP);
}

bool has_own_attention(const struct job *j)
{
    return j->model.features &
           (FEATURE_MLA | FEATURE_SINKS | FEATURE_ALIBI | FEATURE_WIDE_SCORES | FEATURE_DELTA_NET |
            FEATURE_ROTARY_COMPLEX | FEATURE_SCORES_BIASED | FEATURE_HEADS_AMONG);
}

// Attention that is written out changes nothing for DeepSpeed: its parameters are modules' all the
// same, as those of BLOOM, MPT, GPT-J and Falcon are.
bool is_special_under_zero(const struct job *j)
{
    feature_set written =
        FEATURE_ALIBI | FEATURE_SCORES_BIASED | FEATURE_WIDE_SCORES | FEATURE_HEADS_AMONG;
    if (model_has(&j->model, FEATURE_EXPERTS))
        return is_special_but_for_experts(j);
    return has_own_attention(j) && !model_has(&j->model, written);
}

// Whose attention joins no earlier keys and values (core/models/layer.c, join_cache).
bool generates_without_cache(const struct job *j)
{
    feature_set own = FEATURE_ALIBI | FEATURE_SCORES_BIASED | FEATURE_WIDE_SCORES |
                      FEATURE_HEADS_AMONG | FEATURE_MLA | FEATURE_DELTA_NET;
    return job_generates(j) && model_has(&j->model, own);
}

bool is_latent(const struct job *j)
{
    return model_has(&j->model, FEATURE_MLA);
}

bool asks_verl_for_another(const struct job *j)
{
    return is_policy(j) && j->attention != ATTENTION_AUTO && j->attention != ATTENTION_FLASH2;
}

bool asks_sinks_for_another(const struct job *j)
{
    return model_has(&j->model, FEATURE_SINKS) && job_attention(j) != ATTENTION_EAGER;
}

bool asks_written_for_another(const struct job *j)
{
    return model_has(&j->model, FEATURE_ALIBI | FEATURE_WIDE_SCORES | FEATURE_SCORES_BIASED) &&
           job_attention(j) != ATTENTION_EAGER;
}

bool asks_falcon_for_another(const struct job *j)
{
    return model_has(&j->model, FEATURE_HEADS_AMONG) &&
           (job_attention(j) != ATTENTION_SDPA || j->ring > 1);
}

// OPT-350m. Losses and units know one width and one last norm.
bool strays_from_plain_opt(const struct job *j)
{
    bool plain = (j->strategy == STRATEGY_SINGLE || j->strategy == STRATEGY_DDP) &&
                 j->loss == LOSS_FULL && j->recipe != RECIPE_TRL;
    return model_has(&j->model, FEATURE_WORDS_PROJECTED | FEATURE_NORMS_BEHIND) && !plain;
}

bool is_counted_only(const struct job *j)
{
    return j->model.family->counted_only;
}

bool asks_for_no_sdpa(const struct job *j)
{
    return j->attention != ATTENTION_AUTO && j->attention != ATTENTION_SDPA;
}

bool asks_for_flash3(const struct job *j)
{
    return j->attention == ATTENTION_FLASH3;
}

bool is_asked_eager(const struct job *j)
{
    return j->attention == ATTENTION_EAGER;
}

// Products of fp32 tensors, which autocast makes others of.
bool multiplies_outside_linear(const struct job *j)
{
    return j->model.features & FEATURE_EXPERTS_DENSE;
}

bool is_hybrid(const struct job *j)
{
    return model_has(&j->model, FEATURE_DELTA_NET);
}

bool is_latent_and_another(const struct job *j)
{
    return is_latent(j) && asks_for_no_sdpa(j);
}

bool has_wide_rotary(const struct job *j)
{
    return model_has(&j->model, FEATURE_ROTARY_WIDE);
}

bool has_untied_head(const struct job *j)
{
    return !model_has(&j->model, FEATURE_TIED);
}

bool changes_logits(const struct job *j)
{
    return j->model.features & (FEATURE_LOGIT_CAP | FEATURE_MULTIPLIERS | FEATURE_LOGIT_SCALE);
}
