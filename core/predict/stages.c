// See stages.h.
#include "core/predict/stages.h"

uint64_t seen_rank(const struct job *job, int seen)
{
    return seen == SEEN_FIRST ? 0 : seen == SEEN_LAST ? job->pipeline - 1 : 1;
}

bool is_seen(const struct job *job, int seen)
{
    return seen != SEEN_BETWEEN || job->pipeline > 2;
}

// A stage's output goes to the next as this rank has it, in bf16.
static double handed_bytes(const struct job *job)
{
    uint64_t tokens = job_tokens(job) / job->tensor;
    return 2 * (double)tokens * (double)job->model.hidden;
}

// What all ranks multiply, of what they could in that time.
static double mfu_of(const struct job *job, const struct seen_stage seen[SEEN_STAGES],
                     double seconds)
{
    double sum = 0;
    for (int i = 0; i < SEEN_STAGES; i++) {
        double ranks = i == SEEN_BETWEEN ? (double)(job->pipeline - 2) : 1;
        sum += seen[i].time.mfu * seen[i].time.seconds * ranks;
    }
    return sum / seconds / (double)job->pipeline;
}

static struct pipeline pipeline_of(const struct job *job, const struct seen_stage seen[SEEN_STAGES])
{
    return (struct pipeline){
        .first = seen[SEEN_FIRST].passing,
        .between = seen[SEEN_BETWEEN].passing,
        .last = seen[SEEN_LAST].passing,
        .ranks = job->pipeline,
        .stages = job->interleaved,
        .batches = job->accumulation,
        .transfer = handing_seconds(&seen->network, job_ranks(job), handed_bytes(job))};
}

double stages_seconds(struct arena scratch, const struct job *job,
                      const struct seen_stage seen[SEEN_STAGES])
{
    const struct pipeline p = pipeline_of(job, seen);
    return pipeline_seconds(&p, scratch);
}

struct step_time step_time_of_stages(struct arena scratch, const struct job *job,
                                     const struct seen_stage seen[SEEN_STAGES])
{
    const struct pipeline p = pipeline_of(job, seen);
    int slowest =
        seen[SEEN_LAST].time.seconds > seen[SEEN_FIRST].time.seconds ? SEEN_LAST : SEEN_FIRST;
    struct step_time t = seen[slowest].time;
    if (t.unknown)
        return t;
    t.reading = pipeline_reading(&p, scratch);
    double own = t.seconds, seconds = pipeline_seconds(&p, scratch);
    t.mfu = mfu_of(job, seen, seconds);
    t.bubble = pipeline_bubble(&p, seconds);
    t.low *= seconds / own;
    t.high *= seconds / own;
    t.tokens_per_second *= own / seconds;
    t.seconds = seconds;
    return t;
}
