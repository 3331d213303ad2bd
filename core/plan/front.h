// What no other configuration beats in both memory and time.
#ifndef FATHOM_PLAN_FRONT_H
#define FATHOM_PLAN_FRONT_H

#include "core/plan/plan.h"

enum { PLAN_MOST_PARETO = 16 };

// Memory against time: each takes less than the one before it, by more than a hundredth, and none
// of all that are safe beats one in both by as much; of what is as fast the smallest. Up to twice
// the time of the fastest, but where memory is the goal.
struct plan_front {
    const struct plan_candidate *points[PLAN_MOST_PARETO]; // the fastest first
    int count;
    double seconds; // of what is further on nothing is told; 0: of all
};
void plan_find_front(struct plan_front *f, const struct plan *p);

// What takes longer than so many seconds is not told of, by what was found so far; 0: nothing is
// too slow. Only what is faster can make it more.
double plan_front_seconds(const struct plan *p);

#endif
