// Inside the room: which configurations may have room, and what every search notes in a group.
#ifndef FATHOM_PLAN_ROOM_H
#define FATHOM_PLAN_ROOM_H

#include "core/plan/space.h"

bool plan_find_room(struct plan *p, struct arena *a, const struct runner *runner,
                    struct error *e) MUST_USE;

// What to look at without an allocator, which takes a part of the time that a prediction does.
struct plan_look {
    struct plan_group *group;
    ptrdiff_t node;
    bool timed;
    bool first; // roughly will do
};

// What is held against another family in time, so that few of it are ever looked at.
bool plan_is_held_back(const struct plan *p, const struct plan_family *f);

// Looks at what was only known to have no room.
bool plan_refine_floor(const struct plan *p, struct plan_floor *f, struct arena scratch,
                       struct error *e) MUST_USE;

// Adds its floor; false where rules refuse it.
bool plan_look(const struct plan *p, struct plan_look look, struct arena scratch,
               struct error *failure);

// Memory for what tasks find in it.
void plan_prepare_group(struct plan *p, struct arena *a, struct plan_group *g);
void plan_prepare_predictions(struct plan *p, struct arena *a, struct plan_group *g);

// What tasks that begin now may look at.
void plan_settle_group(struct plan *p, struct plan_group *g);

// That a rule refuses a node; what else failed goes to `failure`.
void plan_note_refusal(struct plan_group *g, ptrdiff_t node, const struct error *e,
                       struct error *failure);

#endif
