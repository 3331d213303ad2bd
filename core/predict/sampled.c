// See sampled.h.
#include "core/predict/sampled.h"

#include "core/base/num.h"
#include "core/base/units.h"
#include "core/predict/sampler.h"

// Sequences in the order in which they are drawn, and who gets them.
struct draw {
    const struct job *job;
    struct rows rows;
    uint32_t *order;
    uint64_t ranks, steps; // of an epoch
};

// TRL's own trainers for tasks that generate repeat prompts; DeepSpeed's sequence parallel hands a
// batch to each of its ranks and lets them work on it together, one after another.
bool sampler_is_known(const struct job *job)
{
    bool packs = job->batching == BATCHING_PACKED;
    bool is_trainer = job->recipe == RECIPE_TRL || (job->recipe == RECIPE_TRANSFORMERS && !packs);
    bool generates = job->task == TASK_GRPO || job->task == TASK_RLOO || job->task == TASK_DISTILL;
    return job->batching != BATCHING_FULL && is_trainer && !generates && job->ulysses == 1 &&
           job->pipeline < 2;
}

static bool read_rows(struct rows *rows, struct arena *a, const struct setting *from,
                      struct error *e)
{
    struct str_cut cut = {.tail = from->value, .found = true};
    ptrdiff_t capacity = 0;
    while (cut.found) {
        uint64_t tokens;
        cut = str_cut(cut.tail, ' ');
        if (rows->count == SAMPLER_MOST_ROWS ||
            unit_parse(&tokens, UNIT_PLAIN, cut.head) != UNIT_OK || !tokens || tokens > UINT32_MAX)
            return FAIL(e, BAD_INPUT, from->where, "these lengths cannot be read");
        rows->tokens = arena_grow(a, rows->tokens, sizeof *rows->tokens, rows->count, &capacity);
        rows->tokens[rows->count++] = (uint32_t)tokens;
    }
    return true;
}

// trl 1.16, reward_trainer.py: pairs that are too long are left out, where others cut them.
static void leave_out_long(struct rows *rows, uint64_t most)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < rows->count; i++)
        if (rows->tokens[i] <= most)
            rows->tokens[kept++] = rows->tokens[i];
    rows->count = kept;
}

// accelerate 1.15, data_loader.py, BatchSamplerShard: each rank has each `ranks`-th batch. The last
// are filled up from the beginning.
static struct varied_batch batch_of(const struct draw *d, uint64_t rank, uint64_t number)
{
    struct varied_batch b = {.even = true};
    uint64_t first = sat_mul(number * d->ranks + rank, d->job->batch), shortest = d->job->context;
    for (uint64_t i = 0; i < d->job->batch; i++) {
        uint64_t at = (first + i) % (uint64_t)d->rows.count;
        uint64_t tokens = u64_least(d->rows.tokens[d->order[at]], d->job->context);
        shortest = u64_least(shortest, tokens);
        b.filled += tokens;
        b.tokens =
            d->job->batching == BATCHING_PACKED ? b.tokens + tokens : u64_most(b.tokens, tokens);
    }
    b.even = shortest == b.tokens;
    return b;
}

static uint64_t longest_of_step(const struct draw *d, uint64_t rank, uint64_t step)
{
    uint64_t longest = 0;
    for (uint64_t i = 0; i < d->job->accumulation; i++)
        longest = u64_most(longest, batch_of(d, rank, step * d->job->accumulation + i).tokens);
    return longest;
}

// Of more micro-batches than are simulated: the first, and the longest of the others last.
static void fill_step(struct varied_batch to[VARIED_BATCHES], const struct draw *d, uint64_t rank,
                      uint64_t step)
{
    uint64_t all = d->job->accumulation;
    for (uint64_t i = 0; i < all; i++) {
        struct varied_batch b = batch_of(d, rank, step * all + i);
        if (i < VARIED_BATCHES)
            to[i] = b;
        else if (b.tokens > to[VARIED_BATCHES - 1].tokens)
            to[VARIED_BATCHES - 1] = b;
    }
    for (uint64_t i = all; i < VARIED_BATCHES; i++)
        to[i] = to[i - 1];
}

// The first that gets the longest batch: where a rank runs out of memory all of them end.
static uint64_t rank_of_longest(const struct draw *d)
{
    uint64_t longest = 0, found = 0;
    for (uint64_t step = 0; step < d->steps; step++)
        for (uint64_t rank = 0; rank < d->ranks; rank++) {
            uint64_t tokens = longest_of_step(d, rank, step);
            if (tokens > longest) {
                longest = tokens;
                found = rank;
            }
        }
    return found;
}

