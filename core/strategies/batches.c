// See batches.h.
#include "core/strategies/batches.h"

#include "core/base/num.h"
#include "core/models/vision/vision.h"
#include "core/strategies/trainer.h"

// Steps beyond those that are said are as the last of them.
static const struct varied_batch *batch_of(const struct trainer *t, const struct job *p, int i)
{
    int said = p->varied->count, step = t->machine->step < said ? t->machine->step : said;
    return &p->varied->batch[step - 1][i < VARIED_BATCHES ? i : VARIED_BATCHES - 1];
}

// Of padded rows, where it is known how long each is. Both answers of a pair are as long.
static uint64_t padding_of(const struct varied_batch *b, const struct job *one)
{
    bool known = b->filled && one->batching == BATCHING_PADDED && one->ring == 1;
    return known ? (b->tokens * one->batch - b->filled) * (job_rows(one) / one->batch) : 0;
}

static struct job job_of_batch(const struct trainer *t, const struct job *p, int i)
{
    const struct varied_batch *b = batch_of(t, p, i);
    struct job one = *p;
    if (p->batching == BATCHING_PACKED)
        one.batch = 1; // one row of all
    else if (b->even)
        one.batching = BATCHING_FULL;
    one.context = u64_most(b->tokens, 2); // one that is alone has no label
    if (one.prompt >= one.context)
        one.prompt = one.context - 1;
    one.padding = padding_of(b, &one);
    return one;
}

static uint64_t batch_tokens(const struct trainer *t, int i)
{
    if (!t->job->varied)
        return job_tokens(t->job);
    struct job one = job_of_batch(t, t->job, i);
    return job_tokens(&one);
}

// Tokens and mask, with labels, or a mask of answers, or all of it twice for kto's KL term
// (the collators of trl 1.16).
static int batch_columns(const struct trainer *t)
{
    int columns = t->habits->batch_columns + job_shifts_early(t->job); // positions
    bool joined = job_generates(t->job); // prompts and answers, and their masks, as parts and whole
    return t->job->task == TASK_REWARD ? 2
           : t->job->task == TASK_KTO  ? 2 * columns
           : joined                    ? 4
                                       : columns;
}

// deepspeed 0.19.8, ulysses_sp.py, UlyssesSPDataLoaderAdapter: this rank's parts come from host
// memory, while Accelerate's data loader has its next batch, whole, on the card.
bool batch_is_split(const struct trainer *t)
{
    return t->job->ulysses > 1 && job_shifts_early(t->job);
}

void batch_take_parts(struct trainer *t, struct storage **parts)
{
    uint64_t bytes = 8 * job_tokens(t->job);
    int columns = batch_columns(t);
    if (!t->batches) {
        t->batches = NEW(t->machine->arena, struct storage *, columns);
        for (int i = 0; i < columns; i++)
            t->batches[i] = machine_take(t->machine, bytes * t->job->ulysses, MEMORY_INPUTS);
    }
    for (int i = 0; i < columns; i++)
        parts[i] = machine_take(t->machine, bytes, MEMORY_INPUTS);
    t->ids = (struct var){parts[0], NO_NODE, 8, job_tokens(t->job)};
}

// transformers/trainer.py, get_batch_samples: a step's batches come while the last step's are still
// there. Those of micro-batches that are not simulated are one tensor.
void batches_load(struct trainer *t)
{
    const struct job *p = t->job;
    struct machine *m = t->machine;
    uint64_t bytes = 8 * job_tokens(p), batches = trainer_micro_batches(p);
    int columns = batch_columns(t), count = columns * (int)batches + 1;
    ASSERT(columns <= MOST_BATCH_COLUMNS);
    struct storage *loaded[MOST_BATCH_COLUMNS * DIFFERENT_MICRO_BATCHES + 1];
    for (int i = 0; i + 1 < count; i++)
        loaded[i] = machine_take(m, 8 * batch_tokens(t, i / columns), MEMORY_INPUTS);
    loaded[count - 1] =
        machine_take(m, bytes * (uint64_t)columns * (p->accumulation - batches), MEMORY_INPUTS);
    load_pictures(t, batches);
    if (!t->batches)
        t->batches = NEW(m->arena, struct storage *, count);
    for (int i = 0; i < count; i++) {
        machine_drop(m, t->batches[i]);
        t->batches[i] = loaded[i];
    }
    t->ids = (struct var){loaded[0], NO_NODE, 8, job_tokens(p)};
}

// The first column of a batch is its tokens.
void batch_enter(struct trainer *t, uint64_t micro_batch)
{
    int i = (int)micro_batch;
    if (!t->job->varied)
        return;
    struct job *one = NEW(t->machine->arena, struct job, 1);
    *one = job_of_batch(t, t->job, i);
    t->whole = t->job;
    t->job = one;
    if (t->batches && !batch_is_split(t)) {
        struct storage **columns = t->batches + (ptrdiff_t)i * batch_columns(t);
        t->ids = (struct var){columns[0], NO_NODE, 8, job_tokens(one)};
    }
    if (t->reference)
        batch_enter(t->reference, micro_batch);
}

void batch_leave(struct trainer *t)
{
    if (!t->whole)
        return;
    t->job = t->whole;
    t->whole = NULL;
    if (t->reference)
        batch_leave(t->reference);
}
