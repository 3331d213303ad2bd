// The recipes' jobs, by name.
#include "core/recipes/run.h"

// A recipe without a row has no step that is modelled, which the job's rules say; but whoever runs
// it may ask what it takes beside torch.
const struct run_kind *run_kind_of(enum recipe recipe)
{
    static const struct run_kind *const kinds[RECIPES] = {
        [RECIPE_HF] = &hf_run,
        [RECIPE_TRANSFORMERS] = &transformers_run,
        [RECIPE_TRL] = &trl_run,
        [RECIPE_DEEPSPEED] = &deepspeed_run,
        [RECIPE_TRINITY] = &trinity_run,
        [RECIPE_VERL] = &verl_run,
        [RECIPE_AXOLOTL] = &masked_run,
        [RECIPE_MEGATRON] = &megatron_run,
        [RECIPE_LLAMAFACTORY] = &masked_run,
    };
    return kinds[recipe] ? kinds[recipe] : &hf_run;
}

void run_build(struct run *r, const struct job *p, struct machine *m)
{
    r->kind = run_kind_of(p->recipe);
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
