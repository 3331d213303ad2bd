// Inside the room: how long a step takes at least, from the same with few of its layers. Layers
// that are alike take as long each, so that what ranks do is a line in their number; what they wait
// is none, and is left out (tests/unit/test_plan.c holds that against predictions).
#ifndef FATHOM_PLAN_ESTIMATE_H
#define FATHOM_PLAN_ESTIMATE_H

#include "core/plan/room.h"

// Whether there is such a line: where layers are all alike and many.
bool plan_can_estimate(const struct plan *p, const struct plan_family *f);

// And one of memory: of Megatron, which gathers no layers ahead and keeps no buckets.
bool plan_can_estimate_room(const struct plan *p, const struct plan_family *f);

// Whether such a line lies under what has to be alive, however far.
bool plan_room_is_convex(const struct plan *p, const struct plan_family *f);

// Whether it is known of a node, or of one like it that only the allocator sees otherwise.
bool plan_has_estimate(const struct plan_group *g, const struct plan_candidate *c);

// Adds it to the group's; false where rules refuse the node.
bool plan_estimate(const struct plan *p, struct plan_look look, struct arena scratch,
                   struct error *failure);

// What has to be alive at least: of several moments each has a line, and the one that is highest
// with few layers is passed by no others but such as rise faster.
// Into the floor of the candidate, whose job it is.
bool plan_estimate_room(struct plan_candidate *c, struct arena scratch, const struct plan *p,
                        const struct job *job, struct error *e) MUST_USE;

#endif
