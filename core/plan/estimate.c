// See estimate.h.
#include "core/plan/estimate.h"

#include <string.h>

#include "core/base/num.h"
#include "core/plan/bounds.h"
#include "core/predict/real_time.h"

// How far steps may lie under the line. Of 900 predictions none lay under it, but for verl's
// updates, by up to 1.7 %; nor memory.
#define NEAR      0.995
#define LESS_NEAR 0.98

static double nearness(const struct plan *p)
{
    bool less = p->job.recipe == RECIPE_VERL || p->job.recipe == RECIPE_TRINITY;
    return less ? LESS_NEAR : NEAR;
}

// ZeRO-3 gathers as many layers ahead as its buckets hold: few tell nothing of many.
static bool is_on_a_line(const struct plan_family *f)
{
    return !str_is(str_from(f->strategy), "zero3");
}

// Layers of each stage in the first of the two that the line is drawn through; the other has one
// more. What gathers layers ahead of one needs some.
static uint64_t few_of(const struct plan *p)
{
    return p->job.recipe == RECIPE_MEGATRON ? 1 : 3;
}

static bool are_alike(const struct model *m)
{
    for (uint64_t i = 1; i < m->layers; i++)
        if (memcmp(&m->layer[i], &m->layer[0], sizeof *m->layer) != 0)
            return false;
    return true;
}

// Layers of a stage in a pipeline; of the last, which may have fewer.
static uint64_t most_layers(const struct plan *p, const struct plan_family *f)
{
    return u64_divide_up(p->job.model.layers, f->pipeline * f->turns);
}

static uint64_t least_layers(const struct plan *p, const struct plan_family *f)
{
    uint64_t layers = p->job.model.layers, each = most_layers(p, f);
    uint64_t stages = f->pipeline * f->turns;
    return layers % stages ? layers - u64_least(layers, each * (stages - 1)) : each;
}

bool plan_can_estimate(const struct plan *p, const struct plan_family *f)
{
    static const char *const cut[] = {"last-stage-layers", "virtual-pp", "pp-rank"};
    for (ptrdiff_t i = 0; i < COUNT_OF(cut); i++)
        if (plan_is_given(p, cut[i]))
            return false;
    return !p->request.exhaustive && !f->refused && is_on_a_line(f) &&
           least_layers(p, f) > few_of(p) + 1 && are_alike(&p->job.model);
}

bool plan_can_estimate_room(const struct plan *p, const struct plan_family *f)
{
    return p->job.recipe == RECIPE_MEGATRON && plan_can_estimate(p, f);
}

// What is alive at each moment is a line in the layers, but for DeepSpeed's buckets: the most of
// all moments rises no slower than it does with few.
bool plan_room_is_convex(const struct plan *p, const struct plan_family *f)
{
    return words_have("single|ddp|fsdp1|fsdp2", '|', str_from(f->strategy)) && !f->hosted &&
           plan_can_estimate(p, f);
}

// The job with few layers, all stages with as many; no more of it hangs on how many there are.
static struct job *with_few(struct arena *a, const struct plan *p, const struct job *job,
                            uint64_t more)
{
    struct job *few = NEW(a, struct job, 1);
    *few = *job;
    few->last_layers = 0;
    few->model.layers = (few_of(p) + more) * job->pipeline * job->interleaved;
    return few;
}

// What ranks take, on the lines through two points; of a pipeline the last may have fewer layers.
struct lines {
    const struct plan *plan;
    const struct plan_family *family;
    struct seen_stage few[SEEN_STAGES], more[SEEN_STAGES];
};

static double extended(const struct plan *p, double few, double more, uint64_t layers)
{
    return few + (more - few) * (double)(layers - few_of(p));
}

static double at_rank(const struct lines *l, int rank, double few, double more)
{
    uint64_t layers =
        rank == SEEN_LAST ? least_layers(l->plan, l->family) : most_layers(l->plan, l->family);
    return extended(l->plan, few, more, layers);
}

static bool outline_few(struct lines *l, struct arena scratch, const struct job *job,
                        const double *parts, struct error *e)
{
    struct arena own = scratch, other = scratch;
    return predict_outline(l->few, &own, with_few(&own, l->plan, job, 0), parts, e) &&
           predict_outline(l->more, &other, with_few(&other, l->plan, job, 1), parts, e);
}

static double work_of(const struct seen_stage *s)
{
    return s->last.busy[WORK_PRODUCTS] + s->last.busy[WORK_ATTENTION];
}

// How far the host runs ahead of a card, and layers are gathered ahead of others, is no line.
// Megatron gathers none.
static double waits_of(const struct lines *l, const struct seen_stage *s)
{
    bool gathers = l->plan->job.recipe != RECIPE_MEGATRON;
    return s->last.starved + (gathers ? s->last.exposed : 0);
}

