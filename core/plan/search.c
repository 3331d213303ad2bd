// Groups as tasks, few at a time, the most promising first: what was found before limits what is
// tried next. A task looks only at its own group and at those that were done before it began, so
// that threads change nothing.
#include <string.h>

#include "core/base/num.h"
#include "core/emit/emit.h"
#include "core/plan/bounds.h"
#include "core/plan/estimate.h"
#include "core/plan/room.h"
#include "core/predict/real_time.h"

enum { AT_ONCE = 4 };

enum search_phase { SEARCH_SECONDS, SEARCH_BEST, SEARCH_FRONT };

struct search {
    struct plan *plan;
    struct plan_group **groups;
    enum search_phase phase;
    const char *strategy; // only of this; NULL: of all
    double found;         // what the goal counts of the best so far; 0: none
    double most_seconds;  // that are told of; 0: all
    struct error *failed; // of each group, what is no refusal
};

// Accelerate's YAML has no key for DeepSpeed's bucket, whose default is 500 million elements
// (deepspeed/runtime/zero/config.py), in bf16.
#define DEFAULT_BUCKET_BYTES UINT64_C(1000000000)

bool plan_bucket(uint64_t *bytes, struct arena scratch, const struct job *job, struct error *e)
{
    struct draft *draft = NEW(&scratch, struct draft, 1);
    *bytes = 0;
    if (!job->target)
        return true;
    if (!draft_from_job(draft, &scratch, job, e) || !emit_check(draft, e))
        return false;
    uint64_t bucket = (uint64_t)DEFAULT_BUCKET_BYTES << job_reduces_wide(job);
    *bytes = draft_is(draft, IS_ZERO, IS_CONFIG) ? bucket : 0;
    return true;
}

bool plan_predict(struct prediction *p, struct arena scratch, const struct job *job,
                  struct error *e)
{
    if (!predict_fit(p, &scratch, job, e))
        return false;
    step_time_of_update(&p->time);
    return real_time_find(&p->time, scratch, job, e);
}

// Makes the prediction of a candidate. False where a rule forbids it.
static bool try_candidate(const struct plan *p, struct plan_candidate *c, struct arena scratch,
                          struct error *e)
{
    struct job *job = NEW(&scratch, struct job, 1);
    return plan_job(job, &scratch, p, c, e) && plan_bucket(&c->bucket_bytes, scratch, job, e) &&
           plan_predict(&c->prediction, scratch, job, e);
}

