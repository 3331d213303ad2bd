// TRL over accelerate 1.15 (utils/fsdp_utils.py, fsdp2_prepare_model): the last norm and the head
// are one unit, and gradients are reduced in the compute type. A batch is tokens, labels and mask.
// Losses that compare have a reference model beside the one that is trained.
#include "core/losses/trl.h"
#include "core/losses/losses.h"
#include "core/recipes/run.h"
#include "core/strategies/batches.h"

static const struct habits whole_reference = {.batch_columns = 3};
static const struct habits sharded_reference = {
    .batch_columns = 3, .cuts_on_card = true, .one_unit = true};

// dpo_trainer.py and kto_trainer.py, compute_ref_log_probs: kto reads other answers' too.
static void read_batch(struct trainer *t, const struct job *batch)
{
    struct machine *m = t->machine;
    const struct job *trained = t->job;
    uint64_t bytes = 8 * job_tokens(batch);
    struct storage *columns[MOST_BATCH_COLUMNS] = {0};
    struct storage *labels;
    t->job = batch;
    for (int i = 0; i < t->habits->batch_columns; i++)
        columns[i] = machine_take(m, bytes, MEMORY_INPUTS);
    labels = machine_take(m, bytes, MEMORY_INPUTS);
    t->ids = (struct var){storage_share(columns[0]), NO_NODE, 8, job_tokens(batch)};
    for (int i = 0; i <= (batch->task == TASK_KTO); i++) {
        struct var sums = trl_read(t);
        var_drop(&t->graph, &sums);
    }
    var_drop(&t->graph, &t->ids);
    machine_drop(m, labels);
    for (int i = 0; i < MOST_BATCH_COLUMNS; i++)
        machine_drop(m, columns[i]);
    t->job = trained;
}

// The same, _precompute_ref_logps: all rows that are trained on, then those that are evaluated. The
// second batch finds what ZeRO-3 wrote down in the first; from then on they are all alike.
static void precompute(struct trainer *t)
{
    struct job *batch = NEW(t->machine->arena, struct job, 1);
    *batch = *t->job;
    machine_phase(t->machine, PHASE_REFERENCE);
    t->graph.without_adapters = true;
    read_batch(t, batch);
    read_batch(t, batch);
    batch->batch = t->job->evaluation_batch;
    if (batch->batch)
        read_batch(t, batch);
    t->graph.without_adapters = false;
    machine_phase(t->machine, PHASE_BUILD);
}

// dpo_trainer.py: under FSDP the policy is not sharded until it trains, so that a reference is
// loaded for it, freed once it is done.
static void read_and_dismiss(struct trainer *reference)
{
    precompute(reference);
    reference->strategy->dismiss(reference);
}

// The job of a model that is only read: from_pretrained leaves it in eval(), where nothing is left
// out at random.
static void read_as(struct job *read, const struct job *p, const struct model *m)
{
    *read = *p;
    read->model = *m;
    read->model.dropouts = (struct dropouts){0};
}

// trl/models/utils.py, prepare_deepspeed and prepare_fsdp: the reference is on the card before what
// is trained. Below stage 3 it is a model like any other, in bf16 and whole; FSDP2 has one unit of
// it, which is whole while it reads.
static void build_before(struct run *r, const struct job *p, struct machine *m)
{
    read_as(&r->reference_job, p, &p->model);
    if (p->strategy == STRATEGY_FSDP1 || p->strategy == STRATEGY_FSDP2) {
        bool one_unit = p->strategy == STRATEGY_FSDP2;
        trainer_build_reference(&r->reference, &r->reference_job, m,
                                one_unit ? &sharded_reference : &r->kind->habits);
        if (p->precomputed)
            read_and_dismiss(&r->reference);
        machine_mark(m, EVENT_EMPTY_CACHE); // transformers/trainer.py, accelerator.free_memory()
        return;
    }
    if (p->strategy != STRATEGY_ZERO3) {
        r->reference_job.strategy = STRATEGY_SINGLE;
        r->reference_job.precision = PRECISION_BF16;
    }
    trainer_build_reference(&r->reference, &r->reference_job, m, &whole_reference);
}

