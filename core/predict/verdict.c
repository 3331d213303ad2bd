// The rule. A margin that was given decides alone; without one, flushes count too.
#include "core/predict/verdict.h"

#include "core/base/num.h"
#include "core/base/units.h"

enum { MILLION = 1000000 };

const char *grade_name(enum grade grade)
{
    static const char *const names[] = {
        [GRADE_NO] = "no", [GRADE_TIGHT] = "tight", [GRADE_SAFE] = "safe"};
    return names[grade];
}

static bool read_bytes(uint64_t *bytes, const struct setting *item, struct error *e)
{
    return !item || setting_number(bytes, item, UNIT_BYTES, (struct range){0, UINT64_MAX}, e);
}

bool wanted_read(struct wanted *w, struct arena scratch, const struct job *job,
                 uint64_t limit_bytes, struct error *e)
{
    const struct setting *margin = settings_find_z(job->given, "margin");
    const struct setting *host = settings_find_z(job->given, "host-memory");
    *w = (struct wanted){.margin_given = margin != NULL};
    if (!host) // with --gpu auto
        host = settings_find_z(job->given, "machine.memory");
    if (!read_bytes(&w->margin_bytes, margin, e) || !read_bytes(&w->host_bytes, host, e))
        return false;
    if (!margin || !w->margin_bytes || w->margin_bytes < limit_bytes)
        return true;
    struct str given = bytes_text(&scratch, w->margin_bytes);
    struct str whole = bytes_text(&scratch, limit_bytes);
    return FAIL(e, BAD_INPUT, margin->where,
                "a margin of %.*s leaves nothing of the %.*s that torch may take", STR_ARGS(given),
                STR_ARGS(whole));
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

uint64_t verdict_margin_bytes(const struct verdict *v)
{
    return v->wanted.margin_given ? v->wanted.margin_bytes : v->error_bytes + v->spread_bytes;
}

static enum grade grade_of(const struct verdict *v, bool fits)
{
    if (!fits || v->host_is_short)
        return GRADE_NO;
    bool flushes = v->flushes && !v->wanted.margin_given;
    return v->free_bytes >= verdict_margin_bytes(v) && !flushes ? GRADE_SAFE : GRADE_TIGHT;
}

// A card holds no more than it has, unless a limit is given that has nothing to do with it.
static void find_driver_range(struct verdict *v, const struct job *job,
                              const struct outcome_figures *f)
{
    uint64_t reserved = f->reserved_bytes, outside = f->outside_bytes;
    struct spread spread = spread_of(job);
    uint64_t worst = v->evidence.errors.reserved_worst;
    uint64_t over = sat_mul(reserved, worst) / (MILLION + worst);
    v->driver_low_bytes = less(reserved + outside, over + spread.less_bytes);
    v->driver_high_bytes =
        reserved + outside + v->error_bytes + spread.more_bytes + f->managed_bytes;
    if (!job->limit_bytes && v->driver_high_bytes > job->hardware.card.memory.value)
        v->driver_high_bytes = job->hardware.card.memory.value;
}

struct verdict verdict_of(const struct job *job, const struct wanted *w,
                          const struct outcome_figures *f)
{
    struct verdict v = {
        .wanted = *w,
        .evidence = evidence_of(job),
        .host_is_short = w->host_bytes && f->host_bytes > w->host_bytes,
        // expandable segments may end up to a page beyond the limit
        .free_bytes = less(f->limit_bytes, f->reserved_bytes),
        .spread_bytes = job->limit_bytes ? 0 : spread_of(job).more_bytes,
        .flushes = f->flushes,
    };
    v.error_bytes = evidence_short_bytes(&v.evidence, f->reserved_bytes);
    v.grade = grade_of(&v, f->fits);
    if (f->fits)
        find_driver_range(&v, job, f);
    return v;
}
