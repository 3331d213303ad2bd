// See front.h.
#include "core/plan/front.h"

#include "core/plan/space.h"

// Of those that take less than `below` and no longer than `most`: the fastest; or, where times are
// the same, what takes least, then the fastest, then the simplest.
static const struct plan_candidate *next_on_front(const struct plan *p, double below, double most,
                                                  bool smallest)
{
    const struct plan_candidate *next = NULL, *c;
    for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));) {
        bool elsewhere = p->best && c->family->gpus != p->best->family->gpus;
        double seconds = c->prediction.time.seconds, bytes = (double)c->prediction.reserved_bytes;
        bool told = c == p->best || !plan_is_late(c);
        if (!told || !plan_is_safe(c) || elsewhere || seconds > most || bytes * PLAN_SAME >= below)
            continue;
        double least = next ? (double)next->prediction.reserved_bytes : 0;
        bool quicker = next && seconds < next->prediction.time.seconds;
        if (!next || (smallest ? bytes < least || (bytes <= least && quicker) : quicker))
            next = c;
    }
    return next;
}

// Safe ones that no other beats in both, to PLAN_SAME. The next is the fastest of those that take
// less; of what is as fast, what takes least.
void plan_find_front(struct plan_front *f, const struct plan *p)
{
    double below = 1e300, most = 1e300;
    f->count = 0;
    f->seconds = 0;
    while (f->count < PLAN_MOST_PARETO) {
        const struct plan_candidate *next = next_on_front(p, below, most, false);
        if (!next)
            return;
        double seconds = next->prediction.time.seconds;
        if (!f->count && p->request.goal != GOAL_MEMORY)
            f->seconds = most = seconds * PLAN_FRONT_TIMES;
        next = next_on_front(p, below, seconds * PLAN_SAME, true);
        f->points[f->count++] = next;
        if (f->count == PLAN_MOST_PARETO)
            f->seconds = seconds * PLAN_SAME;
        below = (double)next->prediction.reserved_bytes;
    }
}

double plan_front_seconds(const struct plan *p)
{
    struct plan_front f;
    plan_find_front(&f, p);
    return f.seconds;
}
