// Groups as tasks, few at a time, the most promising first: what was found before limits what is
// tried next. A task looks only at its own group and at those that were done before it began, so
// that threads change nothing.
#include <string.h>

#include "core/base/num.h"
#include "core/emit/emit.h"
#include "core/plan/space.h"
#include "core/predict/real_time.h"

enum { AT_ONCE = 4, MOST_SHARDS = 2 };

// Places of plan_dials, as bits: those that move most.
enum { DIAL_CHECKPOINTING = 1 << 1, DIAL_OFFLOAD = 1 << 2 };

enum search_phase { SEARCH_ROOM, SEARCH_SECONDS, SEARCH_BEST, SEARCH_FRONT };

struct search {
    struct plan *plan;
    struct plan_group **groups;
    enum search_phase phase;
    const char *strategy; // only of this; NULL: of all
    unsigned ends;        // dials that stand at their first values, as bits
    double found;         // what the goal counts of the best so far; 0: none
    double most_seconds;  // that are told of; 0: all
    bool *failed;
};

// Accelerate's YAML has no key for DeepSpeed's bucket, whose default is 500 million elements
// (deepspeed/runtime/zero/config.py), in bf16.
#define DEFAULT_BUCKET_BYTES UINT64_C(1000000000)

// Dials whose values are all the same to live memory.
static bool moves_no_memory(int dial)
{
    return str_is(str_from(plan_dials[dial].setting), "expandable");
}

bool plan_bucket(uint64_t *bytes, struct arena scratch, const struct job *job, struct error *e)
{
    struct draft *draft = NEW(&scratch, struct draft, 1);
    *bytes = 0;
    if (!job->target)
        return true;
    if (!draft_from_job(draft, &scratch, job, e) || !emit_check(draft, e))
        return false;
    *bytes = draft_is(draft, IS_ZERO, IS_CONFIG) ? DEFAULT_BUCKET_BYTES : 0;
    return true;
}

// Makes the prediction of a candidate. False where a rule forbids it.
static bool try_candidate(const struct plan *p, struct plan_candidate *c, struct arena scratch,
                          struct error *e)
{
    struct job *job = NEW(&scratch, struct job, 1);
    return plan_job(job, &scratch, p, c, e) && plan_bucket(&c->bucket_bytes, scratch, job, e) &&
           predict_fit(&c->prediction, &scratch, job, e) &&
           real_time_find(&c->prediction.time, scratch, job, e);
}

// Whether every dial is as far as the other's, or further.
static bool is_beyond(const struct plan_candidate *c, const struct plan_candidate *from)
{
    for (int i = 0; i < PLAN_DIALS; i++)
        if (c->dial[i] < from->dial[i])
            return false;
    return true;
}

static bool same_dials(const struct plan_candidate *c, const struct plan_candidate *o)
{
    return memcmp(c->dial, o->dial, sizeof c->dial) == 0;
}

static bool takes_no_less(const struct plan_candidate *c, const struct plan_candidate *than)
{
    for (int i = 0; i < PLAN_DIALS; i++)
        if (c->dial[i] > than->dial[i] && !moves_no_memory(i))
            return false;
    return true;
}

// Whether a family takes no less live memory than another, of one batch with the same dials: what
// DeepSpeed's first two stages shard more of, what reduces after each micro-batch, what does not
// keep logits; and with fewer GPUs, of more than one (tests/unit/test_plan.c holds all of it
// against trying).
static bool is_leaner(const struct plan_candidate *o, const struct plan_candidate *c)
{
    const struct plan_family *f = o->family, *g = c->family;
    bool several = o->accum > 1 && c->accum > 1;
    if (f == g)
        return o->batch == c->batch || (several && o->batch < c->batch);
    return str_equal(f->place, g->place) &&
           (str_is(str_from(f->strategy), g->strategy) ||
            (f->shards >= g->shards && g->shards >= 0)) &&
           f->other_loss <= g->other_loss && f->synced >= g->synced &&
           (o->batch == c->batch || (several && o->batch < c->batch)) &&
           (f->gpus == g->gpus || (several && f->gpus > g->gpus && g->gpus > 1));
}

// The same shared by half as many, with as many sequences or half of them; NULL where there is
// none.
static const struct plan_group *group_shared_less(const struct plan *p, ptrdiff_t family,
                                                  const struct plan_group *g, uint64_t part)
{
    const struct plan_family *f = family < 0 ? NULL : &p->families[family];
    for (ptrdiff_t i = 0; f && i < f->micro_count; i++)
        if (f->micro[i] * part == g->batch)
            return &p->groups[f->group + i];
    return NULL;
}

