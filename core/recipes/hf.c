// The plain step: what fathom simulates where no framework is named, written by hand around
// transformers' models. Other frameworks that only train are built and run in the same way.
#include "core/recipes/run.h"

void plain_build(struct run *r, const struct job *p, struct machine *m)
{
    trainer_build(&r->trainer, p, m, &r->kind->habits);
}

void plain_step(struct run *r)
{
    trainer_step(&r->trainer);
}

const struct run_kind hf_run = {.steps = 3, .build = plain_build, .step = plain_step};
