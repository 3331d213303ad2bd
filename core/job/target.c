// See target.h.
#include "core/job/target.h"

const struct target_def target_defs[TARGETS] = {
    [FOR_ACCELERATE] = {"accelerate", "Accelerate", "hf"},
    [FOR_DEEPSPEED] = {"deepspeed", "DeepSpeed", "deepspeed"},
    [FOR_TRL] = {"trl", "TRL", "trl"},
    [FOR_TRINITY] = {"trinity", "Trinity-RFT", "trinity"},
    [FOR_VERL] = {"verl", "verl", "verl"},
    [FOR_SLIME] = {"slime", "slime", "megatron"},
};
