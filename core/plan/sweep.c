// The order of a search: what can count least is next, few at a time, and what was found before
// limits what is tried. What is learnt of a node may put it off: it is tried once nothing else can
// count less. A task looks only at its own group and at what was settled before it began, so that
// threads change nothing.
#include "core/base/num.h"
#include "core/plan/front.h"
#include "core/plan/search.h"

// Predictions, and what takes little, side by side: enough that no thread waits long for another.
enum { AT_ONCE = 24, MANY = 64 };

// A node that is not decided yet.
struct unit {
    struct plan_group *group;
    ptrdiff_t node;
    double bound, seconds; // that it can count and take at least, as was known when it was asked
};

struct sweep {
    struct search *search;
    struct unit *units; // open ones
    ptrdiff_t count;
    struct unit *round[MANY]; // of this round, least first
    ptrdiff_t in_round;
    struct plan_group *groups[MANY]; // of those, each once, and
    ptrdiff_t asked[MANY];           // how many of each: the most first, so that no thread waits
    ptrdiff_t group_count;
    double horizon; // the least bound of what is in no round
    struct error failed[MANY];
};

static bool is_sooner(const struct unit *u, const struct unit *than)
{
    return u->bound < than->bound || (u->bound <= than->bound && u->seconds < than->seconds);
}

static bool needs_little(const struct search *s, const struct unit *u)
{
    struct plan_candidate c = plan_node(u->group, u->node);
    return search_needs_estimate(s, u->group, &c);
}

// False where it is decided, or nothing has to be known of it any more.
static bool note_bound(const struct search *s, struct unit *u)
{
    struct plan_candidate c = plan_node(u->group, u->node);
    if (u->group->refused >> u->node & 1 || search_leaves_out(s, u->group, &c))
        return false;
    u->bound = search_bound(s, u->group, &c);
    u->seconds = s->phase == SEARCH_FRONT ? u->bound : search_seconds(s, u->group, &c);
    return true;
}

static void open_units(struct sweep *w, struct arena *a)
{
    struct search *s = w->search;
    struct plan *p = s->plan;
    w->units = NEW(a, struct unit, p->all + 1);
    for (ptrdiff_t i = 0; i < p->group_count; i++) {
        struct plan_group *g = &p->groups[i];
        if (!search_asks(s, g))
            continue;
        for (ptrdiff_t n = 0; n < g->family->nodes; n++) {
            struct unit *u = &w->units[w->count];
            *u = (struct unit){.group = g, .node = n};
            w->count += note_bound(s, u);
        }
    }
}

// Those that were asked are at another place of the order now, or decided.
static void close_units(struct sweep *w)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < w->in_round; i++)
        if (!note_bound(w->search, w->round[i]))
            w->round[i]->group = NULL;
    for (ptrdiff_t i = 0; i < w->count; i++)
        if (w->units[i].group)
            w->units[kept++] = w->units[i];
    w->count = kept;
}

static void add_to_round(struct sweep *w, struct unit *u)
{
    ptrdiff_t at = w->in_round < MANY ? w->in_round++ : MANY - 1;
    if (at == MANY - 1 && w->round[at] && !is_sooner(u, w->round[at]))
        return;
    while (at > 0 && is_sooner(u, w->round[at - 1])) {
        w->round[at] = w->round[at - 1];
        at--;
    }
    w->round[at] = u;
}

// What takes little is asked of many; else few are next.
static void cut_round(struct sweep *w)
{
    bool little = w->in_round && needs_little(w->search, w->round[0]);
    ptrdiff_t n = 0;
    while (n < w->in_round && (little ? needs_little(w->search, w->round[n]) : n < AT_ONCE))
        n++;
    w->horizon = n < w->in_round ? w->round[n]->bound : 1e300;
    w->in_round = n;
}

static void add_to_groups(struct sweep *w, struct plan_group *g)
{
    ptrdiff_t k = 0;
    while (k < w->group_count && w->groups[k] != g)
        k++;
    if (k == w->group_count)
        w->asked[w->group_count++] = 0;
    ptrdiff_t count = w->asked[k] + 1;
    for (; k > 0 && w->asked[k - 1] < count; k--) {
        w->groups[k] = w->groups[k - 1];
        w->asked[k] = w->asked[k - 1];
    }
    w->groups[k] = g;
    w->asked[k] = count;
}

static void choose_round(struct sweep *w)
{
    w->in_round = w->group_count = 0;
    w->round[MANY - 1] = NULL;
    for (ptrdiff_t i = 0; i < w->count; i++)
        add_to_round(w, &w->units[i]);
    w->search->lowest = w->in_round ? w->round[0]->bound : 0;
    cut_round(w);
    for (ptrdiff_t i = 0; i < w->in_round; i++)
        add_to_groups(w, w->round[i]->group);
}

static void try_group(void *context, ptrdiff_t index, struct arena scratch)
{
    struct sweep *w = context;
    bool ok = true;
    for (ptrdiff_t i = 0; ok && i < w->in_round; i++)
        if (w->round[i]->group == w->groups[index]) {
            struct search_step step = {w->groups[index], w->round[i]->node, w->horizon};
            ok = search_try(w->search, &step, scratch, &w->failed[index]);
        }
}

static bool run_round(struct sweep *w, struct arena *a, const struct runner *runner,
                      struct error *e)
{
    struct plan *p = w->search->plan;
    struct tasks tasks = {.count = w->group_count,
                          .run = try_group,
                          .context = w,
                          .before = p->settled_count,
                          .of = p->all};
    for (ptrdiff_t i = 0; i < w->group_count; i++) {
        w->failed[i] = (struct error){0};
        plan_prepare_group(p, a, w->groups[i]);
    }
    runner_run(runner, *a, &tasks);
    for (ptrdiff_t i = 0; i < w->group_count; i++) {
        plan_settle_group(p, w->groups[i]);
        if (w->failed[i].code != ERROR_NONE) {
            *e = w->failed[i];
            return false;
        }
    }
    return true;
}

static double found_so_far(const struct search *s, enum plan_goal goal)
{
    const struct plan *p = s->plan;
    const struct plan_candidate *c;
    double least = 0;
    for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));)
        if (search_asks(s, &p->groups[g]) && plan_is_safe(c) &&
            (least <= 0 || plan_measure(goal, c) < least))
            least = plan_measure(goal, c);
    return least;
}

static void note_found(struct search *s)
{
    const struct plan *p = s->plan;
    enum plan_goal goal = p->request.goal;
    s->found = found_so_far(s, goal);
    s->choice = s->phase == SEARCH_BEST ? plan_choose_of(p, goal, s->strategy) : NULL;
    s->most_seconds = s->phase == SEARCH_FRONT ? plan_front_seconds(p) : 0;
}

// Nothing that is left can be better, or be told of.
static bool is_over(const struct search *s)
{
    if (s->plan->request.exhaustive)
        return false;
    return s->phase == SEARCH_FRONT ? s->most_seconds > 0 && s->lowest > s->most_seconds
                                    : s->found > 0 && s->lowest > s->found * PLAN_SAME;
}

bool search_sweep(struct search *s, struct arena *a, const struct runner *runner, struct error *e)
{
    struct sweep *w = NEW(a, struct sweep, 1);
    w->search = s;
    note_found(s);
    open_units(w, a);
    while (w->count) {
        choose_round(w);
        if (is_over(s))
            break;
        if (!run_round(w, a, runner, e))
            return false;
        note_found(s);
        close_units(w);
    }
    return true;
}
