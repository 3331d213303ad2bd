// What rules ask of a job where a library decides by itself: which classes Accelerate wraps, in
// which type weights come.
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
