// The traits of a job, as rows: which field at which value has them, and which feature of the
// model.
#include "core/job/traits.h"

#include "core/job/job.h"

static const trait_set by_strategy[STRATEGIES] = {
    [STRATEGY_DDP] = IS_DDP,
    [STRATEGY_FSDP1] = IS_FSDP | IS_FSDP1,
    [STRATEGY_FSDP2] = IS_FSDP | IS_FSDP2,
    [STRATEGY_ZERO1] = IS_ZERO | IS_ZERO1,
    [STRATEGY_ZERO2] = IS_ZERO | IS_ZERO2,
    [STRATEGY_ZERO3] = IS_ZERO | IS_ZERO3,
    [STRATEGY_MEGATRON] = IS_MEGATRON,
};

static const trait_set by_precision[PRECISIONS] = {
    [PRECISION_BF16] = IS_BF16,   [PRECISION_AUTOCAST] = IS_AUTOCAST,
    [PRECISION_MIXED] = IS_MIXED, [PRECISION_BF16_AUTOCAST] = IS_BF16_AUTOCAST,
    [PRECISION_FP16] = IS_FP16,   [PRECISION_FP32] = IS_FP32,
};

static const trait_set by_offload[OFFLOADS] = {
    [OFFLOAD_OPTIMIZER] = IS_OFFLOAD_OPTIMIZER,
    [OFFLOAD_ALL] = IS_OFFLOAD_OPTIMIZER | IS_OFFLOAD_ALL,
};

static const trait_set by_optimizer[OPTIMIZERS] = {
    [OPTIMIZER_ADAMW] = IS_ADAMW,
    [OPTIMIZER_ADAMW_FUSED] = IS_ADAMW | IS_FUSED,
    [OPTIMIZER_SGD] = IS_SGD,
    [OPTIMIZER_ADAMW_8BIT] = IS_BNB | IS_8BIT,
    [OPTIMIZER_ADAMW_8BIT_HF] = IS_BNB | IS_8BIT,
    [OPTIMIZER_ADAFACTOR] = IS_ADAFACTOR,
    [OPTIMIZER_PAGED_8BIT] = IS_BNB | IS_8BIT | IS_PAGED,
    [OPTIMIZER_PAGED] = IS_BNB | IS_PAGED,
    [OPTIMIZER_MUON] = IS_MUON,
    [OPTIMIZER_ADAM_DS] = IS_ADAMW | IS_FUSED | IS_ADAM_DS,
};

static const trait_set by_loss[LOSSES] = {
    [LOSS_CHUNKED] = IS_CHUNKED, [LOSS_NONE] = IS_NO_LOSS,     [LOSS_LIGER] = IS_LIGER,
    [LOSS_POLICY] = IS_POLICY,   [LOSS_FUSED] = IS_FUSED_LOSS,
};

static const trait_set by_task[TASKS] = {
    [TASK_SFT] = IS_SFT,
    [TASK_REWARD] = IS_REWARD | IS_PAIRS,
    [TASK_DPO] = IS_DPO | IS_PAIRS | IS_COMPARED,
    [TASK_KTO] = IS_KTO | IS_COMPARED,
    [TASK_GRPO] = IS_GRPO | IS_ROLLOUT,
    [TASK_RLOO] = IS_ROLLOUT,
    [TASK_DISTILL] = IS_OPD | IS_ROLLOUT,
    [TASK_CAPACITY] = IS_CAPACITY | IS_GRPO | IS_ROLLOUT,
};

static const trait_set by_target[TARGETS] = {
    [FOR_TRINITY] = IS_RAY,
    [FOR_VERL] = IS_RAY,
    [FOR_SLIME] = IS_RAY,
};

static const struct {
    feature_set feature;
    trait_set trait;
} by_feature[] = {
    {FEATURE_EXPERTS, IS_EXPERTS},
    {FEATURE_VISION_QWEN3, IS_VISION},
    {FEATURE_VISION_SIGLIP, IS_VISION},
    {FEATURE_VISION_WINDOWS, IS_VISION},
};

static trait_set if_so(bool so, trait_set trait)
{
    return so ? trait : 0;
}

static bool is_given(const struct job *j, const char *name)
{
    return settings_find_z(j->given, name) != NULL;
}

// Trinity-RFT 0.4, which is on verl 0.5.
static bool is_legacy(const struct job *j)
{
    const struct setting *verl = settings_find_z(j->given, "verl");
    return verl ? str_is(verl->value, "0.5") : j->recipe == RECIPE_TRINITY && j->version == 0;
}

static trait_set of_sizes(const struct job *j)
{
    enum { TRL_CHUNK = 256, NEW_VARIABLE = 9 };
    return if_so(job_ranks(j) > 1, IS_SEVERAL) | if_so(j->hardware.nodes > 1, IS_NODES) |
           if_so(j->ulysses > 1, IS_SP) | if_so(j->ring > 1, IS_CP) | if_so(j->tensor > 1, IS_TP) |
           if_so(j->pipeline > 1, IS_PP) | if_so(j->accumulation > 1, IS_ACCUMULATES) |
           if_so(j->loss == LOSS_CHUNKED && j->loss_chunk == TRL_CHUNK, IS_TRL_LOSS) |
           if_so(j->model.max_position && j->context > j->model.max_position, IS_YARN) |
           if_so(j->torch_minor >= NEW_VARIABLE, IS_TORCH_NEW) | if_so(j->images > 0, IS_IMAGES) |
           if_so(j->freeze == FREEZE_VISION, IS_FROZEN_VISION) |
           if_so(j->freeze == FREEZE_LANGUAGE, IS_FROZEN_LANGUAGE);
}

