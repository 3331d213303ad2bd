// Evaluation between steps (transformers/trainer.py, evaluation_loop and prediction_step; TRL's
// trainers have a prediction_step of their own): a forward pass to the loss without a graph, with
// the reference where the loss compares. No
// logits are kept where nobody computes metrics of them, which is the Trainer's and TRL's default.
// Under fsdp1 the root stays whole until the next
// forward pass (torch/distributed/fsdp/_runtime_utils.py, _post_forward_reshard), under zero3 what
// was gathered ahead for a backward pass that does not come.
#include "core/base/num.h"
#include "core/losses/losses.h"
#include "core/recipes/run.h"

// Context parallel is a context around transformers' loss that TRL 1.16's trainers do not enter in
// evaluation: there each rank reads whole sequences.
static uint64_t ring_of(const struct job *p)
{
    return p->recipe == RECIPE_TRL ? 1 : p->ring;
}

// trl 1.16, prediction_step: its fused head makes no logits, so that the model is asked again, as
// transformers wrote it (trainer/sft_trainer.py and dpo_trainer.py, return_outputs).
static void read_once_more(struct trainer *t)
{
    struct var logits = forward_to_logits(t);
    var_drop(&t->graph, &logits);
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
    if (t->job->keeps_logits && t->job->recipe == RECIPE_TRL && !t->job->model.labels)
        read_once_more(t);
    var_drop(&t->graph, &t->ids);
    machine_drop(m, labels);
    return loss;
}

static struct storage *gathered_logits(struct trainer *t, uint64_t own, uint64_t ranks)
{
    struct storage *logits = machine_take(t->machine, own, MEMORY_LOGITS);
    if (ranks == 1)
        return logits;
    struct storage *all = machine_take(t->machine, own * ranks, MEMORY_LOGITS);
    machine_drop(t->machine, logits);
    return all;
}

// evaluation_loop: a batch's logits of all ranks are joined with those of earlier batches, in a new
// tensor each time (trainer_pt_utils.py, EvalLoopContainer). Batches between the first and the last
// only add theirs; where they are very many, the first of these come at once.
static void keep_logits(struct trainer *t)
{
    enum { MOST_JOINED = 1000 };
    const struct job *p = t->job;
    struct machine *m = t->machine;
    uint64_t ranks = job_ranks(p), batches = u64_divide_up(p->evaluation_rows, p->batch * ranks);
    uint64_t own = job_kept_logits(p) / p->evaluation_rows * p->batch / p->ring;
    uint64_t done = batches > MOST_JOINED ? batches - MOST_JOINED : 0;
    struct storage *kept = done ? machine_take(m, own * ranks * done, MEMORY_LOGITS) : NULL;
    while (done < batches) {
        if (done && done + 1 == batches) {
            struct var loss = read_batch(t);
            var_drop(&t->graph, &loss);
        }
        struct storage *logits = gathered_logits(t, own, ranks);
        struct storage *joined = logits;
        if (done++) {
            joined = machine_take(m, own * ranks * done, MEMORY_LOGITS);
            machine_drop(m, kept);
            machine_drop(m, logits);
        }
        kept = joined;
    }
    machine_drop(m, kept);
}

// A loss that compares reads the same batch with its reference.
static void set_reference_job(struct run *r, const struct job *job)
{
    struct trainer *reference = r->trainer.reference;
    if (reference)
        reference->job = job;
}

void run_evaluate(struct run *r)
{
    struct trainer *t = &r->trainer;
    const struct job *trained = t->job, *read = t->reference ? t->reference->job : NULL;
    const struct ring ring = t->ring;
    struct var ids = t->ids;
    r->evaluation_job = *trained;
    r->evaluation_job.batch = trained->evaluation_batch;
    r->evaluation_job.ring = ring_of(trained);
    r->evaluation_job.model.dropouts = (struct dropouts){0}; // model.eval()
    if (job_generates(trained)) { // a batch of it is answered by itself, and gives a loss alone
        r->evaluation_job.accumulation = 1;
        r->evaluation_job.keeps_logits = false;
    }
    if (job_is_zero(trained)) // accelerate 1.15, _prepare_deepspeed: disable_in_eval
        r->evaluation_job.ulysses = 1;
    t->job = &r->evaluation_job;
    if (read)
        r->evaluation_reference_job = *read;
    r->evaluation_reference_job.batch = trained->evaluation_batch;
    set_reference_job(r, &r->evaluation_reference_job);
    t->ring.ranks = t->job->ring;
    t->ring.shape.tokens = job_tokens(t->job);
    machine_phase(t->machine, PHASE_EVALUATE);
    t->graph.adapters_drop = false;
    if (job_generates(t->job))
        answer_and_read(t, true);
    t->without_graph = true;
    struct var loss = read_batch(t);
    var_drop(&t->graph, &loss);
    if (t->job->keeps_logits)
        keep_logits(t);
    t->without_graph = false;
    t->graph.adapters_drop = job_drops_in_adapters(trained);
    t->ids = ids;
    t->ring = ring;
    t->job = trained;
    set_reference_job(r, read);
}