// accelerate 1.15, accelerator.py, prepare_model with evaluation_mode: on the card, but never
// DDP's.
static const struct habits *set_apart(struct job *reference, const struct run *r)
{
    if (reference->strategy != STRATEGY_DDP)
        return &r->kind->habits;
    reference->strategy = STRATEGY_SINGLE;
    return &whole_reference;
}

static void build_after(struct run *r, const struct job *p, struct machine *m)
{
    read_as(&r->reference_job, p, &p->model);
    const struct habits *habits = set_apart(&r->reference_job, r);
    trainer_build_reference(&r->reference, &r->reference_job, m, habits);
}

// distillation_trainer.py: the teacher in the type of its checkpoint, loaded as the student is.
static void build_teacher(struct run *r, const struct job *p, struct machine *m)
{
    read_as(&r->reference_job, p, p->teacher);
    r->reference_job.parameters = *p->teacher_parameters;
    r->reference_job.precision = PRECISION_BF16;
    r->reference_job.lora_rank = 0;
    r->reference_job.packed = QUANTIZE_OFF;
    if (job_is_zero(p) && p->strategy != STRATEGY_ZERO3)
        r->reference_job.strategy = STRATEGY_SINGLE;
    if (p->strategy == STRATEGY_ZERO3)
        r->reference_job.precision = p->precision;
    const struct habits *habits =
        job_is_zero(p) ? &whole_reference : set_apart(&r->reference_job, r);
    trainer_build_teacher(&r->reference, &r->reference_job, m, habits, p);
}

static void build(struct run *r, const struct job *p, struct machine *m)
{
    bool reads = job_reads_reference(p) && !p->lora_rank;
    bool before = job_is_sharded(p), once = p->precomputed && !job_reads_first(p) && !p->lora_rank;
    if ((reads && before) || once)
        build_before(r, p, m);
    if (p->teacher && before)
        build_teacher(r, p, m);
    plain_build(r, p, m);
    if (reads && !before)
        build_after(r, p, m);
    if (p->teacher && !before)
        build_teacher(r, p, m);
    r->trainer.reference = reads || p->teacher ? &r->reference : NULL;
    r->trainer.graph.gemm_ready[false] |= once && r->reference.graph.gemm_ready[false];
}

// grpo_trainer.py and rloo_trainer.py, _generate_and_score_completions: rloo reads its answers with
// the model itself too, and a KL term with the reference, plainly, a micro-batch at a time.
static void read_answers(struct trainer *t, struct trainer *read, bool plainly)
{
    struct var ids = read->ids;
    read->ids = (struct var){machine_take(t->machine, 8 * job_tokens(t->job), MEMORY_INPUTS),
                             NO_NODE, 8, job_tokens(t->job)};
    read->graph.gemm_ready[false] |= t->graph.gemm_ready[false];
    read->without_graph = true;
    read->graph.without_adapters = plainly;
    struct var values = forward_to_loss(read);
    read->without_graph = false;
    read->graph.without_adapters = false;
    var_drop(&read->graph, &values);
    var_drop(&read->graph, &read->ids);
    read->ids = ids;
}

void answer_and_read(struct trainer *t, bool evaluates)
{
    struct timeline *time = t->machine->time;
    double begun = time ? timeline_latest(time) : 0;
    generate_answers(t, evaluates ? PHASE_EVALUATE : PHASE_GENERATE);
    if (time) // a token of many is played
        time->beside += timeline_latest(time) - begun;
    bool reads = t->job->task == TASK_RLOO || job_reads_reference(t->job);
    if (reads && !evaluates)
        machine_phase(t->machine, PHASE_REFERENCE);
    if (t->job->task == TASK_RLOO)
        read_answers(t, t, false);
    if (job_reads_reference(t->job))
        read_answers(t, t->reference ? t->reference : t, true);
}

static void step(struct run *r)
{
    if (job_generates(r->trainer.job))
        answer_and_read(&r->trainer, false);
    plain_step(r);
}

const struct run_kind trl_run = {
    .steps = 3,
    .habits = {.reads_loss = true,
               .checks_loss = true,
               .sums_narrow = true,
               .device_map = true,
               .cuts_on_card = true,
               .keeps_parameters = true,
               .decays_matrices = true,
               .batch_columns = 3,
               .head_unit = HEAD_WITH_NORM,
               .read_first = precompute},
    .build = build,
    .step = step,
};
