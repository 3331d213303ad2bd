// See real_time.h.
#include "core/predict/real_time.h"

#include "core/base/num.h"
#include "core/predict/epoch.h"
#include "core/predict/lengths.h"

// How many lengths stand for all.
enum { TYPICAL = 5 };

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
                     double tokens, struct error *e)
{
    struct job *shorter = NEW(&scratch, struct job, 1);
    struct prediction *p = NEW(&scratch, struct prediction, 1);
    if (!shortened(shorter, job, tokens, e) || !predict_time(p, &scratch, shorter, e))
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

// Packed rows are as long as any, whatever they hold.
static bool find_padded(struct step_time *t, struct arena scratch, const struct job *job,
                        const struct lengths *l, struct error *e)
{
    struct step_time sum = {0};
    double typical[TYPICAL];
    uint64_t together = waiting_together(job);
    int count = l->parts == 1 ? 1 : TYPICAL;
    lengths_typical(typical, count, l, together);
    for (int i = 0; i < count; i++)
        if (!add_step(&sum, scratch, job, typical[i], e))
            return false;
    sum.mfu /= sum.seconds;
    sum.seconds /= count;
    double of_longest = sum.seconds / t->longest;
    t->padded_tokens = lengths_longest(l, job->context, together);
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
