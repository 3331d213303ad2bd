// Building a training process and running a step.
#include "core/strategies/trainer.h"

#include "core/losses/losses.h"
#include "core/models/adapters.h"
#include "core/models/parameters.h"
#include "core/models/tensor_share.h"
#include "core/models/vision/vision.h"
#include "core/strategies/batches.h"
#include "core/strategies/strategies.h"

// ATen/cuda/CublasHandlePool.cpp: 32 MiB on compute capability 9.0, else 2 x 4 MiB and 8 x 16 KiB.
uint64_t cublas_workspace_bytes(const struct gpu *card)
{
    return card->capability == 90 ? 32 * MIB : 8 * MIB + 128 * KIB;
}

static void call(void (*hook)(struct trainer *t), struct trainer *t)
{
    if (hook)
        hook(t);
}

static void cross_boundary(struct graph *g, int unit, bool left)
{
    struct trainer *t = g->owner;
    void (*hook)(struct trainer *t, int unit) =
        left ? t->strategy->leave_backward : t->strategy->enter_backward;
    if (hook)
        hook(t, unit);
}

struct graph trainer_graph(struct trainer *t, const struct job *p)
{
    const struct gpu *card = &p->hardware.card;
    return (struct graph){.machine = t->machine,
                          .owner = t,
                          .autocast = job_autocasts(p),
                          .flash = job_attention_kernel(p) == KERNEL_FLASH,
                          .wide = job_computes_wide(p),
                          .efficient = job_attention_kernel(p) >= KERNEL_EFFICIENT,
                          .exchange_ranks = p->ulysses,
                          .tensor_ranks = job_cuts_tensors(p) ? p->tensor : 1,
                          .flash3 = job_attention(p) == ATTENTION_FLASH3,
                          .offload = {.on = p->activation_offload && !t->is_reference,
                                      .knows_weights = !job_is_sharded(p),
                                      .stream = t->first_stream + MODEL_STREAMS - 1},
                          .sample_tokens = job_sample_tokens(p),
                          .attention_waits = t->habits->reads_positions,
                          .reentrant = p->reentrant,
                          .gemm_workspace_bytes = cublas_workspace_bytes(card),
                          .multiprocessors = card->multiprocessors,
                          .threads_per_multiprocessor = card->threads_per_multiprocessor,
                          .boundary = cross_boundary,
                          .module = t->strategy->at_module,
                          .adapter = p->lora_rank ? t->strategy->at_adapter : NULL,
                          .gradient_ready = t->strategy->gradient_ready};
}

bool trainer_reads_first(const struct trainer *t)
{
    return !t->is_reference && t->habits->read_first && job_reads_first(t->job);
}

static void build(struct trainer *t, const struct job *p, struct machine *m)
{
    uint64_t tokens = job_tokens(p);
    t->job = p = job_share(p, m->arena);
    t->machine = m;
    t->width = job_loads_wide(p) ? 4 : 2;
    t->strategy = job_cuts_tensors(p) ? &tensor_strategy : strategy_kind_of(p->strategy);
    t->graph = trainer_graph(t, p);
    struct attention_shape shape = {tokens, p->model.heads, p->model.kv_heads, p->model.head_dim};
    shape.sequence = job_sequence_tokens(p);
    t->ring = (struct ring){shape, p->ring, p->ring_rank};
    t->by_device_map = device_map_loads(t);
    bool sharded = t->strategy->load && !t->by_device_map;
    parameters_build(t);
    if (p->lora_rank && sharded)
        adapters_build(t);
    call(t->by_device_map ? device_map_load : t->strategy->load, t);
    buffers_build(t);
    if (job_is_prepared(p))
        prepare_packed(t);
    if (p->lora_rank && !sharded)
        adapters_build(t);
    if (trainer_reads_first(t))
        t->habits->read_first(t);
    call(t->strategy->build, t);
    if (t->by_device_map && !t->is_reference)
        machine_mark(m, EVENT_EMPTY_CACHE); // transformers/trainer.py, accelerator.free_memory()
    if (p->ring == 1 && !t->habits->batch_columns)
        t->ids = (struct var){machine_take(m, 8 * tokens, MEMORY_INPUTS), NO_NODE, 8, tokens};
    take_pictures(t);
}

