// The GRPO trainer of Trinity-RFT 0.4 on verl 0.5: a policy and a reference model in one process.
// A step reads the reference's log-probabilities of every micro-batch, trains the policy on the
// same micro-batches, and hands the weights to the rollout engine, which ends with empty_cache.
// Read from trinity/trainer/verl/fsdp_workers.py and dp_actor.py; played on a GPU in the recordings
// v0, v2 and v3.
#include "core/base/units.h"
#include "core/recipes/run.h"

// What FlashAttention's and compiled kernels take; see predict.c for how it was fitted.
#define KERNELS_BYTES (150 * MIB)

static void sync_weights(struct run *r)
{
    struct trainer *t = &r->trainer;
    machine_phase(t->machine, PHASE_SYNC);
    t->strategy->publish(t);
    machine_mark(t->machine, EVENT_EMPTY_CACHE);
}

static void build(struct run *r, const struct job *p, struct machine *m)
{
    const struct habits *habits = &r->kind->habits;
    trainer_build_reference(&r->reference, p, m, habits); // before the policy (verl_trainer.py)
    trainer_build(&r->trainer, p, m, habits);
    sync_weights(r);
}

// Both models multiply on the same thread and stream: one workspace.
static void share_workspaces(struct trainer *a, struct trainer *b)
{
    bool ready = a->graph.gemm_ready[false] || b->graph.gemm_ready[false];
    a->graph.gemm_ready[false] = b->graph.gemm_ready[false] = ready;
}

static void read_reference(struct run *r)
{
    enum { MOST = 64 };
    struct trainer *read = &r->reference;
    struct var values[MOST];
    uint64_t count = r->trainer.job->accumulation;
    count = count < MOST ? count : MOST;
    machine_phase(read->machine, PHASE_REFERENCE);
    share_workspaces(read, &r->trainer);
    for (uint64_t i = 0; i < count; i++)
        values[i] = trainer_forward(read);
    if (read->strategy->end_reading)
        read->strategy->end_reading(read);
    for (uint64_t i = 0; i < count; i++)
        var_drop(&read->graph, &values[i]);
    share_workspaces(&r->trainer, read);
}

static void step(struct run *r)
{
    read_reference(r);
    for (uint64_t i = 0; i < r->trainer.job->accumulation; i++)
        trainer_micro_batch(&r->trainer);
    trainer_update(&r->trainer);
    sync_weights(r);
}

static void finish(struct run *r)
{
    struct trainer *t = &r->trainer;
    machine_phase(t->machine, PHASE_SAVE);
    t->strategy->save(t, t->job->save_hf != SAVE_NEVER);
}

const struct run_kind trinity_run = {
    .steps = 2,
    .habits = {.reads_values = true,
               .reads_positions = true,
               .sends_parameters = true,
               .head_unit = HEAD_IN_ROOT}, // verl 0.5, utils/fsdp_utils.py
    .build = build,
    .step = step,
    .finish = finish,
    .always_distributed = true,
    .kernels_bytes = KERNELS_BYTES,
};
