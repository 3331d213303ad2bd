// How much DeepSpeed reduces, gathers and keeps at once: as it was said, as transformers fills in
// for "auto", or by DeepSpeed's own defaults.
#include "core/base/num.h"
#include "core/job/job.h"

// deepspeed/runtime/zero/config.py
const struct zero_sizes zero_sizes_of_deepspeed = {.reduced = 500000000,
                                                   .ahead = 50000000,
                                                   .persists = 100000,
                                                   .sub_group = 1000000000,
                                                   .live = 1000000000,
                                                   .reuse = 1000000000};

static uint64_t said_or(uint64_t said, uint64_t otherwise)
{
    return said ? said : otherwise;
}

static struct zero_sizes with_said(const struct zero_sizes *said, struct zero_sizes sizes)
{
    return (struct zero_sizes){.reduced = said_or(said->reduced, sizes.reduced),
                               .ahead = said_or(said->ahead, sizes.ahead),
                               .persists = said_or(said->persists, sizes.persists),
                               .sub_group = said_or(said->sub_group, sizes.sub_group),
                               .live = said_or(said->live, sizes.live),
                               .reuse = said_or(said->reuse, sizes.reuse)};
}

// transformers/integrations/deepspeed.py, HfTrainerDeepSpeedConfig.trainer_config_finalize.
static struct zero_sizes filled_in(const struct job *p)
{
    uint64_t hidden = p->model.hidden, square = sat_mul(hidden, hidden);
    struct zero_sizes sizes = zero_sizes_of_deepspeed;
    sizes.reduced = square;
    sizes.ahead = sat_mul(9, square) / 10;
    sizes.persists = sat_mul(10, hidden);
    return sizes;
}

struct zero_sizes job_zero_sizes(const struct job *p)
{
    return with_said(&p->zero_sizes,
                     p->zero_buckets == BUCKETS_AUTO ? filled_in(p) : zero_sizes_of_deepspeed);
}

struct zero_sizes job_zero_sizes_of_reference(const struct job *p)
{
    return with_said(&p->zero_sizes, zero_sizes_of_deepspeed);
}

static bool are_same(const struct job *p, struct zero_sizes a, struct zero_sizes b)
{
    bool third = a.ahead == b.ahead && a.persists == b.persists && a.sub_group == b.sub_group &&
                 a.live == b.live && a.reuse == b.reuse;
    bool without = p->strategy != STRATEGY_ZERO3 && !job_sizes_third_stage(p);
    return a.reduced == b.reduced && (third || without);
}

void job_settle_zero_sizes(struct job *p)
{
    struct zero_sizes sizes = job_zero_sizes(p);
    bool automatic = are_same(p, sizes, filled_in(p));
    if (!job_is_zero(p) || !job_says_zero_sizes(p) ||
        (!automatic && !are_same(p, sizes, zero_sizes_of_deepspeed)))
        return;
    p->zero_buckets = automatic ? BUCKETS_AUTO : BUCKETS_OF_DEEPSPEED;
    p->zero_sizes = (struct zero_sizes){0};
}

bool job_sizes_third_stage(const struct job *p)
{
    const struct zero_sizes *s = &p->zero_sizes;
    return s->ahead || s->persists || s->sub_group || s->live || s->reuse;
}

bool job_says_zero_sizes(const struct job *p)
{
    return p->zero_sizes.reduced || job_sizes_third_stage(p);
}
