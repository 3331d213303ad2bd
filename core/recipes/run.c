// The recipes' jobs, by name.
#include "core/recipes/run.h"
#include "core/losses/losses.h"

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
        [RECIPE_AXOLOTL] = &masked_run,
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

// transformers/trainer.py, prediction_step: a forward pass to the loss without a graph. What is
// made of each batch's logits, where metrics ask for them, is not followed.
void run_evaluate(struct run *r)
{
    struct trainer *t = &r->trainer;
    struct machine *m = t->machine;
    const struct job *trained = t->job;
    struct var ids = t->ids;
    r->evaluation_job = *trained;
    r->evaluation_job.batch = trained->evaluation_batch;
    t->job = &r->evaluation_job;
    machine_phase(m, PHASE_EVALUATE);
    uint64_t tokens = job_tokens(t->job);
    struct storage *labels = machine_take(m, 8 * tokens, MEMORY_INPUTS);
    t->ids = (struct var){machine_take(m, 8 * tokens, MEMORY_INPUTS), NO_NODE, 8, tokens};
    t->without_graph = true;
    struct var loss = forward_to_loss(t);
    t->without_graph = false;
    if (t->strategy->end_reading)
        t->strategy->end_reading(t);
    var_drop(&t->graph, &loss);
    var_drop(&t->graph, &t->ids);
    machine_drop(m, labels);
    t->ids = ids;
    t->job = trained;
}

void run_finish(struct run *r)
{
    if (r->kind->finish)
        r->kind->finish(r);
}
