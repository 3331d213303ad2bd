// The order of a search: what can count least is next, few groups at a time, and what was found
// before limits what is tried. What is learnt of a node may put it off: it is tried once nothing
// else can count less. A task looks only at its own group and at what was settled before it began,
// so that threads change nothing.
#include "core/base/num.h"
#include "core/plan/bounds.h"
#include "core/plan/front.h"
#include "core/plan/search.h"

// Groups side by side: enough that no thread waits long for another; fewer until something is
// found, which then tells of the others what is of use.
enum { AT_ONCE = 24, AT_FIRST = 8 };

// A node that is not decided yet.
struct unit {
    ptrdiff_t node;
    double bound, seconds; // that it can count and take at least, as was known when it was asked
};

// A group with what is open of it.
struct lot {
    struct plan_group *group;
    struct unit *units;
    ptrdiff_t count;
    struct unit soonest;
    bool predicted; // in this round
    struct error failed;
};

struct sweep {
    struct search *search;
    struct lot *lots; // with open nodes
    ptrdiff_t count;
    struct lot *round[AT_ONCE]; // of this round, soonest first
    ptrdiff_t in_round;
    double horizon; // the least bound of what is in no round
};

static bool is_sooner(const struct unit *u, const struct unit *than)
{
    return u->bound < than->bound || (u->bound <= than->bound && u->seconds < than->seconds);
}

// False where it is decided, or nothing has to be known of it any more.
static bool note_bound(const struct search *s, const struct plan_group *g, struct unit *u)
{
    struct plan_candidate c = plan_node(g, u->node);
    if (g->refused >> u->node & 1 || search_leaves_out(s, g, &c))
        return false;
    u->bound = search_bound(s, g, &c);
    u->seconds = s->phase == SEARCH_FRONT ? u->bound : search_seconds(s, g, &c);
    return true;
}

static void learn(const struct sweep *w, struct arena *a, const struct plan_group *g,
                  const struct unit *u)
{
    struct plan_candidate c = plan_node(g, u->node);
    plan_learn_seconds(w->search->plan, a, g, &c);
}

// NULL where nothing is open.
static struct unit *soonest_of(const struct lot *l)
{
    struct unit *u = l->count ? l->units : NULL;
    for (ptrdiff_t i = 1; i < l->count; i++)
        if (is_sooner(&l->units[i], u))
            u = &l->units[i];
    return u;
}

// The rest stays in order: of nodes that are as soon the first tells most.
static void drop_unit(struct lot *l, struct unit *u)
{
    l->count--;
    for (; u < l->units + l->count; u++)
        u[0] = u[1];
}

static void open_lot(struct sweep *w, struct arena *a, struct plan_group *g)
{
    struct lot *l = &w->lots[w->count];
    *l = (struct lot){.group = g, .units = ROOM(a, struct unit, g->family->nodes)};
    for (ptrdiff_t n = 0; n < g->family->nodes; n++) {
        struct unit *u = &l->units[l->count];
        u->node = n;
        learn(w, a, g, u);
        l->count += note_bound(w->search, g, u);
    }
    if (!l->count)
        return;
    l->soonest = *soonest_of(l);
    w->count++;
}

static void open_lots(struct sweep *w, struct arena *a)
{
    struct plan *p = w->search->plan;
    w->lots = NEW(a, struct lot, p->group_count + 1);
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        if (search_asks(w->search, &p->groups[i]))
            open_lot(w, a, &p->groups[i]);
}

// Those that were asked are at another place of the order now, or decided.
static void close_lots(struct sweep *w)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < w->in_round; i++)
        if (w->round[i]->count)
            w->round[i]->soonest = *soonest_of(w->round[i]);
    for (ptrdiff_t i = 0; i < w->count; i++)
        if (w->lots[i].count)
            w->lots[kept++] = w->lots[i];
    w->count = kept;
}

static void add_to_round(struct sweep *w, struct lot *l)
{
    ptrdiff_t most = w->search->found > 0 ? AT_ONCE : AT_FIRST;
    struct lot *out = w->in_round < most ? NULL : w->round[most - 1];
    ptrdiff_t at = out ? most - 1 : w->in_round++;
    if (out && !is_sooner(&l->soonest, &out->soonest))
        out = l;
    if (out && out->soonest.bound < w->horizon)
        w->horizon = out->soonest.bound;
    if (out == l)
        return;
    for (; at > 0 && is_sooner(&l->soonest, &w->round[at - 1]->soonest); at--)
        w->round[at] = w->round[at - 1];
    w->round[at] = l;
}

static void choose_round(struct sweep *w)
{
    w->in_round = 0;
    w->horizon = 1e300;
    for (ptrdiff_t i = 0; i < w->count; i++)
        add_to_round(w, &w->lots[i]);
    w->search->lowest = w->in_round ? w->round[0]->soonest.bound : 0;
}

// What is learnt of a node puts off others of the group, too. One prediction is enough: it may tell
// that no other is needed.
static void try_lot(void *context, ptrdiff_t index, struct arena scratch)
{
    struct sweep *w = context;
    struct lot *l = w->round[index];
    struct unit *u;
    bool ok = true;
    l->predicted = false;
    while (ok && !l->predicted && (u = soonest_of(l)) && u->bound <= w->horizon) {
        if (!note_bound(w->search, l->group, u)) {
            drop_unit(l, u);
            continue;
        }
        struct search_step step = {l->group, u->node, w->horizon, &l->predicted};
        if (u == soonest_of(l) && u->bound <= w->horizon)
            ok = search_try(w->search, &step, scratch, &l->failed);
    }
}

static bool run_round(struct sweep *w, struct arena *a, const struct runner *runner,
                      struct error *e)
{
    struct plan *p = w->search->plan;
    struct tasks tasks = {.count = w->in_round,
                          .run = try_lot,
                          .context = w,
                          .before = p->settled_count,
                          .of = p->all};
    for (ptrdiff_t i = 0; i < w->in_round; i++) {
        const struct lot *l = w->round[i];
        plan_prepare_predictions(p, a, l->group);
        for (ptrdiff_t k = 0; k < l->count; k++)
            if (l->units[k].bound <= w->horizon)
                learn(w, a, l->group, &l->units[k]);
    }
    runner_run(runner, *a, &tasks);
    for (ptrdiff_t i = 0; i < w->in_round; i++) {
        plan_settle_group(p, w->round[i]->group);
        w->search->tries += w->round[i]->predicted;
        if (w->round[i]->failed.code != ERROR_NONE) {
            *e = w->round[i]->failed;
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
    open_lots(w, a);
    while (w->count) {
        choose_round(w);
        if (is_over(s))
            break;
        if (!run_round(w, a, runner, e))
            return false;
        note_found(s);
        close_lots(w);
    }
    return true;
}
