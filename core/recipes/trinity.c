// The GRPO trainer of Trinity-RFT 0.4 on verl 0.5: a policy and a reference model in one process.
// A step reads the reference's log-probabilities of every micro-batch, trains the policy on the
// same micro-batches, and hands the weights to the rollout engine, which ends with empty_cache.
// Read from trinity/trainer/verl/fsdp_workers.py and dp_actor.py; played on a GPU in the recordings
// v0, v2 and v3. And verl's own trainer, which does the same beside an engine that sleeps.
#include "core/allocator/options.h"
#include "core/base/num.h"
#include "core/losses/losses.h"
#include "core/recipes/run.h"

// What FlashAttention's and compiled kernels take; see predict.c for how it was fitted.
#define KERNELS_BYTES (150 * MIB)

// What stays on the card of vLLM, which sleeps while verl trains: its context, NCCL and graphs
// (core/evidence/spread.c).
#define ASLEEP_BYTES (774 * MIB)

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
    r->reference_job = *p;
    r->reference_job.batch = job_reference_batch(p);
    r->reference_job.accumulation = job_reference_count(p);
    // Before the policy (verl_trainer.py).
    trainer_build_reference(&r->reference, &r->reference_job, m, habits);
    trainer_build(&r->trainer, p, m, habits);
    sync_weights(r);
}

// Both models multiply on the same thread and stream: one workspace.
static void share_workspaces(struct trainer *a, struct trainer *b)
{
    bool ready = a->graph.gemm_ready[false] || b->graph.gemm_ready[false];
    a->graph.gemm_ready[false] = b->graph.gemm_ready[false] = ready;
}

// verl has no more than eight unless the batch is made larger than the sequences that a group has
// by default. Held against 64 to 300 that were all played, Qwen3-1.7B under fsdp1 and fsdp2: after
// eight a flush could still move what is reserved, after sixteen it did in one case, by one page.
enum { PLAYED_MICRO_BATCHES = 16 };

static uint64_t played_micro_batches(const struct job *p)
{
    return u64_least(p->accumulation, PLAYED_MICRO_BATCHES);
}

// The log-probabilities of micro-batches that are not played: all there are, but of many those that
// would share a small segment are joined, into blocks that still live there.
struct repeated {
    struct storage **values;
    ptrdiff_t count;
};

static struct repeated keep_repeated(struct trainer *read, uint64_t left, uint64_t bytes)
{
    enum { MOST_APART = 64, MOST_IN_SEGMENT = 3 }; // two halves, and what is left beside them
    struct machine *m = read->machine;
    uint64_t one = u64_align_up(bytes, BLOCK_MIN_BYTES);
    bool joins = left > MOST_APART && one <= SMALL_MAX_BYTES;
    uint64_t segment = joins ? SMALL_SEGMENT_BYTES / one : 1;
    uint64_t block = joins ? SMALL_MAX_BYTES / one : 1;
    uint64_t most = MOST_IN_SEGMENT * u64_divide_up(left, segment);
    struct repeated r = {.values = NEW(m->arena, struct storage *, (ptrdiff_t)most)};
    for (uint64_t room = segment; left; room = room ? room : segment) {
        uint64_t here = u64_least(left, u64_least(block, room));
        r.values[r.count++] = machine_take(m, here > 1 ? here * one : bytes, MEMORY_WORKING);
        room -= here;
        left -= here;
    }
    return r;
}

// Those that are not played are like the last but one.
static void repeat_time(struct trainer *t, const struct elapsed *before, uint64_t i)
{
    uint64_t count = played_micro_batches(t->job);
    if (t->machine->time && i + 2 == count)
        timeline_repeat(t->machine->time, before, (double)(t->job->accumulation - count));
}

static void read_reference(struct run *r)
{
    struct trainer *read = &r->reference;
    struct var values[PLAYED_MICRO_BATCHES];
    uint64_t count = played_micro_batches(read->job), left = read->job->accumulation - count;
    machine_phase(read->machine, PHASE_REFERENCE);
    share_workspaces(read, &r->trainer);
    struct repeated repeated = {0};
    for (uint64_t i = 0; i < count; i++) {
        if (left && i && i + 1 == count) // so that the last has all others' beside it
            repeated = keep_repeated(read, left, values[0].storage->bytes);
        struct timeline *time = read->machine->time;
        struct elapsed before = time ? time->now : (struct elapsed){0};
        values[i] = forward_to_loss(read);
        repeat_time(read, &before, i);
    }
    if (read->strategy->end_reading)
        read->strategy->end_reading(read);
    for (uint64_t i = 0; i < count; i++)
        var_drop(&read->graph, &values[i]);
    for (ptrdiff_t i = 0; i < repeated.count; i++)
        machine_drop(read->machine, repeated.values[i]);
    share_workspaces(&r->trainer, read);
}

static void step(struct run *r)
{
    read_reference(r);
    struct trainer *t = &r->trainer;
    for (uint64_t i = 0; i < played_micro_batches(t->job); i++) {
        struct timeline *time = t->machine->time;
        struct elapsed before = time ? time->now : (struct elapsed){0};
        trainer_micro_batch(t);
        repeat_time(t, &before, i);
    }
    trainer_update(t);
    sync_weights(r);
}

static void finish(struct run *r)
{
    struct trainer *t = &r->trainer;
    machine_phase(t->machine, PHASE_SAVE);
    t->strategy->save(t, t->job->save_hf != SAVE_NEVER);
}

// verl 0.9 writes the shards alone, unless it is told otherwise (checkpoint.save_contents).
static void finish_shards(struct run *r)
{
    struct trainer *t = &r->trainer;
    machine_phase(t->machine, PHASE_SAVE);
    t->strategy->save(t, false);
}

// verl's own trainer, read from verl 0.9.1, workers/engine/fsdp/transformer_impl.py and
// workers/engine_workers.py: the same passes of the same two models, the reference's shards in host
// memory, gradients reduced after each micro-batch (use_no_sync_for_gradient_accumulation is off in
// its configuration). Its update computes no entropy where its weight is 0 and makes the logits'
// gradient in their place; what is played here takes that much more. The pass that reads the
// policy's own log-probabilities keeps nothing and takes less than the reference's.
const struct run_kind verl_run = {
    .steps = 2,
    .habits = {.reads_values = true,
               .reads_positions = true,
               .sends_parameters = true,
               .head_unit = HEAD_IN_ROOT}, // verl 0.9.1, utils/fsdp_utils.py
    .build = build,
    .step = step,
    .finish = finish_shards,
    .always_distributed = true,
    .kernels_bytes = KERNELS_BYTES + ASLEEP_BYTES,
};

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