static trait_set of_switches(const struct job *j)
{
    return if_so(j->reshard, IS_RESHARD) | if_so(j->checkpointing, IS_CHECKPOINTING) |
           if_so(j->reentrant, IS_REENTRANT) | if_so(j->selective, IS_SELECTIVE) |
           if_so(j->last_layers > 0, IS_LAST_STAGE) | if_so(j->interleaved > 1, IS_IN_TURN) |
           if_so(j->recomputed_layers > 0, IS_PARTLY) |
           if_so(j->context_comm == CONTEXT_DEALT, IS_DEALT) | if_so(j->precision_aware, IS_AWARE) |
           if_so(j->expandable, IS_EXPANDABLE) | if_so(j->fused_kernels, IS_FUSED_KERNELS) |
           if_so(j->entropy_saving, IS_ENTROPY_SAVING) | if_so(j->lora_rank > 0, IS_LORA) |
           if_so(j->dora, IS_DORA) | if_so(j->lora_dropout, IS_LORA_DROPOUT) |
           if_so(j->lora_whole > 0, IS_LORA_WHOLE) |
           if_so(job_wrapped_classes(j) != NULL, IS_NAMED) | if_so(j->sync_each_batch, IS_SYNCED) |
           if_so(j->backward_prefetch, IS_PREFETCHED) | if_so(j->overlap_comm, IS_OVERLAP) |
           if_so(job_reduces_wide(j), IS_REDUCED_WIDE) | if_so(j->evaluation_batch, IS_EVALUATED) |
           if_so(j->batching == BATCHING_PACKED, IS_PACKED) |
           if_so(j->precomputed, IS_PRECOMPUTED) | if_so(j->has_kl, IS_KL) |
           if_so(j->attention == ATTENTION_FLASH2, IS_FLASH2) |
           if_so(j->batching == BATCHING_PADDED, IS_PADDED) |
           if_so(j->saving == SAVING_WHOLE, IS_SAVED_WHOLE) |
           if_so(j->saving == SAVING_SHARDS, IS_SAVED_SHARDS) |
           if_so(j->loads_once, IS_LOADED_ONCE) | if_so(j->replicas > 1, IS_REPLICATED) |
           if_so(j->layer_kernels == KERNELS_OF_LIGER, IS_LIGER_LAYERS) |
           if_so(job_attention(j) == ATTENTION_EAGER, IS_EAGER) |
           if_so(j->attention == ATTENTION_SDPA, IS_SDPA) | if_so(j->packed, IS_NF4) |
           if_so(j->packed == QUANTIZE_NF4_SINGLE, IS_NF4_SINGLE) |
           if_so(is_given(j, "lora-targets"), IS_LORA_TARGETS) | if_so(is_legacy(j), IS_LEGACY) |
           if_so(is_given(j, "strategy"), IS_STRATEGY_GIVEN) | if_so(is_given(j, "nvme"), IS_NVME);
}

trait_set job_traits(const struct job *j)
{
    trait_set traits = by_strategy[j->strategy] | by_precision[j->precision] |
                       by_offload[j->offload] | by_optimizer[j->optimizer] | by_loss[j->loss] |
                       by_task[j->task] | by_target[j->target] | of_sizes(j) | of_switches(j);
    if (j->precision == PRECISION_BF16_AUTOCAST && job_is_sharded(j))
        traits |= IS_MIXED;
    if (j->precision == PRECISION_FP16)
        traits |= job_is_sharded(j) ? IS_MIXED : IS_AUTOCAST;
    for (ptrdiff_t i = 0; i < COUNT_OF(by_feature); i++)
        traits |= if_so(model_has(&j->model, by_feature[i].feature), by_feature[i].trait);
    return traits;
}

bool job_has_8bit_optimizer(const struct job *j)
{
    return j->optimizer == OPTIMIZER_ADAMW_8BIT || j->optimizer == OPTIMIZER_ADAMW_8BIT_HF ||
           j->optimizer == OPTIMIZER_PAGED_8BIT;
}

bool job_pages_optimizer(const struct job *j)
{
    return j->optimizer == OPTIMIZER_PAGED_8BIT || j->optimizer == OPTIMIZER_PAGED;
}

bool job_is_trainers(const struct job *j)
{
    return j->recipe == RECIPE_TRANSFORMERS || j->recipe == RECIPE_TRL ||
           j->recipe == RECIPE_AXOLOTL || j->recipe == RECIPE_LLAMAFACTORY;
}

bool job_has_bitsandbytes(const struct job *j)
{
    return job_has_8bit_optimizer(j) || job_pages_optimizer(j);
}
