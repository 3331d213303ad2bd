// Inside the room: what follows from the configurations that were predicted for those that were
// not. tests/unit/test_plan.c holds every order that is used here against trying.
#ifndef FATHOM_PLAN_BOUNDS_H
#define FATHOM_PLAN_BOUNDS_H

#include "core/plan/plan.h"

// Whether one of the dials is a count that is looked for.
bool plan_dials_say_some(const int dial[PLAN_DIALS]);

// Whether every dial is as far as the other's, or further.
bool plan_is_beyond(const struct plan_candidate *c, const struct plan_candidate *from);

// The least time that it can take: no less than what its dials come from, and than the same shared
// by half as many, whenever those reduce. By what was learnt before tasks began, and what is known
// of its own group since.
double plan_least_seconds(const struct plan *p, const struct plan_group *g,
                          const struct plan_candidate *c);

// Learns that by all that is settled, while no task runs.
void plan_learn_seconds(struct plan *p, struct arena *a, const struct plan_group *g,
                        const struct plan_candidate *c);

// The least live memory: no less than with what is leaner; and with half the sequences shared by
// half as many, where each rank has as many tokens, but for what a ring does without.
double plan_least_bytes(const struct plan *p, const struct plan_group *own,
                        const struct plan_candidate *c);

// The least that torch can reserve, which is no less.
double plan_least_reserved(const struct plan *p, const struct plan_group *own,
                           const struct plan_candidate *c);

// Whether its floor has no room for anything that is of use.
bool plan_is_beyond_room(const struct plan *p, const struct plan_candidate *c);

// That its prediction ended early, into the group's own.
void plan_add_end(struct plan_group *g, const struct plan_candidate *c);

// By what is known already there is no room for anything that is of use.
bool plan_is_hopeless(const struct plan *p, const struct plan_group *own,
                      const struct plan_candidate *c);

// Something that takes no less has a floor with room: to look for this one's tells nothing.
bool plan_has_room(const struct plan *p, const struct plan_candidate *c);

// Whether it shares sequences where ranks could have had some each.
const struct plan_group *plan_group_unshared(const struct plan *p, const struct plan_group *g);

// Whether its own floor is known, with the time where that is wanted.
bool plan_has_floor(const struct plan_group *g, const struct plan_candidate *c, bool timed);

// What its prediction says, into the group's own, for tasks that begin later.
void plan_add_floor(struct plan_group *g, const struct plan_candidate *c, bool timed);

#endif
