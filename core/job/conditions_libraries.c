// Where a library decides by itself: which classes Accelerate wraps, in which type weights and
// adapters come, whether a dropout is left on.
#include "core/job/conditions.h"

bool has_nothing_to_widen(const struct job *j) // that would otherwise be narrow
{
    return !j->lora_rank || j->recipe != RECIPE_TRANSFORMERS;
}

// Seen on an H200 (accelerate 1.15, utils/dataclasses.py, set_auto_wrap_policy): "Could not find
// the transformer layer class Qwen3_5VisionBlock in the model", and SiglipTextEmbeddings.
// transformers 5.17 has both among the _no_split_modules of models without them.
const char *job_wrapped_classes(const struct job *p)
{
    static const struct {
        const char *type, *classes;
    } rows[] = {
        {"gemma3", "Gemma3DecoderLayer,SiglipEncoderLayer"},
        {"qwen3_5_text", "Qwen3_5DecoderLayer"},
        {"qwen3_5_moe_text", "Qwen3_5MoeDecoderLayer"},
    };
    bool sharded = p->strategy == STRATEGY_FSDP1 || p->strategy == STRATEGY_FSDP2;
    bool written = p->recipe == RECIPE_HF && p->target; // for the Trainer in train.py
    bool wraps = is_trl(p) || is_trainers(p) || written;
    for (ptrdiff_t i = 0; sharded && wraps && i < COUNT_OF(rows); i++)
        if (str_is(str_from(p->model.family->model_type), rows[i].type))
            return rows[i].classes;
    return NULL;
}

// transformers 5.17, models/auto/modeling_auto.py, MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES:
// what TRL's reward trainer loads, and axolotl's. LLaMA-Factory has a head of its own.
bool scores_nothing(const struct job *j)
{
    return j->task == TASK_REWARD && j->model.family->scores_nothing &&
           j->recipe != RECIPE_LLAMAFACTORY;
}

// use_liger_kernel replaces the model's forward pass by that of a language model (liger_kernel
// 0.8.5, transformers/monkey_patch.py); the reward trainer of trl 1.16 does not keep it from that,
// as its others do. Seen under fsdp2: 'Qwen3ForSequenceClassification' has no attribute 'lm_head'.
bool scores_under_liger(const struct job *j)
{
    return has_liger_layers(j) && j->task == TASK_REWARD && j->recipe == RECIPE_TRL;
}

// trl 1.16, trainer/sft_trainer.py and the others; the recorded runs of hf do as TRL does
// (scripts/record_adapters.py).
bool job_narrows_adapters(const struct job *p)
{
    return p->packed && (p->recipe == RECIPE_TRL || !job_autocasts(p));
}

static bool keeps_adapters_wide(const struct job *p)
{
    return p->recipe == RECIPE_TRANSFORMERS || p->recipe == RECIPE_LLAMAFACTORY;
}

// Parameters that zero.Init has cut are in bf16, and DeepSpeed 0.19 casts no other then (runtime/
// engine.py, _cast_module_mixed_precision), so that peft's stay in fp32. TRL 1.16 asks peft for
// adapters as wide as the model under ZeRO-3 (autocast_adapter_dtype in trainer/sft_trainer.py and
// the others); the Trainer leaves that to its user, LLaMA-Factory says nothing, and this is what
// peft does by itself.
static bool keeps_cut_adapters(const struct job *p)
{
    return p->strategy == STRATEGY_ZERO3 && keeps_adapters_wide(p) &&
           p->precision == PRECISION_MIXED && p->loads_once;
}

// Under fsdp2 a layer's shards need not be of one type, and without a policy nothing is cast.
bool job_widens_adapters(const struct job *p)
{
    bool keeps_made = p->strategy == STRATEGY_FSDP2 && p->precision == PRECISION_BF16;
    return p->lora_rank && !p->packed && (keeps_made || keeps_cut_adapters(p));
}

static bool copies(const struct job *j, enum whole_module module)
{
    return j->lora_whole & 1u << module;
}

// peft adds a score's module to those that are trained whole (peft_model.py,
// PeftModelForSequenceClassification).
bool copies_score(const struct job *j)
{
    bool has_score = j->task == TASK_REWARD && j->recipe != RECIPE_LLAMAFACTORY;
    return has_score && copies(j, WHOLE_HEAD);
}

// Seen on fake tensors (accelerate 1.15, utils/fsdp_utils.py, fsdp2_prepare_model, calls
// transformers 5.17's tie_weights): KeyError, attribute 'weight' already exists, of peft's wrapper.
bool copies_tied_head(const struct job *j)
{
    return model_has(&j->model, FEATURE_TIED) && copies(j, WHOLE_HEAD);
}

// Without a wrapper of its own the head is tied to the embedding's copy there.
bool copies_tied_embedding(const struct job *j)
{
    return model_has(&j->model, FEATURE_TIED) && copies(j, WHOLE_EMBEDDING);
}

// Seen on fake tensors (trl 1.16, trainer/utils.py, add_fused_lm_head): RuntimeError, b must be 2D.
bool reads_copied_head(const struct job *j)
{
    return job_fuses_head(j) && j->task != TASK_REWARD && copies(j, WHOLE_HEAD);
}

// Read with the originals, which stage 3 then keeps longer: on fake tensors 10 % more than with the
// copies alone.
bool reads_originals(const struct job *j)
{
    return j->lora_whole && (job_reads_reference(j) || j->precomputed);
}

// Seen on fake tensors (deepspeed 0.19.8, runtime/zero/utils.py, defragment): AssertionError, as a
// copy is in bf16 and the adapters are not.
bool joins_two_widths(const struct job *j)
{
    return j->lora_whole && job_widens_adapters(j);
}

// trl 1.16, trainer/reward_config.py, dpo_config.py and kto_config.py: disable_dropout is True
// where nobody says it, and sets p of every nn.Dropout, also of peft's, to 0; torch then hands on
// the input itself. Those of grpo, rloo and distillation have False, that of sft has no such key.
static bool disables_dropout(const struct job *p)
{
    static const bool disables[TASKS] = {
        [TASK_REWARD] = true, [TASK_DPO] = true, [TASK_KTO] = true};
    return p->recipe == RECIPE_TRL && disables[p->task];
}

bool job_drops_in_adapters(const struct job *p)
{
    return p->lora_dropout && !disables_dropout(p);
}

// What the model's code leaves out by a function stays.
void job_settle_dropouts(struct job *j)
{
    const struct dropouts *modules = &j->model.family->modules;
    if (!disables_dropout(j))
        return;
    j->model.dropouts.residual &= !modules->residual;
    j->model.dropouts.embedding &= !modules->embedding;
    j->model.dropouts.attention &= !modules->attention;
}