// Whether it shares sequences where ranks could have had some each.
static const struct plan_group *group_unshared(const struct plan *p, const struct plan_group *g)
{
    return group_shared_less(p, g->family->alone, g, 2);
}

// The least time that it can take: no less than what its dials come from, and than the same shared
// by half as many, whenever those reduce. `own` is the group that is searched.
static double least_seconds(const struct plan *p, const struct plan_group *own,
                            const struct plan_group *g, const struct plan_candidate *c)
{
    double seconds = 0;
    ptrdiff_t count = g == own ? g->candidate_count : g->settled;
    for (ptrdiff_t i = 0; i < count; i++) {
        const struct plan_candidate *o = &g->candidates[i];
        bool holds = g->family->ordered ? is_beyond(c, o) : same_dials(c, o);
        if (holds && o->prediction.time.seconds > seconds)
            seconds = o->prediction.time.seconds;
    }
    for (uint64_t part = 1; part <= 2 && g->family->alone >= 0; part++) {
        const struct plan_group *o = group_shared_less(p, g->family->alone, g, part);
        const struct plan_group *q = group_shared_less(p, g->family->synced_alone, g, part);
        double fewer = o ? least_seconds(p, own, o, c) : 0;
        double other = q ? least_seconds(p, own, q, c) : fewer;
        fewer = other < fewer ? other : fewer;
        seconds = fewer > seconds ? fewer : seconds;
    }
    return seconds;
}

static uint64_t least_of(const struct plan_candidate *c, const struct plan_candidate *o,
                         uint64_t bytes)
{
    bool holds = takes_no_less(c, o) && is_leaner(o, c);
    return holds ? u64_most(bytes, o->prediction.floor_bytes) : bytes;
}

// The least live memory: no less than with what is leaner; and with half the sequences shared by
// half as many, where each rank has as many tokens, but for what a ring does without.
static double least_bytes(const struct plan *p, const struct plan_group *own,
                          const struct plan_candidate *c)
{
    static const double ring = 0.998;
    uint64_t bytes = 0;
    for (ptrdiff_t i = 0; own && i < own->candidate_count; i++)
        bytes = least_of(c, &own->candidates[i], bytes);
    for (ptrdiff_t i = 0; i < p->settled_count; i++)
        bytes = least_of(c, p->settled[i], bytes);
    const struct plan_group *g =
        group_shared_less(p, c->family->alone, &(struct plan_group){.batch = c->batch}, 2);
    if (!g)
        return (double)bytes;
    struct plan_candidate unshared = *c;
    unshared.family = g->family;
    unshared.batch = g->batch;
    double fewer = ring * least_bytes(p, NULL, &unshared);
    return fewer > (double)bytes ? fewer : (double)bytes;
}

// There is no room by what is known already.
static bool is_hopeless(const struct plan *p, const struct plan_group *g,
                        const struct plan_candidate *c)
{
    return p->limit_bytes && least_bytes(p, g, c) > (double)p->limit_bytes;
}

// The least that the goal can count of it.
static double bound_of(const struct plan *p, const struct plan_group *g,
                       const struct plan_candidate *c)
{
    switch (p->request.goal) {
    case GOAL_SPEED:
        return least_seconds(p, g, g, c);
    case GOAL_COST:
        return least_seconds(p, g, g, c) * (double)g->family->gpus;
    case GOAL_MEMORY:
        return least_bytes(p, g, c);
    case GOAL_SIMPLICITY:
    case PLAN_GOALS:
        break;
    }
    return c->trouble;
}

// A safe one takes no longer, and is no more trouble.
static bool is_dominated(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; g->family->ordered && i < g->candidate_count; i++)
        if (plan_is_safe(&g->candidates[i]) && is_beyond(c, &g->candidates[i]))
            return true;
    return false;
}

static bool is_as_good(const struct plan_candidate *f, double seconds, double bytes)
{
    return plan_is_safe(f) && f->prediction.time.seconds <= seconds * PLAN_SAME &&
           (double)f->prediction.reserved_bytes <= bytes * PLAN_SAME;
}