// The update of an engine's trainer is counted by its second step, which may see nothing of the
// first.
static double most_seen(const struct plan *p)
{
    bool second = p->job.recipe == RECIPE_VERL || p->job.recipe == RECIPE_TRINITY;
    return second ? PART_AT_FIRST : 1;
}

// What part of a rank's step is products and attention at least: as much as where the card clocks
// highest, since clocking lower it takes longer for those alone.
static double least_part(const struct lines *l, int rank)
{
    const struct seen_stage *few = &l->few[rank], *more = &l->more[rank];
    double work = at_rank(l, rank, work_of(few), work_of(more));
    double spent = at_rank(l, rank, few->spent, more->spent);
    double part = spent > 0 && work > 0 ? work / spent : 0, seen = most_seen(l->plan);
    return part < seen ? part : seen;
}

// What part of a step is not waiting, of the rank that waits most.
static double least_at_work(const struct lines *l)
{
    double least = 1;
    for (int i = 0; i < SEEN_STAGES; i++) {
        const struct seen_stage *few = &l->few[i], *more = &l->more[i];
        double spent = at_rank(l, i, few->spent, more->spent);
        double waits = at_rank(l, i, waits_of(l, few), waits_of(l, more));
        double part = spent > 0 ? 1 - waits / spent : 1;
        least = part < least ? part : least;
    }
    return least > 0 ? least : 0;
}

static double line_seconds(const struct lines *l, struct arena scratch, const struct job *job)
{
    struct seen_stage all[SEEN_STAGES];
    if (job->pipeline < 2)
        return at_rank(l, 0, l->few[0].time.seconds, l->more[0].time.seconds);
    memcpy(all, l->few, sizeof all);
    for (int i = 0; i < SEEN_STAGES; i++) {
        const struct passing *few = &l->few[i].passing, *more = &l->more[i].passing;
        struct passing *to = &all[i].passing;
        for (int k = 0; k < STAGE_PLACES; k++) {
            to->forward[k] = at_rank(l, i, few->forward[k], more->forward[k]);
            to->backward[k] = at_rank(l, i, few->backward[k], more->backward[k]);
        }
        to->rest = at_rank(l, i, few->rest, more->rest);
    }
    return stages_seconds(scratch, job, all);
}

// A first step takes no longer than others: not so where DeepSpeed keeps the optimizer.
static bool can_be_rough(const struct plan *p)
{
    return p->job.recipe == RECIPE_MEGATRON;
}

static double least_seconds(const struct lines *l, struct arena scratch, const struct job *job)
{
    return nearness(l->plan) * line_seconds(l, scratch, job) * least_at_work(l);
}

static bool find_roughly(struct plan_estimate *found, struct arena scratch, struct lines *l,
                         const struct job *job, struct error *e)
{
    if (!outline_few(l, scratch, job, NULL, e))
        return false;
    for (int i = 0; i < SEEN_STAGES; i++)
        found->parts[i] = least_part(l, i);
    if (can_be_rough(l->plan))
        found->seconds = least_seconds(l, scratch, job);
    found->rough = true;
    return true;
}

static bool find_finely(struct plan_estimate *found, struct arena scratch, struct lines *l,
                        const struct job *job, struct error *e)
{
    if (!outline_few(l, scratch, job, found->parts, e))
        return false;
    found->seconds = least_seconds(l, scratch, job);
    found->rough = false;
    return true;
}

// The mean of those that stand for real lengths.
static bool find_real_seconds(struct plan_estimate *found, struct arena scratch, struct lines *l,
                              const struct job *job, struct error *e)
{
    struct real_time_jobs r;
    double seconds = 0;
    if (!real_time_jobs(&r, &scratch, job, e))
        return false;
    for (int i = 0; i < r.count; i++) {
        if (!find_roughly(found, scratch, l, r.jobs[i], e) ||
            !find_finely(found, scratch, l, r.jobs[i], e))
            return false;
        seconds += found->seconds;
    }
    found->seconds = seconds / r.count;
    return true;
}

// Roughly first, which may tell enough; finely what is known so.
static bool find_seconds(struct plan_estimate *found, struct arena scratch, const struct plan *p,
                         const struct plan_candidate *c, struct error *e)
{
    struct job *job = NEW(&scratch, struct job, 1);
    struct lines *l = NEW(&scratch, struct lines, 1);
    bool known = found->rough;
    l->plan = p;
    l->family = c->family;
    if (!plan_job(job, &scratch, p, c, e))
        return false;
    if (p->real_lengths)
        return find_real_seconds(found, scratch, l, job, e);
    if (!known && !find_roughly(found, scratch, l, job, e))
        return false;
    return (!known && can_be_rough(p)) || find_finely(found, scratch, l, job, e);
}

