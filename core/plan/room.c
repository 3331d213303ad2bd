// Which configurations may have room, by the floors of few: of each family the largest micro-batch
// whose leanest configuration has room, then the same without what is slow. Floors have an order in
// sequences and dials, so that halving finds it; what is leaner than something with room has room,
// what is not as lean as something without has none.
#include "core/plan/room.h"

#include <string.h>

#include "core/base/num.h"
#include "core/plan/bounds.h"
#include "core/plan/estimate.h"
#include "core/predict/real_time.h"

enum { MOST_SHARDS = 2 };

// Places of plan_dials, as bits: those that move most.
enum { DIAL_CHECKPOINTING = 1 << 1, DIAL_OFFLOAD = 1 << 2 };

struct room {
    struct plan *plan;
    struct plan_group **groups; // of this round, and
    ptrdiff_t *nodes;           // what of each is looked at
    struct error *errors;       // that are no refusals
    unsigned ends;              // dials that stand at their first values, as bits
    bool leanest;               // families that no other is leaner than
    uint64_t gpus;              // of the families that are looked at
};

// Whether the dials that are looked at stand at their first values.
static bool is_end(unsigned ends, const struct plan_family *f, const struct plan_candidate *c)
{
    for (int i = 0; i < PLAN_DIALS; i++)
        if ((ends & 1u << i) && c->dial[i] != f->dials[i][0])
            return false;
    return true;
}

// What takes least of those; -1 where rules refuse them all.
static ptrdiff_t end_node(const struct room *r, const struct plan_group *g)
{
    for (ptrdiff_t n = g->family->nodes - 1; n >= 0; n--) {
        struct plan_candidate c = plan_node(g, n);
        if (is_end(r->ends, g->family, &c) && !(g->refused >> n & 1))
            return n;
    }
    return -1;
}

// The node to look at; -1 where what it would tell is known.
static ptrdiff_t open_node(const struct room *r, const struct plan_group *g)
{
    ptrdiff_t n = end_node(r, g);
    if (n < 0 || plan_group_unshared(r->plan, g))
        return -1;
    struct plan_candidate c = plan_node(g, n);
    bool known = plan_is_hopeless(r->plan, NULL, &c) || plan_has_room(r->plan, &c);
    return known ? -1 : n;
}

// The middle of a family's micro-batches of which it is open.
static void choose_group(struct room *r, const struct plan_family *f, ptrdiff_t *count)
{
    ptrdiff_t open[PLAN_MOST_MICRO], nodes[PLAN_MOST_MICRO], n = 0;
    for (ptrdiff_t m = 0; m < f->micro_count; m++) {
        nodes[n] = open_node(r, &r->plan->groups[f->group + m]);
        open[n] = f->group + m;
        n += nodes[n] >= 0;
    }
    if (!n)
        return;
    r->groups[*count] = &r->plan->groups[open[n / 2]];
    r->nodes[(*count)++] = nodes[n / 2];
}

// The dials that only move the allocator stand at their first values, which others are no faster
// than.
static void put_first(struct plan_candidate *c)
{
    for (int i = 0; i < PLAN_DIALS; i++)
        if (plan_dials[i].same_memory)
            c->dial[i] = c->family->dials[i][0];
}

// Of steps over the user's own data.
static bool find_real_time(struct step_time *t, struct arena scratch, const struct job *job,
                           struct error *e)
{
    struct prediction *p = NEW(&scratch, struct prediction, 1);
    struct real_time_jobs r;
    if (!real_time_jobs(&r, &scratch, job, e))
        return false;
    for (int i = 0; i < r.count; i++) {
        if (!predict_time(p, &scratch, r.jobs[i], e))
            return false;
        t->seconds += p->time.seconds / r.count;
        t->waits += p->time.waits / r.count;
    }
    t->seconds *= 1 - 1e-12; // where it is put together otherwise
    return true;
}

// By few layers, where those tell; all, where they leave room; all in any case; and with the time.
enum floor_kind { FLOOR_OF_FEW, FLOOR_OF_ROOM, FLOOR_EXACT, FLOOR_TIMED };

struct looked_at {
    struct job *job;
    enum floor_kind kind;
};

// Of few layers, where those tell enough. The second micro-batch finds what all others do.
static bool find_room(struct plan_candidate *c, struct arena scratch, const struct plan *p,
                      struct looked_at at, struct error *e)
{
    enum { DIFFERENT = 2 };
    struct job *job = at.job;
    if (plan_can_estimate_room(p, c->family))
        return plan_estimate_room(c, scratch, p, job, e);
    if (job->recipe != RECIPE_MEGATRON)
        job->accumulation = u64_least(job->accumulation, DIFFERENT);
    c->rough = at.kind != FLOOR_EXACT && plan_room_is_convex(p, c->family);
    if (c->rough && !plan_estimate_room(c, scratch, p, job, e))
        return false;
    if (c->rough && (at.kind == FLOOR_OF_FEW || plan_is_beyond_room(p, c)))
        return true;
    c->rough = false;
    return predict_room(&c->prediction, &scratch, job, e);
}