// The least time and live memory that it can take are both no less than a safe one takes, or it is
// too slow to be told of.
static bool is_behind_front(const struct plan *p, const struct plan_group *g,
                            const struct plan_candidate *c, double most_seconds)
{
    double seconds = least_seconds(p, g, g, c), bytes = least_bytes(p, g, c);
    if (most_seconds > 0 && seconds > most_seconds)
        return true;
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (is_as_good(&g->candidates[i], seconds, bytes))
            return true;
    for (ptrdiff_t i = 0; i < p->settled_count; i++)
        if (is_as_good(p->settled[i], seconds, bytes))
            return true;
    return false;
}

static bool was_tried(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (same_dials(&g->candidates[i], c))
            return true;
    return false;
}

static bool is_left_out(const struct search *s, const struct plan_group *g,
                        const struct plan_candidate *c)
{
    const struct plan *p = s->plan;
    if (was_tried(g, c))
        return true;
    if (p->request.exhaustive)
        return false;
    if (is_hopeless(p, g, c))
        return true;
    if (s->phase == SEARCH_FRONT)
        return is_behind_front(p, g, c, s->most_seconds);
    return s->phase == SEARCH_BEST && ((p->request.goal != GOAL_MEMORY && is_dominated(g, c)) ||
                                       (s->found > 0 && bound_of(p, g, c) > s->found * PLAN_SAME));
}

static int trouble_of(const struct plan_candidate *c)
{
    int trouble = c->family->trouble;
    for (int i = 0; i < PLAN_DIALS; i++)
        trouble += c->family->values[i] > 1 ? plan_dials[i].trouble[c->dial[i]] : 0;
    return trouble;
}

// All values of the dials in turn, the last one turning fastest.
static struct plan_candidate candidate_of(const struct plan_group *g, ptrdiff_t node)
{
    struct plan_candidate c = {.family = g->family, .batch = g->batch, .accum = g->accum};
    for (int i = PLAN_DIALS - 1; i >= 0; i--) {
        c.dial[i] = g->family->first[i] + (int)(node % g->family->values[i]);
        node /= g->family->values[i];
    }
    c.trouble = trouble_of(&c);
    return c;
}

// False where something failed that is no refusal.
static bool try_node(const struct search *s, struct plan_group *g, ptrdiff_t node,
                     struct arena scratch)
{
    struct plan_candidate *c = &g->candidates[g->candidate_count];
    struct error refusal = {0};
    *c = candidate_of(g, node);
    if (is_left_out(s, g, c))
        return true;
    if (try_candidate(s->plan, c, scratch, &refusal)) {
        g->candidate_count++;
        return true;
    }
    if (g->refusal.code == ERROR_NONE)
        g->refusal = refusal;
    return refusal.code == ERROR_BAD_INPUT || refusal.code == ERROR_UNSUPPORTED;
}

// ------------------------------------------------------------------ groups as tasks

// Whether the dials that are looked at stand at their first values.
static bool is_end(const struct search *s, const struct plan_group *g, ptrdiff_t node)
{
    struct plan_candidate c = candidate_of(g, node);
    for (int i = 0; i < PLAN_DIALS; i++)
        if ((s->ends & 1u << i) && c.dial[i] != g->family->first[i])
            return false;
    return true;
}

// What takes least tells whether there is room; where there is, what is fastest tells how long it
// takes at least. A node that a rule refuses tells nothing: the next one does.
static bool try_end(const struct search *s, struct plan_group *g, struct arena scratch)
{
    ptrdiff_t last = g->family->nodes - 1, before = g->candidate_count;
    bool ok = true;
    for (ptrdiff_t n = 0; ok && n <= last && g->candidate_count == before; n++)
        if (s->phase != SEARCH_ROOM)
            ok = try_node(s, g, n, scratch);
        else if (is_end(s, g, last - n))
            ok = try_node(s, g, last - n, scratch);
    return ok;
}

static bool try_all(const struct search *s, struct plan_group *g, struct arena scratch)
{
    bool small = s->plan->request.goal == GOAL_MEMORY && s->phase == SEARCH_BEST, ok = true;
    ptrdiff_t last = g->family->nodes - 1;
    for (ptrdiff_t n = 0; ok && n <= last; n++)
        ok = try_node(s, g, small ? last - n : n, scratch);
    return ok;
}

static void search_group(void *context, ptrdiff_t index, struct arena scratch)
{
    struct search *s = context;
    struct plan_group *g = s->groups[index];
    bool end = s->phase == SEARCH_ROOM || s->phase == SEARCH_SECONDS;
    s->failed[index] = !(end ? try_end : try_all)(s, g, scratch);
}

