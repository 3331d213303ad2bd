// Groups as tasks, few at a time, the most promising first: what was found before limits what is
// tried next. A task looks only at its own group and at those that were done before it began, so
// that threads change nothing.
#include <string.h>

#include "core/emit/emit.h"
#include "core/plan/space.h"
#include "core/predict/real_time.h"

enum { AT_ONCE = 4 };

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

static bool takes_no_less(const struct plan_candidate *c, const struct plan_candidate *than)
{
    for (int i = 0; i < PLAN_DIALS; i++)
        if (c->dial[i] > than->dial[i] && !moves_no_memory(i))
            return false;
    return true;
}

static bool has_no_room(const struct plan_candidate *c)
{
    return c->prediction.floor_bytes > c->prediction.limit_bytes;
}

// With fewer sequences at once, or with what takes less, there was no room already. After a single
// micro-batch gradients are not kept whole, so that it is held against none of several.
static bool is_hopeless(const struct plan *p, const struct plan_group *g,
                        const struct plan_candidate *c)
{
    for (ptrdiff_t n = 0; n < p->group_count; n++) {
        const struct plan_group *o = &p->groups[n];
        bool smaller = o->family == g->family && o->done && o->accum > 1 && g->accum > 1 &&
                       o->batch < g->batch;
        for (ptrdiff_t i = 0; (o == g || smaller) && i < o->candidate_count; i++)
            if (has_no_room(&o->candidates[i]) && takes_no_less(c, &o->candidates[i]))
                return true;
    }
    return false;
}

// The least that the goal can count of it.
static double bound_of(const struct plan *p, const struct plan_group *g,
                       const struct plan_candidate *c)
{
    enum plan_goal goal = p->request.goal;
    double bound = goal == GOAL_SIMPLICITY ? c->trouble : g->bound;
    for (ptrdiff_t i = 0; i < g->candidate_count && goal != GOAL_SIMPLICITY; i++) {
        const struct plan_candidate *o = &g->candidates[i];
        double known =
            goal == GOAL_MEMORY ? (double)o->prediction.floor_bytes : plan_measure(goal, o);
        bool holds = goal == GOAL_MEMORY ? takes_no_less(c, o) : is_beyond(c, o);
        bound = holds && known > bound ? known : bound;
    }
    return bound;
}

// A safe one takes no longer, and is no more trouble.
static bool is_dominated(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (plan_is_safe(&g->candidates[i]) && is_beyond(c, &g->candidates[i]))
            return true;
    return false;
}

// The least time and live memory that it can take are both no less than a safe one takes.
static bool is_behind_front(const struct plan *p, const struct plan_group *g,
                            const struct plan_candidate *c)
{
    double seconds = 0, bytes = 0;
    for (ptrdiff_t i = 0; i < g->candidate_count; i++) {
        const struct plan_candidate *o = &g->candidates[i];
        double s = is_beyond(c, o) ? o->prediction.time.seconds : 0;
        double b = takes_no_less(c, o) ? (double)o->prediction.floor_bytes : 0;
        seconds = s > seconds ? s : seconds;
        bytes = b > bytes ? b : bytes;
    }
    for (ptrdiff_t n = 0; n < p->group_count; n++) {
        const struct plan_group *o = &p->groups[n];
        for (ptrdiff_t i = 0; (o == g || o->done) && i < o->candidate_count; i++) {
            const struct plan_candidate *f = &o->candidates[i];
            if (plan_is_safe(f) && f->prediction.time.seconds <= seconds &&
                (double)f->prediction.reserved_bytes <= bytes)
                return true;
        }
    }
    return false;
}

static bool was_tried(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (memcmp(g->candidates[i].dial, c->dial, sizeof c->dial) == 0)
            return true;
    return false;
}

