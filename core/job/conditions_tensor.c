// What rules ask of a job that is cut over all its GPUs, as transformers 5.17 does it
// (distributed/tensor_parallel.py) under its Trainer and TRL's.
#include "core/job/conditions.h"

static bool is_cut_by_trainers(const struct job *j)
{
    return j->recipe == RECIPE_TRL || j->recipe == RECIPE_TRANSFORMERS;
}

bool is_cut_beside_others(const struct job *j)
{
    return (is_cut_by_trainers(j) || j->recipe == RECIPE_HF) && j->strategy != STRATEGY_SINGLE;
}

bool is_cut_for_some(const struct job *j)
{
    return job_cuts_tensors(j) && j->tensor != job_ranks(j);
}

bool is_cut_through_heads(const struct job *j)
{
    return job_cuts_tensors(j) && j->model.kv_heads % j->tensor != 0;
}

// ColwiseParallel.validate_param asks it of the head; of the MLP the next product would fail.
bool is_cut_unevenly(const struct job *j)
{
    return job_cuts_tensors(j) &&
           (j->model.vocab % j->tensor != 0 || j->model.intermediate % j->tensor != 0 ||
            j->model.experts.intermediate % j->tensor != 0);
}

bool is_cut_elsewhere(const struct job *j)
{
    return !is_megatron(j) && (!is_cut_by_trainers(j) || j->version == 0);
}

// Families whose base_model_tp_plan has the seven matrices of a layer and nothing else.
bool is_cut_otherwise(const struct job *j)
{
    static const char known[] =
        "llama|mistral|ministral|ministral3|qwen2|qwen3|qwen3_moe|smollm3|seed_oss|"
        "granite|gemma|gemma2|ernie4_5";
    return job_cuts_tensors(j) && !words_have(known, '|', str_from(j->model.family->model_type));
}

bool is_cut_in_parts(const struct job *j)
{
    return job_cuts_tensors(j) &&
           (j->packed || j->loss == LOSS_LIGER || j->activation_offload ||

            (j->optimizer != OPTIMIZER_ADAMW && j->optimizer != OPTIMIZER_ADAMW_FUSED));
}

// Distillation has a teacher of its own shape, which nobody cut.
bool is_cut_for_another_task(const struct job *j)
{
    return job_cuts_tensors(j) && j->task == TASK_DISTILL;
}