// What tasks that begin now may look at.
static void settle(struct plan *p, struct plan_group *g)
{
    while (g->settled < g->candidate_count) {
        const struct plan_candidate *c = &g->candidates[g->settled++];
        p->settled[p->settled_count++] = c;
        p->limit_bytes = u64_most(p->limit_bytes, c->prediction.limit_bytes);
    }
}

static bool run_groups(struct search *s, struct arena *a, const struct runner *runner,
                       ptrdiff_t count, struct error *e)
{
    struct tasks tasks = {.count = count,
                          .run = search_group,
                          .context = s,
                          .before = s->plan->settled_count,
                          .of = s->plan->all};
    s->failed = NEW(a, bool, count + 1);
    for (ptrdiff_t i = 0; i < count; i++)
        if (!s->groups[i]->candidates)
            s->groups[i]->candidates =
                NEW(a, struct plan_candidate, s->groups[i]->family->nodes + 1);
    runner_run(runner, *a, &tasks);
    for (ptrdiff_t i = 0; i < count; i++) {
        settle(s->plan, s->groups[i]);
        if (s->failed[i]) {
            *e = s->groups[i]->refusal;
            return false;
        }
    }
    return true;
}

static bool is_alone(const struct plan_group *g)
{
    return g->family->alone < 0;
}

// Which nodes may have room.
static void note_hope(const struct plan *p, struct plan_group *g)
{
    g->hope = 0;
    for (ptrdiff_t n = 0; n < g->family->nodes; n++) {
        struct plan_candidate c = candidate_of(g, n);
        if (p->request.exhaustive || !is_hopeless(p, g, &c))
            g->hope |= UINT64_C(1) << n;
    }
    g->done = !g->hope;
}

// Families without any that is leaner first, then the others; each with one sequence at a time
// first, then two: where those have no room, more have none, and are never tried.
static bool find_ends(struct search *s, struct arena *a, const struct runner *runner,
                      struct error *e)
{
    struct plan *p = s->plan;
    ptrdiff_t most = 0;
    for (ptrdiff_t i = 0; i < p->family_count; i++)
        most = p->families[i].micro_count > most ? p->families[i].micro_count : most;
    for (ptrdiff_t m = 0; m < 2 * most; m++) {
        ptrdiff_t count = 0;
        for (ptrdiff_t i = 0; i < p->family_count; i++) {
            const struct plan_family *f = &p->families[i];
            bool leanest = !f->other_loss && (f->shards < 0 || f->shards == MOST_SHARDS);
            struct plan_group *g = &p->groups[f->group + m % most];
            if (m % most < f->micro_count && leanest == (m < most) && !group_unshared(p, g))
                s->groups[count++] = g;
        }
        if (!run_groups(s, a, runner, count, e))
            return false;
    }
    return true;
}

// With every dial at its leanest; then with checkpointing off, without offload, and without both.
static bool find_room(struct search *s, struct arena *a, const struct runner *runner,
                      struct error *e)
{
    static const unsigned ends[] = {0, DIAL_CHECKPOINTING, DIAL_OFFLOAD,
                                    DIAL_CHECKPOINTING | DIAL_OFFLOAD};
    struct plan *p = s->plan;
    s->phase = SEARCH_ROOM;
    for (ptrdiff_t i = 0; i < COUNT_OF(ends); i++) {
        s->ends = ends[i];
        if (!find_ends(s, a, runner, e))
            return false;
    }
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        note_hope(p, &p->groups[i]);
    return true;
}

static double goal_bound(const struct plan *p, const struct plan_group *g)
{
    struct plan_candidate last = candidate_of(g, g->family->nodes - 1);
    switch (p->request.goal) {
    case GOAL_SPEED:
        return g->seconds;
    case GOAL_COST:
        return g->seconds * (double)g->family->gpus;
    case GOAL_MEMORY:
        return least_bytes(p, g, &last);
    case GOAL_SIMPLICITY:
    case PLAN_GOALS:
        break;
    }
    return g->family->trouble;
}

// How long a step of a group takes at least, of what may have room.
static void note_seconds(const struct plan *p, struct plan_group *g)
{
    double least = 0;
    bool found = false;
    for (ptrdiff_t n = 0; n < g->family->nodes; n++) {
        if (!(g->hope >> n & 1))
            continue;
        struct plan_candidate c = candidate_of(g, n);
        double seconds = least_seconds(p, NULL, g, &c);
        least = !found || seconds < least ? seconds : least;
        found = true;
    }
    g->seconds = least;
    g->bound = goal_bound(p, g);
}