static bool is_left_out(const struct plan *p, const struct plan_group *g,
                        const struct plan_candidate *c, double found)
{
    if (was_tried(g, c))
        return true;
    if (p->request.exhaustive)
        return false;
    return is_hopeless(p, g, c) || (p->request.goal != GOAL_MEMORY && is_dominated(g, c)) ||
           (found > 0 && bound_of(p, g, c) > found * PLAN_SAME &&
            (!p->request.front || is_behind_front(p, g, c)));
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
static bool try_node(const struct plan *p, struct plan_group *g, ptrdiff_t node, double found,
                     struct arena scratch)
{
    struct plan_candidate *c = &g->candidates[g->candidate_count];
    struct error refusal = {0};
    *c = candidate_of(g, node);
    if (is_left_out(p, g, c, found))
        return true;
    if (try_candidate(p, c, scratch, &refusal)) {
        g->candidate_count++;
        return true;
    }
    if (g->refusal.code == ERROR_NONE)
        g->refusal = refusal;
    return refusal.code == ERROR_BAD_INPUT || refusal.code == ERROR_UNSUPPORTED;
}

// ------------------------------------------------------------------ groups as tasks

struct search {
    struct plan *plan;
    struct plan_group **groups;
    const char *strategy; // only of this; NULL: of all
    bool first_only;      // what tells the bound of a group
    double found;         // what the goal counts of the best so far; 0: none
    bool *failed;
};

// From the fast end, or the small one; what takes least tells whether there is room at all.
static void search_group(void *context, ptrdiff_t index, struct arena scratch)
{
    struct search *s = context;
    struct plan_group *g = s->groups[index];
    const struct plan *p = s->plan;
    bool small = p->request.goal == GOAL_MEMORY, ok = true;
    ptrdiff_t last = g->family->nodes - 1;
    if (s->first_only) {
        s->failed[index] = !try_node(p, g, small ? last : 0, 0, scratch);
        return;
    }
    ok = try_node(p, g, small ? last : 0, s->found, scratch) &&
         try_node(p, g, small && p->request.front ? 0 : last, s->found, scratch);
    for (ptrdiff_t n = 0; ok && n <= last; n++)
        ok = try_node(p, g, small ? last - n : n, s->found, scratch);
    s->failed[index] = !ok;
}

static bool run_groups(struct search *s, struct arena *a, const struct runner *runner,
                       ptrdiff_t count, struct error *e)
{
    struct tasks tasks = {.count = count, .run = search_group, .context = s};
    s->failed = NEW(a, bool, count + 1);
    for (ptrdiff_t i = 0; i < count; i++)
        if (!s->groups[i]->candidates)
            s->groups[i]->candidates =
                NEW(a, struct plan_candidate, s->groups[i]->family->nodes + 1);
    runner_run(runner, *a, &tasks);
    for (ptrdiff_t i = 0; i < count; i++)
        if (s->failed[i]) {
            *e = s->groups[i]->refusal;
            return false;
        }
    return true;
}

static bool is_alone(const struct plan_group *g)
{
    return g->family->alone < 0;
}

// The first node of each group that shares no sequences; of memory's goal, of every group.
static bool find_bounds(struct search *s, struct arena *a, const struct runner *runner,
                        struct error *e)
{
    struct plan *p = s->plan;
    enum plan_goal goal = p->request.goal;
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        p->groups[i].bound = goal == GOAL_SIMPLICITY ? p->groups[i].family->trouble : 0;
        if (goal != GOAL_SIMPLICITY && (goal == GOAL_MEMORY || is_alone(&p->groups[i])))
            s->groups[count++] = &p->groups[i];
    }
    s->first_only = true;
    if (!run_groups(s, a, runner, count, e))
        return false;
    s->first_only = false;
    for (ptrdiff_t i = 0; i < count; i++) {
        struct plan_group *g = s->groups[i];
        const struct plan_candidate *c = g->candidates;
        if (g->candidate_count)
            g->bound =
                goal == GOAL_MEMORY ? (double)c->prediction.floor_bytes : plan_measure(goal, c);
    }
    return true;
}

// Sharing a sequence among more adds to what it takes with fewer: no step is shorter than the
// shortest there, once all of those are known.
static double shortest_of(const struct plan *p, const struct plan_family *f)
{
    double least = 0;
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        const struct plan_group *g = &p->groups[i];
        if (g->family != f)
            continue;
        if (g->bound <= 0)
            return 0;
        least = least <= 0 || g->bound < least ? g->bound : least;
    }
    return least;
}

static void bound_sharing(struct plan *p)
{
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        struct plan_group *g = &p->groups[i];
        if (!g->candidate_count && !is_alone(g))
            g->bound = shortest_of(p, &p->families[g->family->alone]);
    }
}

// A group's own first node says more than what it was held against before.
static void bound_group(const struct plan *p, struct plan_group *g)
{
    enum plan_goal goal = p->request.goal;
    if (g->candidate_count && (goal == GOAL_SPEED || goal == GOAL_COST))
        g->bound = plan_measure(goal, g->candidates);
}

static bool is_searched(const struct search *s, const struct plan_group *g)
{
    return !s->strategy || str_is(str_from(g->family->strategy), s->strategy);
}

static double found_so_far(const struct search *s)
{
    const struct plan *p = s->plan;
    const struct plan_candidate *c;
    double least = 0;
    for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));)
        if (is_searched(s, &p->groups[g]) && plan_is_safe(c) &&
            (least <= 0 || plan_measure(p->request.goal, c) < least))
            least = plan_measure(p->request.goal, c);
    return least;
}

// The next of those that may be better, by their bounds.
static struct plan_group *next_group(const struct search *s)
{
    struct plan *p = s->plan;
    struct plan_group *next = NULL;
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        struct plan_group *g = &p->groups[i];
        bool worse = !p->request.exhaustive && !p->request.front && s->found > 0 &&
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
    bool sharing = p->request.goal == GOAL_SPEED || p->request.goal == GOAL_COST;
    for (;;) {
        ptrdiff_t count = 0;
        if (sharing)
            bound_sharing(p);
        s->found = found_so_far(s);
        for (struct plan_group *g; count < AT_ONCE && (g = next_group(s)); count++) {
            g->done = true;
            s->groups[count] = g;
        }
        for (ptrdiff_t i = 0; i < count; i++)
            s->groups[i]->done = false; // not for each other
        if (!count)
            return true;
        if (!run_groups(s, a, runner, count, e))
            return false;
        for (ptrdiff_t i = 0; i < count; i++) {
            s->groups[i]->done = true;
            bound_group(p, s->groups[i]);
        }
    }
}

// What was left out because another strategy is better has to be looked at again for one alone.
bool plan_search(struct plan *p, struct arena *a, const char *strategy, const struct runner *runner,
                 struct error *e)
{
    struct search s = {.plan = p, .strategy = strategy};
    s.groups = NEW(a, struct plan_group *, p->group_count + 1);
    for (ptrdiff_t i = 0; strategy && !p->request.exhaustive && i < p->group_count; i++)
        p->groups[i].done = p->groups[i].done && !is_searched(&s, &p->groups[i]);
    if ((!strategy && !find_bounds(&s, a, runner, e)) || !search_all(&s, a, runner, e))
        return false;
    p->predicted = 0;
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        p->predicted += p->groups[i].candidate_count;
    return true;
}
