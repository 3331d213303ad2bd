// transformers' Trainer: all that differs from the plain step is set by the job.
#include "core/recipes/run.h"

const struct run_kind transformers_run = {.steps = 3, .build = plain_build, .step = plain_step};
