// What rules ask of a job of Megatron's.
#include "core/job/conditions.h"

bool has_megatrons_strategy_elsewhere(const struct job *j)
{
    return !is_megatron(j);
}

bool has_stages_elsewhere(const struct job *j)
{
    return !is_megatron(j);
}

bool misses_megatrons_gpus(const struct job *j)
{
    return is_megatron(j) && job_ranks(j) % (j->tensor * j->pipeline * j->ring) != 0;
}

bool has_ragged_stages(const struct job *j)
{
    return is_megatron(j) && !j->last_layers &&
           j->model.layers % (j->pipeline * j->interleaved) != 0;
}

bool recomputes_more_than_there_is(const struct job *j)
{
    return j->recomputed_layers > job_stage_layers(j);
}

bool has_no_such_stage(const struct job *j)
{
    return j->stage >= j->pipeline;
}

bool cuts_groups(const struct job *j)
{
    return is_megatron(j) && j->model.kv_heads % j->tensor != 0;
}

bool cuts_tokens(const struct job *j)
{
    return is_megatron(j) && job_sequence_tokens(j) % j->tensor != 0;
}

#define MODELLED_LAYERS                                                                           \
    (FEATURE_TIED | FEATURE_QKV_BIAS | FEATURE_QK_NORM | FEATURE_MLA | FEATURE_QUERY_LORA |       \
     FEATURE_EXPERTS | FEATURE_SHARED_EXPERT | FEATURE_ROUTER_BALANCE | FEATURE_ROUTER_WIDE |     \
     FEATURE_ROUTER_FIRST | FEATURE_ROUTER_LOSS | FEATURE_ROUTER_PLAIN | FEATURE_ROUTER_SIGMOID | \
     FEATURE_ROUTER_LAST | FEATURE_ROUTER_SOFTMAX | FEATURE_ROUTER_GROUPS |                       \
     FEATURE_ROTARY_COMPLEX | FEATURE_NORMS_FIRST)

bool has_other_layers_than_megatron(const struct job *j)
{
    return is_megatron(j) && ((j->model.features & ~MODELLED_LAYERS) || job_has_windows(j));
}

bool leaves_sizes_open(const struct job *j)
{
    return !settings_find_z(j->given, "tp") || !settings_find_z(j->given, "cp");
}

bool interleaves(const struct job *j)
{
    return j->interleaved > 1;
}

bool interleaves_too_few(const struct job *j)
{
    return interleaves(j) && j->accumulation % j->pipeline != 0;
}

bool has_precision_aware_elsewhere(const struct job *j)
{
    return j->precision_aware;
}

bool evaluates_at_all(const struct job *j)
{
    return j->evaluation_batch > 0;
}

bool deals_experts_unevenly(const struct job *j)
{
    uint64_t shared = j->expert * j->expert_tensor;
    return shared > 1 &&
           (job_ranks(j) % (shared * j->pipeline) != 0 || j->model.experts.count % j->expert != 0);
}

bool talks_otherwise(const struct job *j)
{
    return j->context_comm != CONTEXT_HANDED;
}

bool deals_latent_heads(const struct job *j)
{
    return j->context_comm == CONTEXT_DEALT && model_has(&j->model, FEATURE_MLA);
}

bool deals_heads_unevenly(const struct job *j)
{
    return j->context_comm == CONTEXT_DEALT && j->model.kv_heads % (j->tensor * j->ring) != 0;
}

bool cuts_experts_otherwise(const struct job *j)
{
    return j->expert_tensor > 1 && (j->expert_tensor != j->tensor || !is_megatron(j) ||
                                    !model_has(&j->model, FEATURE_EXPERTS));
}

bool has_odd_last_stage(const struct job *j)
{
    return j->last_layers &&
           (j->pipeline < 2 || j->interleaved > 1 || j->last_layers >= j->model.layers ||
            (j->model.layers - j->last_layers) % (j->pipeline - 1) != 0);
}
