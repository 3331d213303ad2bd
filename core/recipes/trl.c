// TRL over accelerate 1.15 (utils/fsdp_utils.py, fsdp2_prepare_model): the last norm and the head
// are one unit, and gradients are reduced in the compute type. A batch is tokens, labels and mask.
#include "core/recipes/run.h"

const struct run_kind trl_run = {
    .steps = 3,
    .habits = {.sums_narrow = true,
               .device_map = true,
               .cuts_on_card = true,
               .batch_columns = 3,
               .head_unit = HEAD_WITH_NORM},
    .build = plain_build,
    .step = plain_step,
};
