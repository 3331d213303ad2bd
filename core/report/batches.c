// See batches.h.
#include "core/report/batches.h"

#include "core/base/num.h"
#include "core/base/units.h"
#include "core/predict/sampled.h"
#include "core/predict/sampler.h"

uint64_t step_number(const struct job *job, int played)
{
    bool drawn = job->varied && job->varied->steps && played > 0;
    return drawn ? job->varied->number[played - 1] : (uint64_t)played;
}

// Of more steps than are usually played: the first, and those that took more than all before them.
static bool is_worth_a_line(const struct prediction *p, int step)
{
    uint64_t allocated = 0, reserved = 0;
    for (int i = 0; i < step; i++) {
        allocated = u64_most(allocated, p->steps[i].allocated_bytes);
        reserved = u64_most(reserved, p->steps[i].reserved_bytes);
    }
    uint64_t before = step ? p->steps[step - 1].retries : 0;
    return p->steps_asked <= PREDICT_STEPS || p->steps[step].allocated_bytes > allocated + MIB ||
           p->steps[step].reserved_bytes > reserved + MIB || p->steps[step].retries > before;
}

void report_steps(struct buf *out, const struct view *v, const struct job *job,
                  const struct prediction *p)
{
    static const struct column columns[] = {{"  step", .right = true},
                                            {"allocated", .right = true},
                                            {"reserved", .right = true},
                                            {"after it", .right = true},
                                            {"flushes", .right = true, .priority = 1}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    for (int i = 0; i < p->steps_done; i++) {
        if (!is_worth_a_line(p, i))
            continue;
        table_cell(&t, str_format(t.arena, "%llu", (unsigned long long)step_number(job, i + 1)));
        table_cell(&t, bytes_text(t.arena, p->steps[i].allocated_bytes));
        table_cell(&t, bytes_text(t.arena, p->steps[i].reserved_bytes));
        table_cell(&t, bytes_text(t.arena, p->steps[i].end_allocated_bytes));
        uint64_t before = i ? p->steps[i - 1].retries : 0;
        uint64_t flushes = p->steps[i].retries - before;
        table_cell(&t, str_format(t.arena, "%llu", (unsigned long long)flushes));
    }
    if (!t.cell_count)
        return;
    buf_char(out, '\n');
    table_print(&t, out, v);
}

static uint64_t longest_batch(const struct varied *batches)
{
    uint64_t longest = 0;
    for (int i = 0; i < batches->count; i++)
        for (int k = 0; k < VARIED_BATCHES; k++)
            longest = u64_most(longest, batches->batch[i][k].tokens);
    return longest;
}

static int first_steps(const struct varied *batches)
{
    int first = 0;
    while (first < batches->count && batches->number[first] == (uint64_t)first + 1)
        first++;
    return first;
}

// "the first 48 of 312 steps, and 2 that are longer"
static void put_drawn(struct buf *b, const struct job *job)
{
    const struct varied *drawn = job->varied;
    int first = first_steps(drawn);
    buf_put_z(b, "batches as the Trainer's sampler draws them from the data");
    if (job_ranks(job) > 1)
        buf_printf(b, " for rank %llu", (unsigned long long)drawn->rank);
    if (sampler_shuffles(job))
        buf_printf(b, " (seed %d, ", SAMPLER_SEED);
    else
        buf_put_z(b, " (in its order, ");
    if (drawn->steps == 1)
        buf_put_z(b, "the one step of an epoch");
    else if (drawn->steps == (uint64_t)first)
        buf_printf(b, "all %d steps of an epoch", first);
    else
        buf_printf(b, "the first %d of %llu steps", first, (unsigned long long)drawn->steps);
    if (drawn->count > first)
        buf_printf(b, " and %d that %s longer than all before", drawn->count - first,
                   drawn->count - first == 1 ? "is" : "are");
    buf_put_z(b, "), of up to ");
}

void report_rows(struct buf *out, const struct view *v, const struct job *job)
{
    bool packed = job->batching == BATCHING_PACKED;
    uint64_t row = job->varied ? longest_batch(job->varied) : job_sequence_tokens(job);
    if (!job_masks_rows(job) && !job_has_uneven_rows(job))
        return;
    struct buf text = buf_in(out->arena);
    buf_put_z(&text, packed ? "packed: " : "padded: ");
    if (job->varied && job->varied->steps)
        put_drawn(&text, job);
    else
        buf_put_z(&text, job->varied ? "batches as they were named, of up to "
                         : packed    ? "every batch is one row of "
                                     : "every batch is the worst, rows of ");
    buf_printf(&text, "%llu tokens%s; ", (unsigned long long)row,
               packed ? ", one sequence after another" : "");
    if (job_attends_by_package(job)) {
        buf_put_z(&text, packed ? "flash-attn needs no mask to keep them apart"
                                : "flash-attn is given copies without what pads them");
    } else {
        buf_put_z(&text, "sdpa needs a mask of all their pairs, ");
        put_bytes(&text, sat_mul(sat_mul(row, row), job_rows(job)));
        buf_put_z(&text, packed ? ", to keep sequences apart" : ", as some are shorter");
    }
    buf_wrapped(out, buf_str(&text), 2, v->width);
}

static void batch_json(struct json_out *j, const struct varied_batch *b)
{
    json_out_object(j);
    json_out_field_u64(j, "tokens", b->tokens);
    if (b->filled)
        json_out_field_u64(j, "filled", b->filled);
    json_out_field_bool(j, "even", b->even);
    json_out_object_end(j);
}

void report_batches_json(struct json_out *j, const struct job *job)
{
    const struct varied *batches = job->varied;
    if (!batches)
        return;
    json_out_key(j, "batches");
    json_out_object(j);
    if (batches->steps) {
        if (sampler_shuffles(job))
            json_out_field_u64(j, "seed", SAMPLER_SEED);
        json_out_field_u64(j, "rank", batches->rank);
        json_out_field_u64(j, "steps_per_epoch", batches->steps);
    }
    json_out_key(j, "steps");
    json_out_array(j);
    for (int i = 0; i < batches->count; i++) {
        json_out_object(j);
        json_out_field_u64(j, "step", step_number(job, i + 1));
        json_out_key(j, "micro_batches");
        json_out_array(j);
        for (uint64_t k = 0; k < u64_least(job->accumulation, VARIED_BATCHES); k++)
            batch_json(j, &batches->batch[i][k]);
        json_out_array_end(j);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}
