// transformers' Trainer over accelerate 1.15: under FSDP2 its head and gradients are as TRL's.
// A batch is tokens and labels.
#include "core/recipes/run.h"

#define TRAINER_WITH(columns)                \
    .steps = 3,                              \
    .habits = {.checks_loss = true,          \
               .sums_narrow = true,          \
               .cuts_on_card = true,         \
               .keeps_parameters = true,     \
               .decays_matrices = true,      \
               .batch_columns = (columns),   \
               .head_unit = HEAD_WITH_NORM}, \
    .build = plain_build, .step = plain_step

const struct run_kind transformers_run = {
    TRAINER_WITH(2),
};

// axolotl 0.19 and LLaMA-Factory 0.9.5: the same, and their collators hand out a mask as well.
const struct run_kind masked_run = {
    TRAINER_WITH(3),
};
