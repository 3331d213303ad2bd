// See target.h.
#include "core/job/target.h"

#include "core/base/str.h"

const struct target_def target_defs[TARGETS] = {
    [FOR_ACCELERATE] = {"accelerate", "Accelerate", "hf"},
    [FOR_DEEPSPEED] = {"deepspeed", "DeepSpeed", "deepspeed"},
    [FOR_TRL] = {"trl", "TRL", "trl"},
    [FOR_TRINITY] = {"trinity", "Trinity-RFT", "trinity"},
    [FOR_VERL] = {"verl", "verl", "verl"},
    [FOR_SLIME] = {"slime", "slime", "megatron"},
    [FOR_TRANSFORMERS] = {"transformers", "transformers' Trainer", "transformers"},
    [FOR_AXOLOTL] = {"axolotl", "axolotl", "axolotl"},
    [FOR_LLAMAFACTORY] = {"llamafactory", "LLaMA-Factory", "llamafactory"},
};

enum target target_of_recipe(const char *recipe)
{
    for (int i = FOR_NOTHING + 1; i < TARGETS; i++)
        if (str_is(str_from(recipe), target_defs[i].recipe))
            return (enum target)i;
    return FOR_NOTHING;
}