// The first steps as they come, and of the others each that is longer than all before it; of too
// many the last.
static void choose_steps(struct varied *v, const struct draw *d, uint64_t rank)
{
    uint64_t longest = 0;
    v->rank = rank;
    for (uint64_t step = 0; step < d->steps; step++) {
        uint64_t tokens = longest_of_step(d, rank, step);
        bool is_longer = tokens > longest;
        longest = u64_most(longest, tokens);
        if (step >= VARIED_FIRST && !is_longer)
            continue;
        if (v->count == VARIED_MOST)
            v->count--;
        v->number[v->count] = step + 1;
        fill_step(v->batch[v->count++], d, rank, step);
    }
}

// trl 1.16, kto_config.py: each is set beside its neighbour's answer.
bool sampler_shuffles(const struct job *job)
{
    return job->task != TASK_KTO;
}

static uint32_t *order_of(struct arena *a, const struct job *job, ptrdiff_t count)
{
    uint32_t *order = NEW(a, uint32_t, count);
    for (ptrdiff_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    if (sampler_shuffles(job))
        sampler_shuffle(order, count);
    return order;
}

static bool rank_asked(uint64_t *rank, const struct draw *d, struct error *e)
{
    const struct setting *asked = settings_find_z(d->job->given, "data-rank");
    if (asked)
        return setting_number(rank, asked, UNIT_PLAIN, (struct range){0, d->ranks - 1}, e);
    *rank = rank_of_longest(d);
    return true;
}

// A rank whose batches are not played says nothing.
static bool is_no_rank_asked(const struct job *job, struct error *e)
{
    const struct setting *asked = settings_find_z(job->given, "data-rank");
    if (!asked)
        return true;
    if (!settings_find_z(job->given, "data.count"))
        return FAIL(e, BAD_INPUT, asked->where,
                    "data-rank is whose batches of --data are played, and no data is given");
    return FAIL(e, BAD_INPUT, asked->where,
                "batches of --data are played where TRL or transformers' Trainer pads or packs at "
                "most %d rows, without --sp: --batching padded",
                SAMPLER_MOST_ROWS);
}

// What there is to draw from.
static bool read_drawn(struct rows *rows, struct arena *a, const struct job *job,
                       const struct setting *from, struct error *e)
{
    if (!read_rows(rows, a, from, e))
        return false;
    if (job->task == TASK_REWARD)
        leave_out_long(rows, job->context);
    if (!rows->count)
        return FAIL(e, BAD_INPUT, from->where,
                    "all of these pairs are longer than the context, and are left out");
    if (job->batching == BATCHING_PACKED)
        *rows = sampler_pack(a, *rows, (uint32_t)u64_least(job->context, UINT32_MAX));
    return true;
}

bool sampled_read(struct job *job, struct arena *a, struct error *e)
{
    const struct setting *from = settings_find_z(job->given, "data.rows");
    struct draw d = {.job = job};
    uint64_t rank;
    if (!from || !sampler_is_known(job))
        return is_no_rank_asked(job, e);
    if (!read_drawn(&d.rows, a, job, from, e))
        return false;
    d.order = order_of(a, job, d.rows.count);
    d.ranks = u64_most(job_ranks(job) / (job->tensor * job->ring), 1);
    uint64_t step_rows = sat_mul(sat_mul(job->batch, job->accumulation), d.ranks);
    d.steps = u64_most((uint64_t)d.rows.count / step_rows, 1);
    if (!rank_asked(&rank, &d, e))
        return false;
    struct varied *v = NEW(a, struct varied, 1);
    v->steps = d.steps;
    choose_steps(v, &d, rank);
    job->varied = v;
    return true;
}

bool sampled_longest(uint64_t *tokens, struct arena scratch, const struct job *job, struct error *e)
{
    const struct setting *from = settings_find_z(job->given, "data.rows");
    struct rows rows = {0};
    *tokens = 0;
    if (!from || !sampler_is_known(job))
        return true;
    if (!read_drawn(&rows, &scratch, job, from, e))
        return false;
    for (ptrdiff_t i = 0; i < rows.count; i++)
        *tokens = u64_most(*tokens, u64_least(rows.tokens[i], job->context));
    return true;
}
