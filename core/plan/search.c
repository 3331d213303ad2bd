// Where there may be room, how long what has some takes at least, and what may be the best of it.
#include "core/plan/search.h"

#include <string.h>

#include "core/base/num.h"
#include "core/plan/bounds.h"
#include "core/plan/estimate.h"

struct seconds_search {
    struct search search;
    struct plan_group **groups;
    struct error *failed; // of each group, what is no refusal
};

// ------------------------------------------------------------------ groups as tasks

// What is fastest of all that may have room tells how long it takes at least. A node that a rule
// refuses tells nothing: the next one does.
static bool try_first(const struct search *s, struct plan_group *g, struct arena scratch,
                      struct error *failure)
{
    ptrdiff_t before = g->candidate_count;
    bool ok = true;
    for (ptrdiff_t n = 0; ok && n < g->family->nodes && g->candidate_count == before; n++)
        ok = search_try(s, &(struct search_step){g, n, 0, NULL}, scratch, failure);
    return ok;
}

// The same without an allocator: of those with fewer GPUs, few are near the best. One without room
// tells nothing, either.
static bool look_at_first(const struct search *s, struct plan_group *g, struct arena scratch,
                          struct error *failure)
{
    for (ptrdiff_t n = 0; n < g->family->nodes; n++) {
        struct plan_candidate c = plan_node(g, n);
        if (plan_is_late(&c) || g->refused >> n & 1 || plan_is_hopeless(s->plan, g, &c))
            continue;
        bool known = plan_look(s->plan, (struct plan_look){g, n, true, false}, scratch, failure);
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
        if (plan_is_late(&c) || g->refused >> n & 1 || plan_is_hopeless(s->plan, g, &c))
            continue;
        struct plan_look look = {g, n, true, false};
        while (!plan_has_estimate(g, &c) && plan_estimate(s->plan, look, scratch, failure))
            continue;
        if (plan_has_estimate(g, &c))
            return true;
        if (failure->code != ERROR_NONE)
            return false;
    }
    return true;
}

static void search_group(void *context, ptrdiff_t index, struct arena scratch)
{
    struct seconds_search *own = context;
    const struct search *s = &own->search;
    struct plan_group *g = own->groups[index];
    bool fewer = g->family->gpus < hardware_gpus(&s->plan->job.hardware);
    (void)(plan_can_estimate(s->plan, g->family) ? estimate_fastest
           : fewer                               ? look_at_first
                                                 : try_first)(s, g, scratch, &own->failed[index]);
}

void plan_prepare_group(struct plan *p, struct arena *a, struct plan_group *g)
{
    if (!p->settled) {
        p->settled = NEW(a, const struct plan_candidate *, p->all + 1);
    }
    if (!g->floors)
        g->floors = NEW(a, struct plan_floor, 3 * g->family->nodes);
    if (!g->estimates && plan_can_estimate(p, g->family))
        g->estimates = NEW(a, struct plan_estimate, 2 * g->family->nodes);
    if (!g->ends)
        g->ends = NEW(a, struct plan_end, g->family->nodes);
}

void plan_prepare_predictions(struct plan *p, struct arena *a, struct plan_group *g)
{
    plan_prepare_group(p, a, g);
    if (!g->candidates)
        g->candidates = NEW(a, struct plan_candidate, g->family->nodes + 1);
}

void plan_settle_group(struct plan *p, struct plan_group *g)
{
    while (g->settled < g->candidate_count)
        p->settled[p->settled_count++] = &g->candidates[g->settled++];
    p->learnt += g->estimates_settled < g->estimate_count || g->floors_settled < g->floor_count;
    g->estimates_settled = g->estimate_count;
    const struct plan_floor **of_place = &p->families[g->family->same_place].floors;
    for (; g->floors_settled < g->floor_count; p->floor_count++) {
        struct plan_floor *f = &g->floors[g->floors_settled++];
        f->next = *of_place;
        *of_place = f;
    }
}

// Whether it is about what the plan itself chooses.
static bool is_of_dial(const struct error *e)
{
    for (int i = 0; i < PLAN_DIALS; i++)
        if (strncmp(e->where, "--", 2) == 0 && strcmp(e->where + 2, plan_dials[i].setting) == 0)
            return true;
    return false;
}

// Of refusals one is kept that is not about a dial, whose other values may do.
void plan_note_refusal(struct plan_group *g, ptrdiff_t node, const struct error *e,
                       struct error *failure)
{
    g->refused |= UINT64_C(1) << node;
    if (g->refusal.code == ERROR_NONE || (is_of_dial(&g->refusal) && !is_of_dial(e)))
        g->refusal = *e;
    if (e->code != ERROR_BAD_INPUT && e->code != ERROR_UNSUPPORTED)
        *failure = *e;
}

