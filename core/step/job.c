// The recipes' jobs, by name.
#include "core/step/job.h"

static void plain_build(struct job *j, const struct plan *p, struct machine *m)
{
    trainer_build(&j->trainer, p, m);
}

static void plain_step(struct job *j)
{
    trainer_step(&j->trainer);
}

static const struct job_kind plain_job = {3, plain_build, plain_step, NULL};

void job_build(struct job *j, const struct plan *p, struct machine *m)
{
    j->kind = p->recipe == RECIPE_TRINITY ? &trinity_job : &plain_job;
    j->kind->build(j, p, m);
}

void job_step(struct job *j)
{
    j->trainer.machine->step++;
    j->kind->step(j);
}

void job_finish(struct job *j)
{
    if (j->kind->finish)
        j->kind->finish(j);
}
