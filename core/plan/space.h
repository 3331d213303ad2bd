// Inside the room: the families and groups of a plan.
#ifndef FATHOM_PLAN_SPACE_H
#define FATHOM_PLAN_SPACE_H

#include "core/plan/plan.h"

bool plan_families(struct plan *p, struct arena *a, struct error *e) MUST_USE;

// As near as this, times are the same, and the simpler one is the better.
#define PLAN_SAME 1.01

void plan_groups(struct plan *p, struct arena *a); // of its families

// Predicts what may be the best: of one strategy, or of all where that is NULL.
bool plan_search(struct plan *p, struct arena *a, const char *strategy, const struct runner *runner,
                 struct error *e) MUST_USE;

#endif
