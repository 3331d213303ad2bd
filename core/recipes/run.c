// The recipes' jobs, by name.
#include "core/recipes/run.h"

static void plain_build(struct run *r, const struct job *p, struct machine *m)
{
    trainer_build(&r->trainer, p, m);
}

static void plain_step(struct run *r)
{
    trainer_step(&r->trainer);
}

static const struct run_kind plain_run = {3, plain_build, plain_step, NULL};

void run_build(struct run *r, const struct job *p, struct machine *m)
{
    r->kind = p->recipe == RECIPE_TRINITY ? &trinity_run : &plain_run;
    r->kind->build(r, p, m);
}

void run_step(struct run *r)
{
    r->trainer.machine->step++;
    r->kind->step(r);
}

void run_finish(struct run *r)
{
    if (r->kind->finish)
        r->kind->finish(r);
}