// What is asked of a candidate without an allocator.
static bool find_floor(struct plan_candidate *c, const struct plan *p, enum floor_kind kind,
                       struct arena scratch, struct error *e)
{
    bool timed = kind == FLOOR_TIMED;
    struct job *job = NEW(&scratch, struct job, 1);
    struct step_time time = {0};
    if (!plan_job(job, &scratch, p, c, e) || !plan_can_write(scratch, job, e) ||
        (timed && p->real_lengths && !find_real_time(&time, scratch, job, e)))
        return false;
    if (p->longest_row && p->longest_row < job->context)
        job->context = p->longest_row;
    job->prompt = u64_least(job->prompt, job->context - 1);
    if (timed && !p->real_lengths)
        return predict_time(&c->prediction, &scratch, job, e);
    if (!find_room(c, scratch, p, (struct looked_at){job, kind}, e))
        return false;
    c->prediction.time = time;
    return true;
}

bool plan_refine_floor(const struct plan *p, struct plan_floor *f, struct arena scratch,
                       struct error *e)
{
    struct plan_candidate *c = NEW(&scratch, struct plan_candidate, 1);
    *c = (struct plan_candidate){.family = f->family, .batch = f->batch, .accum = f->accum};
    memcpy(c->dial, f->dial, sizeof f->dial);
    f->rough = false;
    if (!find_floor(c, p, FLOOR_EXACT, scratch, e))
        return false;
    f->bytes = c->prediction.floor_bytes;
    return true;
}

bool plan_look(const struct plan *p, struct plan_look look, struct arena scratch,
               struct error *failure)
{
    struct plan_candidate *c = NEW(&scratch, struct plan_candidate, 1);
    struct error e = {0};
    *c = plan_node(look.group, look.node);
    enum floor_kind kind = look.timed ? FLOOR_TIMED : look.first ? FLOOR_OF_FEW : FLOOR_OF_ROOM;
    if (find_floor(c, p, kind, scratch, &e)) {
        put_first(c);
        plan_add_floor(look.group, c, look.timed);
        return true;
    }
    plan_note_refusal(look.group, look.node, &e, failure);
    return false;
}

static void look(void *context, ptrdiff_t index, struct arena scratch)
{
    struct room *r = context;
    struct plan_look look = {r->groups[index], r->nodes[index], false, !r->plan->request.lean};
    (void)plan_look(r->plan, look, scratch, &r->errors[index]);
}

bool plan_is_held_back(const struct plan *p, const struct plan_family *f)
{
    return f->in_turn || f->tuned || (f->ahead >= 0 && p->request.goal != GOAL_SIMPLICITY);
}

// One of each family, where it has any that is open.
static ptrdiff_t choose_groups(struct room *r)
{
    const struct plan *p = r->plan;
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < p->family_count; i++) {
        const struct plan_family *f = &p->families[i];
        bool leanest = !f->other_loss && (f->shards < 0 || f->shards == MOST_SHARDS);
        if (leanest == r->leanest && f->gpus == r->gpus && !plan_is_held_back(p, f))
            choose_group(r, f, &count);
    }
    return count;
}

static bool settle_groups(struct room *r, ptrdiff_t count, struct error *e)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        plan_settle_group(r->plan, r->groups[i]);
        if (r->errors[i].code != ERROR_NONE) {
            *e = r->errors[i];
            return false;
        }
    }
    return true;
}

static bool find_ends(struct room *r, struct arena *a, const struct runner *runner, struct error *e)
{
    struct plan *p = r->plan;
    for (ptrdiff_t count; (count = choose_groups(r));) {
        struct tasks tasks = {
            .count = count, .run = look, .context = r, .before = p->predicted, .of = p->all};
        r->errors = NEW(a, struct error, count);
        for (ptrdiff_t i = 0; i < count; i++)
            plan_prepare_group(p, a, r->groups[i]);
        runner_run(runner, *a, &tasks);
        if (!settle_groups(r, count, e))
            return false;
    }
    return true;
}

// Families without any that is leaner first: where those have no room, others have none.
static bool find_of_gpus(struct room *r, struct arena *a, const struct runner *runner,
                         struct error *e)
{
    r->leanest = true;
    if (!find_ends(r, a, runner, e))
        return false;
    r->leanest = false;
    return find_ends(r, a, runner, e);
}

// The next smaller number of GPUs; 0 after the last.
static uint64_t fewer_gpus(const struct plan *p, uint64_t than)
{
    uint64_t most = 0;
    for (ptrdiff_t i = 0; i < p->family_count; i++)
        if (p->families[i].gpus < than && p->families[i].gpus > most)
            most = p->families[i].gpus;
    return most;
}

// With every dial at its leanest; then with checkpointing off, without offload, and without both.
// The most GPUs first: with fewer there is no more room.
bool plan_find_room(struct plan *p, struct arena *a, const struct runner *runner, struct error *e)
{
    static const unsigned ends[] = {0, DIAL_CHECKPOINTING, DIAL_OFFLOAD,
                                    DIAL_CHECKPOINTING | DIAL_OFFLOAD};
    struct room r = {.plan = p};
    r.groups = NEW(a, struct plan_group *, p->family_count + 1);
    r.nodes = NEW(a, ptrdiff_t, p->family_count + 1);
    for (ptrdiff_t i = 0; i < COUNT_OF(ends); i++) {
        r.ends = ends[i];
        for (r.gpus = fewer_gpus(p, UINT64_MAX); r.gpus; r.gpus = fewer_gpus(p, r.gpus))
            if (!find_of_gpus(&r, a, runner, e))
                return false;
    }
    return true;
}