// The least that the goal can count of it.
static double bound_of(const struct plan *p, const struct plan_group *g,
                       const struct plan_candidate *c)
{
    switch (p->request.goal) {
    case GOAL_SPEED:
        return plan_least_seconds(p, g, g, c);
    case GOAL_COST:
        return plan_least_seconds(p, g, g, c) * (double)g->family->gpus;
    case GOAL_MEMORY:
        return plan_least_bytes(p, g, c);
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
        if (plan_is_safe(&g->candidates[i]) && plan_is_beyond(c, &g->candidates[i]))
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
    double seconds = plan_least_seconds(p, g, g, c), bytes = plan_least_bytes(p, g, c);
    if (most_seconds > 0 && seconds > most_seconds)
        return true;
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (is_as_good(&g->candidates[i], seconds, bytes))
            return true;
    for (ptrdiff_t i = 0; i < p->settled_count; i++)
        if (p->settled[i]->family->gpus == p->best_gpus &&
            is_as_good(p->settled[i], seconds, bytes))
            return true;
    return false;
}

static bool was_tried(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (memcmp(g->candidates[i].dial, c->dial, sizeof c->dial) == 0)
            return true;
    return false;
}

// What the goal counts of the best so far, with what was found in the group meanwhile.
static double found_with(const struct search *s, const struct plan_group *g)
{
    double least = s->found;
    for (ptrdiff_t i = g->settled; i < g->candidate_count; i++) {
        double measure = plan_measure(s->plan->request.goal, &g->candidates[i]);
        if (plan_is_safe(&g->candidates[i]) && (least <= 0 || measure < least))
            least = measure;
    }
    return least;
}

static bool is_left_out(const struct search *s, const struct plan_group *g,
                        const struct plan_candidate *c)
{
    const struct plan *p = s->plan;
    if (was_tried(g, c))
        return true;
    if (p->request.exhaustive)
        return false;
    if (plan_is_hopeless(p, g, c))
        return true;
    if (s->phase == SEARCH_FRONT)
        return is_behind_front(p, g, c, s->most_seconds);
    double found = found_with(s, g);
    return s->phase == SEARCH_BEST && ((p->request.goal != GOAL_MEMORY && is_dominated(g, c)) ||
                                       (found > 0 && bound_of(p, g, c) > found * PLAN_SAME));
}

// Whether the search asks for time: of the front always.
static bool counts_time(const struct search *s)
{
    enum plan_goal goal = s->plan->request.goal;
    return s->phase != SEARCH_BEST || goal == GOAL_SPEED || goal == GOAL_COST;
}

// Looks at a node without an allocator, where that may spare the rest: at its memory, and at its
// time where the goal counts that. False where rules refuse it.
static bool look_first(const struct search *s, struct plan_group *g, ptrdiff_t node,
                       struct arena scratch, struct error *failure)
{
    const struct plan_request *r = &s->plan->request;
    bool best = s->phase == SEARCH_BEST, memory = r->goal == GOAL_MEMORY;
    struct plan_candidate c = plan_node(g, node);
    struct plan_look look = {g, node, best && !memory && !s->plan->real_lengths};
    bool counts = best ? r->goal != GOAL_SIMPLICITY : s->phase == SEARCH_FRONT;
    bool known = look.timed && plan_has_estimate(g, &c);
    return r->exhaustive || !counts || known || plan_has_floor(g, &c, look.timed) ||
           plan_look(s->plan, look, scratch, failure);
}

// How long it takes at least by few of its layers, which takes little.
static bool estimate_first(const struct search *s, struct plan_group *g, ptrdiff_t node,
                           struct arena scratch, struct error *failure)
{
    struct plan_candidate c = plan_node(g, node);
    return !counts_time(s) || !plan_can_estimate(s->plan, g->family) || plan_has_estimate(g, &c) ||
           plan_estimate(s->plan, (struct plan_look){g, node, true}, scratch, failure);
}

// False where something failed that is no refusal.
static bool try_node(const struct search *s, struct plan_group *g, ptrdiff_t node,
                     struct arena scratch, struct error *failure)
{
    struct plan_candidate *c = &g->candidates[g->candidate_count];
    struct error refusal = {0};
    *c = plan_node(g, node);
    if (g->refused >> node & 1 || is_left_out(s, g, c))
        return true;
    if (!estimate_first(s, g, node, scratch, failure) || is_left_out(s, g, c) ||
        !look_first(s, g, node, scratch, failure) || is_left_out(s, g, c))
        return failure->code == ERROR_NONE;
    if (try_candidate(s->plan, c, scratch, &refusal)) {
        plan_add_floor(g, c, true);
        g->candidate_count++;
        return true;
    }
    plan_note_refusal(g, node, &refusal, failure);
    return failure->code == ERROR_NONE;
}

// ------------------------------------------------------------------ groups as tasks

// What is fastest of all that may have room tells how long it takes at least. A node that a rule
// refuses tells nothing: the next one does.
static bool try_first(const struct search *s, struct plan_group *g, struct arena scratch,
                      struct error *failure)
{
    ptrdiff_t before = g->candidate_count;
    bool ok = true;
    for (ptrdiff_t n = 0; ok && n < g->family->nodes && g->candidate_count == before; n++)
        ok = try_node(s, g, n, scratch, failure);
    return ok;
}

// The same without an allocator: of those with fewer GPUs, few are near the best. One without room
// tells nothing, either.
static bool look_at_first(const struct search *s, struct plan_group *g, struct arena scratch,
                          struct error *failure)
{
    for (ptrdiff_t n = 0; n < g->family->nodes; n++) {
        struct plan_candidate c = plan_node(g, n);
        if (g->refused >> n & 1 || plan_is_hopeless(s->plan, g, &c))
            continue;
        bool known = plan_look(s->plan, (struct plan_look){g, n, true}, scratch, failure);
        if (known && !plan_is_hopeless(s->plan, g, &c))
            return true;
        if (failure->code != ERROR_NONE)
            return false;
    }
    return true;
}

// The same of few layers.
static bool estimate_fastest(const struct search *s, struct plan_group *g, struct arena scratch,
                             struct error *failure)
{
    for (ptrdiff_t n = 0; n < g->family->nodes; n++) {
        struct plan_candidate c = plan_node(g, n);
        if (g->refused >> n & 1 || plan_is_hopeless(s->plan, g, &c))
            continue;
        if (plan_estimate(s->plan, (struct plan_look){g, n, true}, scratch, failure))
            return true;
        if (failure->code != ERROR_NONE)
            return false;
    }
    return true;
}

static bool try_all(const struct search *s, struct plan_group *g, struct arena scratch,
                    struct error *failure)
{
    bool small = s->plan->request.goal == GOAL_MEMORY && s->phase == SEARCH_BEST, ok = true;
    ptrdiff_t last = g->family->nodes - 1;
    for (ptrdiff_t n = 0; ok && n <= last; n++)
        ok = try_node(s, g, small ? last - n : n, scratch, failure);
    return ok;
}

static void search_group(void *context, ptrdiff_t index, struct arena scratch)
{
    struct search *s = context;
    struct plan_group *g = s->groups[index];
    bool fewer = g->family->gpus < hardware_gpus(&s->plan->job.hardware);
    bool first = s->phase == SEARCH_SECONDS;
    (void)(!first                                  ? try_all
           : plan_can_estimate(s->plan, g->family) ? estimate_fastest
           : fewer && !s->plan->real_lengths       ? look_at_first
                                                   : try_first)(s, g, scratch, &s->failed[index]);
}

void plan_prepare_group(struct plan *p, struct arena *a, struct plan_group *g)
{
    if (!p->settled) {
        p->settled = NEW(a, const struct plan_candidate *, p->all + 1);
        p->floors = NEW(a, const struct plan_floor *, 3 * p->all + 1);
    }
    if (!g->floors)
        g->floors = NEW(a, struct plan_floor, 3 * g->family->nodes);
    if (!g->estimates && plan_can_estimate(p, g->family))
        g->estimates = NEW(a, struct plan_floor, g->family->nodes);
    if (!g->candidates)
        g->candidates = NEW(a, struct plan_candidate, g->family->nodes + 1);
}

void plan_settle_group(struct plan *p, struct plan_group *g)
{
    while (g->settled < g->candidate_count)
        p->settled[p->settled_count++] = &g->candidates[g->settled++];
    while (g->floors_settled < g->floor_count)
        p->floors[p->floor_count++] = &g->floors[g->floors_settled++];
}

void plan_note_refusal(struct plan_group *g, ptrdiff_t node, const struct error *e,
                       struct error *failure)
{
    g->refused |= UINT64_C(1) << node;
    if (g->refusal.code == ERROR_NONE)
        g->refusal = *e;
    if (e->code != ERROR_BAD_INPUT && e->code != ERROR_UNSUPPORTED)
        *failure = *e;
}

static bool run_groups(struct search *s, struct arena *a, const struct runner *runner,
                       ptrdiff_t count, struct error *e)
{
    struct plan *p = s->plan;
    struct tasks tasks = {.count = count,
                          .run = search_group,
                          .context = s,
                          .before = p->settled_count,
                          .of = p->all};
    s->failed = NEW(a, struct error, count + 1);
    for (ptrdiff_t i = 0; i < count; i++)
        plan_prepare_group(p, a, s->groups[i]);
    runner_run(runner, *a, &tasks);
    for (ptrdiff_t i = 0; i < count; i++) {
        plan_settle_group(p, s->groups[i]);
        if (s->failed[i].code != ERROR_NONE) {
            *e = s->failed[i];
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
        struct plan_candidate c = plan_node(g, n);
        if (p->request.exhaustive || (!(g->refused >> n & 1) && !plan_is_hopeless(p, g, &c)))
            g->hope |= UINT64_C(1) << n;
    }
    g->done = !g->hope;
}

static double goal_bound(const struct plan *p, const struct plan_group *g)
{
    struct plan_candidate last = plan_node(g, g->family->nodes - 1);
    switch (p->request.goal) {
    case GOAL_SPEED:
        return g->seconds;
    case GOAL_COST:
        return g->seconds * (double)g->family->gpus;
    case GOAL_MEMORY:
        return plan_least_bytes(p, g, &last);
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
        struct plan_candidate c = plan_node(g, n);
        double seconds = plan_least_seconds(p, NULL, g, &c);
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
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        note_hope(p, &p->groups[i]);
        note_seconds(p, &p->groups[i]);
    }
    return true;
}

// The front is told of one machine.
static bool is_searched(const struct search *s, const struct plan_group *g)
{
    return (!s->strategy || str_is(str_from(g->family->strategy), s->strategy)) &&
           (s->phase != SEARCH_FRONT || g->family->gpus == s->plan->best_gpus);
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

// How often its ranks were doubled to share a sequence.
static int doublings(const struct plan *p, const struct plan_family *f)
{
    int n = 0;
    for (; f->alone >= 0; f = &p->families[f->alone])
        n++;
    return n;
}

// By their bounds; of the front first those that share less, which are bounds to the others.
static bool is_sooner(const struct search *s, const struct plan_group *g,
                      const struct plan_group *than)
{
    int n = doublings(s->plan, g->family), o = doublings(s->plan, than->family);
    return s->phase == SEARCH_FRONT && n != o ? n < o : g->bound < than->bound;
}

// The next of those that may be better.
static struct plan_group *next_group(const struct search *s)
{
    struct plan *p = s->plan;
    struct plan_group *next = NULL;
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        struct plan_group *g = &p->groups[i];
        bool worse = !p->request.exhaustive && s->phase == SEARCH_BEST && s->found > 0 &&
                     g->bound > s->found * PLAN_SAME;
        if (is_searched(s, g) && !g->done && !worse && (!next || is_sooner(s, g, next)))
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
        g->done = g->done || (s->phase == SEARCH_FRONT && plan_group_unshared(p, g));
    }
}

static ptrdiff_t predicted_in(const struct plan_group *g)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < g->floor_count; i++) {
        bool again = false;
        for (ptrdiff_t k = 0; k < i; k++)
            again |= memcmp(g->floors[k].dial, g->floors[i].dial, sizeof g->floors[i].dial) == 0;
        count += !again;
    }
    return count;
}