static bool run_groups(struct seconds_search *s, struct arena *a, const struct runner *runner,
                       ptrdiff_t count, struct error *e)
{
    struct plan *p = s->search.plan;
    struct tasks tasks = {.count = count,
                          .run = search_group,
                          .context = s,
                          .before = p->settled_count,
                          .of = p->all};
    s->failed = NEW(a, struct error, count + 1);
    for (ptrdiff_t i = 0; i < count; i++)
        plan_prepare_predictions(p, a, s->groups[i]);
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

// Nothing else bounds its time.
static bool is_first(const struct plan_group *g)
{
    const struct plan_family *f = g->family;
    return f->alone < 0 && f->ahead < 0 && !f->in_turn && !f->tuned;
}

// Whether a node may have room.
static bool has_hope(const struct plan *p, const struct plan_group *g)
{
    for (ptrdiff_t n = 0; n < g->family->nodes; n++) {
        struct plan_candidate c = plan_node(g, n);
        if (!(g->refused >> n & 1) && !plan_is_hopeless(p, g, &c))
            return true;
    }
    return false;
}

// Those that share no sequences and are by what is fastest; the others are held against them.
static bool find_bounds(struct plan *p, struct arena *a, const struct runner *runner,
                        struct error *e)
{
    struct seconds_search s = {.search = {.plan = p, .phase = SEARCH_SECONDS}};
    ptrdiff_t count = 0;
    s.groups = NEW(a, struct plan_group *, p->group_count + 1);
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        if (is_first(&p->groups[i]) && has_hope(p, &p->groups[i]))
            s.groups[count++] = &p->groups[i];
    bool counts = p->request.goal == GOAL_SPEED || p->request.goal == GOAL_COST;
    return (!counts && !p->request.front) || run_groups(&s, a, runner, count, e);
}

// Whether one of the first floors is of these dials.
static bool has_floor_at(const struct plan_group *g, ptrdiff_t floors, const int dial[PLAN_DIALS])
{
    for (ptrdiff_t i = 0; i < floors; i++)
        if (memcmp(g->floors[i].dial, dial, sizeof g->floors[i].dial) == 0)
            return true;
    return false;
}

static ptrdiff_t predicted_in(const struct plan_group *g)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < g->floor_count; i++)
        count += !has_floor_at(g, i, g->floors[i].dial);
    for (ptrdiff_t i = 0; i < g->end_count; i++)
        count += !has_floor_at(g, g->floor_count, g->ends[i].dial);
    return count;
}

// With those of which only the floor is known, or how much is reserved at least.
static void count_predicted(struct plan *p)
{
    p->predicted = 0;
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        p->predicted += predicted_in(&p->groups[i]);
}

// Beyond the limit nothing is looked at to its end: only what is looked at alike is compared.
static bool is_looked_at_first(const struct plan *p, const struct plan_family *f)
{
    return !plan_is_held_back(p, f) && !f->hosted;
}

// The place of the least floor of a strategy; NULL where none is known.
static struct plan_group *leanest_of(const struct plan *p, const char *strategy, bool first,
                                     struct plan_floor **least)
{
    struct plan_group *group = NULL;
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        struct plan_group *g = &p->groups[i];
        bool asked = str_is(str_from(g->family->strategy), strategy) &&
                     is_looked_at_first(p, g->family) == first;
        for (ptrdiff_t k = 0; asked && k < g->floor_count; k++)
            if (!group || g->floors[k].bytes < (*least)->bytes) {
                *least = &g->floors[k];
                group = g;
            }
    }
    return group;
}

// Of which it is known how much that is.
static struct plan_group *leanest_group(const struct plan *p, struct arena scratch,
                                        const char *strategy, struct plan_floor **least,
                                        struct error *e)
{
    struct plan_group *g;
    do {
        g = leanest_of(p, strategy, true, least);
        g = g ? g : leanest_of(p, strategy, false, least);
    } while (g && (*least)->rough && plan_refine_floor(p, *least, scratch, e));
    return g;
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
    struct plan_floor *least = NULL;
    struct plan_group *g = leanest_group(p, *a, strategy, &least, e);
    if (e->code != ERROR_NONE)
        return false;
    g = g ? g : first_group(p, strategy);
    if (g)
        plan_prepare_predictions(p, a, g);
    for (ptrdiff_t n = g ? g->family->nodes - 1 : -1; n >= 0; n--) {
        struct plan_candidate *c = &g->candidates[g->candidate_count];
        struct error refusal = {0};
        *c = plan_node(g, n);
        if ((least && !is_at(c, least)) || g->refused >> n & 1)
            continue;
        if (!plan_try_candidate(p, c, (struct plan_use){0}, *a, &refusal)) {
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
    struct search s = {.plan = p, .phase = SEARCH_BEST, .strategy = strategy}, last = s;
    bool first = !strategy && !p->request.exhaustive;
    if (first && (!plan_find_room(p, a, runner, e) || !find_bounds(p, a, runner, e)))
        return false;
    bool ok = search_sweep(&s, a, runner, e);
    last.late = true;
    ok = ok && (p->request.exhaustive || search_sweep(&last, a, runner, e));
    count_predicted(p);
    return ok;
}

bool plan_search_tight(struct plan *p, struct arena *a, const char *strategy,
                       const struct runner *runner, struct error *e)
{
    p->tight = true;
    bool ok = plan_search(p, a, strategy, runner, e);
    p->tight = false;
    return ok;
}

bool plan_search_front(struct plan *p, struct arena *a, const struct runner *runner,
                       struct error *e)
{
    struct search s = {.plan = p, .phase = SEARCH_FRONT};
    p->best_gpus = p->best->family->gpus;
    bool ok = search_sweep(&s, a, runner, e);
    count_predicted(p);
    return ok;
}
