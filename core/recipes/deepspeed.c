// DeepSpeed, as transformers' Trainer starts it: all that differs is the strategy's.
#include "core/recipes/run.h"

const struct run_kind deepspeed_run = {.steps = 3, .build = plain_build, .step = plain_step};