void trainer_build(struct trainer *t, const struct job *p, struct machine *m,
                   const struct habits *habits)
{
    *t = (struct trainer){.habits = habits, .first_stream = FIRST_SIDE_STREAM};
    build(t, p, m);
}

void trainer_build_reference(struct trainer *t, const struct job *p, struct machine *m,
                             const struct habits *habits)
{
    *t = (struct trainer){
        .habits = habits, .is_reference = true, .first_stream = FIRST_SIDE_STREAM + MODEL_STREAMS};
    build(t, p, m);
}

void trainer_build_teacher(struct trainer *t, const struct job *p, struct machine *m,
                           const struct habits *habits, const struct job *learner)
{
    *t = (struct trainer){.habits = habits,
                          .is_reference = true,
                          .learner = learner,
                          .first_stream = FIRST_SIDE_STREAM + MODEL_STREAMS};
    build(t, p, m);
}

static void wait_where(const struct trainer *t, bool habit)
{
    if (habit)
        machine_synchronize(t->machine, t->machine->clock[STREAM_COMPUTE]);
}

void trainer_read_value(struct trainer *t)
{
    wait_where(t, t->habits->reads_values);
}

// On one GPU no block waits for the card, and the host's constants were fitted without these waits.
void trainer_micro_batch(struct trainer *t)
{
    bool sharded = job_is_sharded(t->job);
    struct storage *parts[MOST_BATCH_COLUMNS] = {0};
    machine_phase(t->machine, PHASE_FORWARD);
    if (batch_is_split(t))
        batch_take_parts(t, parts);
    if (t->ring.ranks > 1) {
        ring_take_batch(&t->graph, &t->ring);
        t->ids = ring_tokens(&t->ring);
    }
    call(t->strategy->before_forward, t);
    struct var loss = forward_to_loss(t);
    trainer_read_value(t);
    wait_where(t, t->habits->reads_loss && sharded);
    machine_phase(t->machine, PHASE_BACKWARD);
    struct storage *scaled = scaler_scale(t);
    graph_backward(&t->graph, loss);
    machine_drop(t->machine, scaled);
    call(t->strategy->end_backward, t);
    wait_where(t, t->habits->checks_loss && sharded);
    if (t->ring.ranks > 1)
        ring_drop_batch(&t->graph, &t->ring);
    for (int i = 0; i < MOST_BATCH_COLUMNS; i++)
        machine_drop(t->machine, parts[i]);
}

void trainer_update(struct trainer *t)
{
    machine_phase(t->machine, PHASE_OPTIMIZER);
    t->strategy->update(t);
}

uint64_t trainer_micro_batches(const struct job *p)
{
    return p->accumulation < DIFFERENT_MICRO_BATCHES ? p->accumulation : DIFFERENT_MICRO_BATCHES;
}

void trainer_step(struct trainer *t)
{
    uint64_t count = trainer_micro_batches(t->job);
    if (t->habits->batch_columns && t->ring.ranks == 1 && !batch_is_split(t))
        batches_load(t);
    for (uint64_t i = 0; i < count; i++) {
        struct timeline *time = t->machine->time;
        struct elapsed before = time ? time->now : (struct elapsed){0};
        t->keeps_gradients = t->job->reduces_last && i + 1 < count;
        batch_enter(t, i);
        trainer_micro_batch(t);
        batch_leave(t);
        if (time && i + 2 == count) // those that are not simulated are like this one
            timeline_repeat(time, &before, (double)(t->job->accumulation - count));
    }
    trainer_update(t);
}