bool plan_estimate_room(struct plan_candidate *c, struct arena scratch, const struct plan *p,
                        const struct job *job, struct error *e)
{
    double bytes[2];
    for (uint64_t i = 0; i < 2; i++) {
        struct arena own = scratch;
        struct prediction *q = NEW(&own, struct prediction, 1);
        if (!predict_room(q, &own, with_few(&own, p, job, i), e))
            return false;
        bytes[i] = (double)q->floor_bytes;
        if (i == 0 && q->floor_bytes > q->limit_bytes)
            bytes[++i] = (double)q->floor_bytes; // and it was not looked any further
    }
    double most = LESS_NEAR * extended(p, bytes[0], bytes[1], most_layers(p, c->family));
    c->prediction.floor_bytes = (uint64_t)(bytes[0] > most ? bytes[0] : most);
    return true;
}

// The last, which is the finest.
static const struct plan_estimate *estimate_of(const struct plan_group *g,
                                               const int dial[PLAN_DIALS])
{
    for (ptrdiff_t i = g->estimate_count - 1; i >= 0; i--) {
        bool same = true;
        for (int d = 0; d < PLAN_DIALS; d++)
            same &= plan_dials[d].same_memory || g->estimates[i].dial[d] == dial[d];
        if (same)
            return &g->estimates[i];
    }
    return NULL;
}

bool plan_has_estimate(const struct plan_group *g, const struct plan_candidate *c)
{
    const struct plan_estimate *known = estimate_of(g, c->dial);
    return known && !known->rough;
}

// The same where nothing is recomputed, and where everything is.
static struct plan_candidate end_of_some(const struct plan_candidate *c, bool all)
{
    const struct plan_family *f = c->family;
    struct plan_candidate end = *c;
    for (int i = 0; i < PLAN_DIALS; i++)
        if (plan_dials[i].values[c->dial[i]].some)
            end.dial[i] = f->dials[i][all ? f->values[i] - 1 : 0];
    return end;
}

// What part of the layers has to be recomputed at least, for the rest to have room: memory is a
// line between none of them and all.
static bool find_part(double *part, struct arena scratch, const struct plan *p,
                      const struct plan_candidate *c, struct error *e)
{
    double bytes[2], limit = (double)c->family->limit_bytes;
    for (int all = 0; all < 2; all++) {
        struct arena own = scratch;
        struct job *job = NEW(&own, struct job, 1);
        struct plan_candidate end = end_of_some(c, all);
        if (!plan_job(job, &own, p, &end, e) || !plan_estimate_room(&end, own, p, job, e))
            return false;
        bytes[all] = (double)end.prediction.floor_bytes;
    }
    *part = bytes[0] > bytes[1] ? (bytes[0] - limit) / (bytes[0] - bytes[1]) : 0;
    *part = *part > 1 ? 1 : *part < 0 ? 0 : *part;
    return true;
}

// The end of a count that is not known yet; NULL: both are, or it is no count.
static const struct plan_candidate *open_end(const struct plan_group *g,
                                             const struct plan_candidate ends[2])
{
    for (int all = 0; all < 2; all++)
        if (!plan_has_estimate(g, &ends[all]))
            return &ends[all];
    return NULL;
}

// Of a count the ends come first, one at a time: they may tell enough.
static bool estimate_seconds(struct plan_estimate *f, struct arena scratch, const struct plan *p,
                             struct plan_look look, struct error *e)
{
    const struct plan_group *g = look.group;
    struct plan_candidate c = plan_node(g, look.node);
    struct plan_candidate ends[2] = {end_of_some(&c, false), end_of_some(&c, true)};
    const struct plan_candidate *open = plan_dials_say_some(c.dial) ? open_end(g, ends) : &c;
    const struct plan_estimate *known = open ? estimate_of(g, open->dial) : NULL;
    double part;
    if (known)
        *f = *known;
    memcpy(f->dial, open ? open->dial : c.dial, sizeof f->dial);
    if (open)
        return find_seconds(f, scratch, p, open, e);
    if (!find_part(&part, scratch, p, &c, e))
        return false;
    double none = estimate_of(g, ends[0].dial)->seconds,
           all = estimate_of(g, ends[1].dial)->seconds;
    f->seconds = none + part * (all - none);
    return true;
}

bool plan_estimate(const struct plan *p, struct plan_look look, struct arena scratch,
                   struct error *failure)
{
    struct plan_group *g = look.group;
    struct plan_estimate f = {0};
    struct error e = {0};
    if (!estimate_seconds(&f, scratch, p, look, &e)) {
        plan_note_refusal(g, look.node, &e, failure);
        return false;
    }
    for (int d = 0; d < PLAN_DIALS; d++)
        if (plan_dials[d].same_memory)
            f.dial[d] = g->family->dials[d][0];
    g->estimates[g->estimate_count++] = f;
    return true;
}
