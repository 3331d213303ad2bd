// See real_time.h.
#include "core/predict/real_time.h"

#include "core/base/num.h"
#include "core/predict/epoch.h"
#include "core/predict/lengths.h"

static uint64_t data_parallel(const struct job *job)
{
    uint64_t shared = job->ulysses * job->ring * job->tensor * job->pipeline;
    return job_ranks(job) / (shared ? shared : 1);
}

// Sequences that wait for the longest of them: those of one batch, and of the ranks that meet in
// every layer; ranks that meet at the end of a step meet after all of its batches.
static uint64_t waiting_together(const struct job *job)
{
    bool meet = job_is_sharded(job) || job->accumulation == 1;
    return sat_mul(job_rows(job), meet ? data_parallel(job) : 1);
}

// The job with shorter sequences, to what its ranks can share.
static bool shortened(struct job *shorter, const struct job *job, double tokens, struct error *e)
{
    uint64_t piece = job->ulysses * job->ring * 2;
    uint64_t length = u64_divide_up((uint64_t)tokens, piece) * piece;
    *shorter = *job;
    shorter->varied = NULL; // batches of one length
    if (length >= job->context)
        return true;
    shorter->context = length;
    shorter->prompt = (uint64_t)((double)job->prompt * (double)length / (double)job->context);
    shorter->response = job->response ? length - shorter->prompt : 0;
    return job_check(shorter, e);
}

static bool add_step(struct step_time *sum, struct arena scratch, const struct job *job,
                     struct error *e)
{
    struct prediction *p = NEW(&scratch, struct prediction, 1);
    if (!predict_time(p, &scratch, job, e))
        return false;
    sum->seconds += p->time.seconds;
    sum->mfu += p->time.mfu * p->time.seconds;
    sum->bound_by = p->time.bound_by;
    return true;
}

static void count_epoch(struct step_time *t, const struct lengths *l, const struct job *job)
{
    struct split split = {job->batch, job->accumulation, data_parallel(job)};
    uint64_t rows = job->batching == BATCHING_PACKED
                        ? packed_rows(l->count, t->mean_tokens, job->context)
                        : l->count;
    t->epoch_steps = steps_per_epoch(job->recipe, rows, split);
}

// Of how many lengths stand for all.
static bool typical_jobs(struct real_time_jobs *r, struct arena *a, const struct job *job,
                         const struct lengths *l, struct error *e)
{
    double typical[REAL_TIME_JOBS];
    r->count = l->parts == 1 ? 1 : REAL_TIME_JOBS;
    lengths_typical(typical, r->count, l, waiting_together(job));
    for (int i = 0; i < r->count; i++) {
        r->jobs[i] = NEW(a, struct job, 1);
        if (!shortened(r->jobs[i], job, typical[i], e))
            return false;
    }
    return true;
}

// Packed rows are as long as any, whatever they hold.
static bool find_padded(struct step_time *t, struct arena scratch, const struct job *job,
                        const struct lengths *l, struct error *e)
{
    struct step_time sum = {0};
    struct real_time_jobs r;
    if (!typical_jobs(&r, &scratch, job, l, e))
        return false;
    for (int i = 0; i < r.count; i++)
        if (!add_step(&sum, scratch, r.jobs[i], e))
            return false;
    sum.mfu /= sum.seconds;
    sum.seconds /= r.count;
    double of_longest = sum.seconds / t->longest;
    t->padded_tokens = lengths_longest(l, job->context, waiting_together(job));
    double real = t->mean_tokens / t->padded_tokens;
    t->tokens_per_second *= t->mean_tokens / (double)job->context / of_longest;
    t->mfu = sum.mfu * real;
    t->bound_by = sum.bound_by;
    t->seconds *= of_longest;
    t->low *= of_longest;
    t->high *= of_longest;
    return true;
}

bool real_time_find(struct step_time *t, struct arena scratch, const struct job *job,
                    struct error *e)
{
    struct lengths *l = NEW(&scratch, struct lengths, 1);
    if (!lengths_read(l, job->given, e))
        return false;
    if (!l->parts || t->unknown || !t->bound_by)
        return true;
    t->longest = t->seconds;
    t->mean_tokens = lengths_mean(l, job->context);
    t->padded_tokens = (double)job->context;
    if (job->batching != BATCHING_PACKED && !find_padded(t, scratch, job, l, e))
        return false;
    if (l->count)
        count_epoch(t, l, job);
    return true;
}

bool real_time_jobs(struct real_time_jobs *r, struct arena *a, const struct job *job,
                    struct error *e)
{
    struct lengths *l = NEW(a, struct lengths, 1);
    if (!lengths_read(l, job->given, e))
        return false;
    if (l->parts && job->batching != BATCHING_PACKED)
        return typical_jobs(r, a, job, l, e);
    r->count = 1;
    r->jobs[0] = NEW(a, struct job, 1);
    *r->jobs[0] = *job;
    return true;
}
