// DeepSpeed 0.19: its JSON, launched by Accelerate. Its models forbid unknown keys inside a section
// (runtime/config_utils.py) and ignore unknown sections, so only known ones are here. JSON has no
// comments: the launch script carries them.
#include "core/base/num.h"
#include "core/emit/emit.h"

static const struct row rows[] = {
    {"train_micro_batch_size_per_gpu", ROW_LITERAL, "@batch@"},
    {"gradient_accumulation_steps", ROW_LITERAL, "@accum@"},
    {"gradient_clipping", ROW_LITERAL, "1.0"},
    {"bf16.enabled", ROW_LITERAL, "true", 0, IS_FP16},
    {"fp16.enabled", ROW_LITERAL, "true", IS_FP16},
    // Without it, in fp32 (runtime/constants.py), as in the measured jobs of TRL; ArcticTraining's
    // recipes say this too.
    {"seq_parallel_communication_data_type", ROW_TEXT, "bf16", IS_SP, IS_FP16 | IS_REDUCED_WIDE},
    {"seq_parallel_communication_data_type", ROW_TEXT, "fp16", IS_SP | IS_FP16, IS_REDUCED_WIDE},
    {"zero_optimization.stage", ROW_LITERAL, "1", IS_ZERO1},
    {"zero_optimization.stage", ROW_LITERAL, "2", IS_ZERO2},
    {"zero_optimization.stage", ROW_LITERAL, "3", IS_ZERO3},
    {"zero_optimization.overlap_comm", ROW_LITERAL, "true", IS_OVERLAP},
    {"zero_optimization.overlap_comm", ROW_LITERAL, "false", 0, IS_OVERLAP},
    {"zero_optimization.contiguous_gradients", ROW_LITERAL, "true"},
    {"zero_optimization.reduce_scatter", ROW_LITERAL, "true"},
    {"zero_optimization.reduce_bucket_size", ROW_LITERAL, "@reduce_bucket@"},
    {"zero_optimization.allgather_partitions", ROW_LITERAL, "true", 0, IS_ZERO3},
    {"zero_optimization.allgather_bucket_size", ROW_LITERAL, "@reduce_bucket@", 0, IS_ZERO3},
    {"zero_optimization.stage3_prefetch_bucket_size", ROW_LITERAL, "@prefetch_bucket@", IS_ZERO3},
    {"zero_optimization.stage3_param_persistence_threshold", ROW_LITERAL, "@persistence@",
     IS_ZERO3},
    {"zero_optimization.stage3_max_live_parameters", ROW_LITERAL, "@live@", IS_ZERO3},
    {"zero_optimization.stage3_max_reuse_distance", ROW_LITERAL, "@reuse@", IS_ZERO3},
    {"zero_optimization.sub_group_size", ROW_LITERAL, "@sub_group@", IS_ZERO3},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", ROW_LITERAL, "true", IS_ZERO3,
     IS_SAVED_SHARDS},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", ROW_LITERAL, "false",
     IS_ZERO3 | IS_SAVED_SHARDS},
    {"zero_optimization.offload_optimizer.device", ROW_TEXT, "cpu", IS_OFFLOAD_OPTIMIZER, IS_NVME},
    {"zero_optimization.offload_optimizer.device", ROW_TEXT, "nvme",
     IS_OFFLOAD_OPTIMIZER | IS_NVME},
    {"zero_optimization.offload_optimizer.nvme_path", ROW_TEXT, "@nvme@",
     IS_OFFLOAD_OPTIMIZER | IS_NVME},
    {"zero_optimization.offload_optimizer.pin_memory", ROW_LITERAL, "true", IS_OFFLOAD_OPTIMIZER},
    {"zero_optimization.offload_param.device", ROW_TEXT, "cpu", IS_OFFLOAD_ALL, IS_NVME},
    {"zero_optimization.offload_param.device", ROW_TEXT, "nvme", IS_OFFLOAD_ALL | IS_NVME},
    {"zero_optimization.offload_param.nvme_path", ROW_TEXT, "@nvme@", IS_OFFLOAD_ALL | IS_NVME},
    {"zero_optimization.offload_param.pin_memory", ROW_LITERAL, "true", IS_OFFLOAD_ALL},
    {"wall_clock_breakdown", ROW_LITERAL, "false"},
};

// Numbers, not "auto": what runs has the sizes that are predicted.
bool draft_deepspeed(struct draft *j, struct error *e)
{
    (void)e;
    struct zero_sizes sizes = job_zero_sizes(j->job);
    draft_count(j, "reduce_bucket", sizes.reduced);
    draft_count(j, "prefetch_bucket", sizes.ahead);
    draft_count(j, "persistence", sizes.persists);
    draft_count(j, "sub_group", sizes.sub_group);
    draft_count(j, "live", sizes.live);
    draft_count(j, "reuse", sizes.reuse);
    return true;
}

void emit_deepspeed_json(struct emit_files *files, const struct draft *j)
{
    emit_json(files, j, "deepspeed.json", rows, COUNT_OF(rows));
}

const struct writer writer_deepspeed = {
    .prepare = draft_deepspeed,
    .emit = emit_accelerate_training,
};
