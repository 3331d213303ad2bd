// The GRPO trainer of Trinity-RFT 0.4 on verl 0.5: a policy and a reference model in one process.
// A step reads the reference's log-probabilities of every micro-batch, trains the policy on the
// same micro-batches, and hands the weights to the rollout engine, which ends with empty_cache.
// Read from trinity/trainer/verl/fsdp_workers.py and dp_actor.py; played on a GPU in the recordings
// v0, v2 and v3.
#include "core/step/job.h"

static void sync_weights(struct job *j)
{
    struct trainer *t = &j->trainer;
    machine_phase(t->machine, PHASE_SYNC);
    t->sharding->publish(t);
    machine_mark(t->machine, EVENT_EMPTY_CACHE);
}

static void build(struct job *j, const struct plan *p, struct machine *m)
{
    trainer_build_reference(&j->reference, p, m); // verl_trainer.py makes it before the policy
    trainer_build(&j->trainer, p, m);
    sync_weights(j);
}

// Both models multiply on the same thread and stream: one workspace.
static void share_workspaces(struct trainer *a, struct trainer *b)
{
    bool ready = a->graph.gemm_ready[false] || b->graph.gemm_ready[false];
    a->graph.gemm_ready[false] = b->graph.gemm_ready[false] = ready;
}

static void read_reference(struct job *j)
{
    enum { MOST = 64 };
    struct trainer *r = &j->reference;
    struct var read[MOST];
    uint64_t count = j->trainer.plan->accumulation;
    count = count < MOST ? count : MOST;
    machine_phase(r->machine, PHASE_REFERENCE);
    share_workspaces(r, &j->trainer);
    for (uint64_t i = 0; i < count; i++)
        read[i] = trainer_forward(r);
    r->sharding->end_reading(r);
    for (uint64_t i = 0; i < count; i++)
        var_drop(&r->graph, &read[i]);
    share_workspaces(r, &j->trainer);
}

static void step(struct job *j)
{
    read_reference(j);
    for (uint64_t i = 0; i < j->trainer.plan->accumulation; i++)
        trainer_micro_batch(&j->trainer);
    trainer_update(&j->trainer);
    sync_weights(j);
}

static void finish(struct job *j)
{
    struct trainer *t = &j->trainer;
    machine_phase(t->machine, PHASE_SAVE);
    t->sharding->save(t, t->plan->save_hf != SAVE_NEVER);
}

const struct job_kind trinity_job = {2, build, step, finish};