// Those that share no sequences; the others are held against them.
static bool find_bounds(struct search *s, struct arena *a, const struct runner *runner,
                        struct error *e)
{
    struct plan *p = s->plan;
    ptrdiff_t count = 0;
    s->phase = SEARCH_SECONDS;
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        if (!p->groups[i].done && is_alone(&p->groups[i]))
            s->groups[count++] = &p->groups[i];
    if ((p->request.front || p->request.goal == GOAL_SPEED || p->request.goal == GOAL_COST) &&
        !run_groups(s, a, runner, count, e))
        return false;
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        note_seconds(p, &p->groups[i]);
    return true;
}

static bool is_searched(const struct search *s, const struct plan_group *g)
{
    return !s->strategy || str_is(str_from(g->family->strategy), s->strategy);
}

static double found_so_far(const struct search *s, enum plan_goal goal)
{
    const struct plan *p = s->plan;
    const struct plan_candidate *c;
    double least = 0;
    for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));)
        if (is_searched(s, &p->groups[g]) && plan_is_safe(c) &&
            (least <= 0 || plan_measure(goal, c) < least))
            least = plan_measure(goal, c);
    return least;
}

// The next of those that may be better, by their bounds.
static struct plan_group *next_group(const struct search *s)
{
    struct plan *p = s->plan;
    struct plan_group *next = NULL;
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        struct plan_group *g = &p->groups[i];
        bool worse = !p->request.exhaustive && s->phase == SEARCH_BEST && s->found > 0 &&
                     g->bound > s->found * PLAN_SAME;
        if (is_searched(s, g) && !g->done && !worse && (!next || g->bound < next->bound))
            next = g;
    }
    return next;
}

static bool search_all(struct search *s, struct arena *a, const struct runner *runner,
                       struct error *e)
{
    struct plan *p = s->plan;
    for (;;) {
        ptrdiff_t count = 0;
        s->found = found_so_far(s, p->request.goal);
        s->most_seconds =
            p->request.goal == GOAL_MEMORY ? 0 : found_so_far(s, GOAL_SPEED) * PLAN_FRONT_TIMES;
        for (struct plan_group *g; count < AT_ONCE && (g = next_group(s)); count++) {
            g->done = true;
            s->groups[count] = g;
        }
        if (!count)
            return true;
        if (!run_groups(s, a, runner, count, e))
            return false;
        for (ptrdiff_t i = 0; i < p->group_count; i++)
            if (!p->groups[i].done)
                note_seconds(p, &p->groups[i]);
    }
}

// What was left out because something else is better has to be looked at again. Ranks that share
// sequences where each could have had its own take longer for no less memory: of the front none is.
static void look_again(struct search *s)
{
    struct plan *p = s->plan;
    for (ptrdiff_t i = 0; !p->request.exhaustive && i < p->group_count; i++) {
        struct plan_group *g = &p->groups[i];
        if (is_searched(s, g))
            note_hope(p, g);
        bool told = g->family->gpus == p->best_gpus && !group_unshared(p, g);
        g->done = g->done || (s->phase == SEARCH_FRONT && !told);
    }
}

static void count_predicted(struct plan *p)
{
    p->predicted = 0;
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        p->predicted += p->groups[i].candidate_count;
}

bool plan_search(struct plan *p, struct arena *a, const char *strategy, const struct runner *runner,
                 struct error *e)
{
    struct search s = {.plan = p, .strategy = strategy};
    s.groups = NEW(a, struct plan_group *, p->group_count + 1);
    if (!p->settled)
        p->settled = NEW(a, const struct plan_candidate *, p->all + 1);
    if (!strategy && (!find_room(&s, a, runner, e) || !find_bounds(&s, a, runner, e)))
        return false;
    if (strategy)
        look_again(&s);
    s.phase = SEARCH_BEST;
    bool ok = search_all(&s, a, runner, e);
    count_predicted(p);
    return ok;
}

bool plan_search_front(struct plan *p, struct arena *a, const struct runner *runner,
                       struct error *e)
{
    struct search s = {.plan = p, .phase = SEARCH_FRONT};
    p->best_gpus = p->best->family->gpus;
    s.groups = NEW(a, struct plan_group *, p->group_count + 1);
    look_again(&s);
    bool ok = search_all(&s, a, runner, e);
    count_predicted(p);
    return ok;
}
