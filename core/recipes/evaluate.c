// Evaluation between steps (transformers/trainer.py, evaluation_loop and prediction_step; TRL's
// trainers have a prediction_step of their own): a forward pass to the loss without a graph. No
// logits are kept where nobody computes metrics of them, which is the Trainer's and TRL's default;
// what is made of them otherwise is not followed. Under fsdp1 the root stays whole until the next
// forward pass (torch/distributed/fsdp/_runtime_utils.py, _post_forward_reshard), under zero3 what
// was gathered ahead for a backward pass that does not come.
#include "core/losses/losses.h"
#include "core/recipes/run.h"

// Context parallel is a context around transformers' loss that TRL 1.16's trainers do not enter in
// evaluation: there each rank reads whole sequences.
static uint64_t ring_of(const struct job *p)
{
    return p->recipe == RECIPE_TRL ? 1 : p->ring;
}

static struct var read_batch(struct trainer *t)
{
    struct machine *m = t->machine;
    if (t->ring.ranks > 1) {
        ring_take_batch(&t->graph, &t->ring);
        t->ids = ring_tokens(&t->ring);
        struct var loss = forward_to_loss(t);
        ring_drop_batch(&t->graph, &t->ring);
        return loss;
    }
    uint64_t tokens = job_tokens(t->job);
    struct storage *labels = machine_take(m, 8 * tokens, MEMORY_INPUTS);
    t->ids = (struct var){machine_take(m, 8 * tokens, MEMORY_INPUTS), NO_NODE, 8, tokens};
    struct var loss = forward_to_loss(t);
    var_drop(&t->graph, &t->ids);
    machine_drop(m, labels);
    return loss;
}

void run_evaluate(struct run *r)
{
    struct trainer *t = &r->trainer;
    const struct job *trained = t->job;
    const struct ring ring = t->ring;
    struct var ids = t->ids;
    r->evaluation_job = *trained;
    r->evaluation_job.batch = trained->evaluation_batch;
    r->evaluation_job.ring = ring_of(trained);
    t->job = &r->evaluation_job;
    t->ring.ranks = t->job->ring;
    t->ring.shape.tokens = job_tokens(t->job);
    machine_phase(t->machine, PHASE_EVALUATE);
    t->without_graph = true;
    struct var loss = read_batch(t);
    t->without_graph = false;
    var_drop(&t->graph, &loss);
    t->ids = ids;
    t->ring = ring;
    t->job = trained;
}