// With those of which only the floor is known.
static void count_predicted(struct plan *p)
{
    p->predicted = 0;
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        p->predicted += predicted_in(&p->groups[i]);
}

// The place of the least floor of a strategy; NULL where none is known.
static struct plan_group *leanest_group(const struct plan *p, const char *strategy,
                                        const struct plan_floor **least)
{
    struct plan_group *group = NULL;
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        struct plan_group *g = &p->groups[i];
        for (ptrdiff_t k = 0; k < g->floor_count; k++)
            if (str_is(str_from(g->family->strategy), strategy) &&
                (!group || g->floors[k].bytes < (*least)->bytes)) {
                *least = &g->floors[k];
                group = g;
            }
    }
    return group;
}

static bool is_at(const struct plan_candidate *c, const struct plan_floor *f)
{
    for (int d = 0; d < PLAN_DIALS; d++)
        if (c->dial[d] != f->dial[d] && !plan_dials[d].same_memory)
            return false;
    return true;
}

// The first of a strategy of which nothing had to be looked at, since what is leaner has no room.
static struct plan_group *first_group(const struct plan *p, const char *strategy)
{
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        if (str_is(str_from(p->groups[i].family->strategy), strategy))
            return &p->groups[i];
    return NULL;
}

// With segments that grow, if any: those need least.
bool plan_search_least(struct plan *p, struct arena *a, const char *strategy, struct error *e)
{
    const struct plan_floor *least = NULL;
    struct plan_group *g = leanest_group(p, strategy, &least);
    if (!g && (g = first_group(p, strategy)))
        plan_prepare_group(p, a, g);
    for (ptrdiff_t n = g ? g->family->nodes - 1 : -1; n >= 0; n--) {
        struct plan_candidate *c = &g->candidates[g->candidate_count];
        struct error refusal = {0};
        *c = plan_node(g, n);
        if ((least && !is_at(c, least)) || g->refused >> n & 1)
            continue;
        if (!try_candidate(p, c, *a, &refusal)) {
            plan_note_refusal(g, n, &refusal, e);
            if (e->code != ERROR_NONE)
                return false;
            continue;
        }
        g->candidate_count++;
        return true;
    }
    return true;
}

bool plan_search(struct plan *p, struct arena *a, const char *strategy, const struct runner *runner,
                 struct error *e)
{
    struct search s = {.plan = p, .strategy = strategy};
    s.groups = NEW(a, struct plan_group *, p->group_count + 1);
    if (!strategy && !p->request.exhaustive && !plan_find_room(p, a, runner, e))
        return false;
    for (ptrdiff_t i = 0; !strategy && i < p->group_count; i++)
        note_hope(p, &p->groups[i]);
    if (!strategy && !p->request.exhaustive && !find_bounds(&s, a, runner, e))
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
