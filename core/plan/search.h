// Inside the room: one search, for the best or for what beats it in memory for more time. try.c
// says what may be left out, sweep.c in which order the rest is tried.
#ifndef FATHOM_PLAN_SEARCH_H
#define FATHOM_PLAN_SEARCH_H

#include "core/plan/room.h"

enum search_phase { SEARCH_SECONDS, SEARCH_BEST, SEARCH_FRONT };

struct search {
    struct plan *plan;
    enum search_phase phase;
    const char *strategy;                // only of this; NULL: of all
    bool late;                           // only what comes last
    double found;                        // what the goal counts of the best so far; 0: none
    double lowest;                       // that it can count of anything left
    const struct plan_candidate *choice; // so far; NULL: none
    double most_seconds;                 // that are told of; 0: all
    ptrdiff_t tries;                     // predictions, whatever they told
};

// Whether the group is asked for: the front is told of one machine.
bool search_asks(const struct search *s, const struct plan_group *g);

// The least that the goal can count of it; of the front, the least time.
double search_bound(const struct search *s, const struct plan_group *g,
                    const struct plan_candidate *c);

double search_seconds(const struct search *s, const struct plan_group *g,
                      const struct plan_candidate *c); // at least

bool search_leaves_out(const struct search *s, const struct plan_group *g,
                       const struct plan_candidate *c);

// Whether few of its layers would tell how long it takes at least, and nobody asked them.
bool search_needs_estimate(const struct search *s, const struct plan_group *g,
                           const struct plan_candidate *c);

struct search_step {
    struct plan_group *group;
    ptrdiff_t node;
    double horizon;  // what can count no more than this is next; the rest waits
    bool *predicted; // told where its prediction was made; NULL: nobody asks
};

// The next thing that is to be known of a node, which may be its prediction. False where something
// failed that is no refusal.
bool search_try(const struct search *s, const struct search_step *step, struct arena scratch,
                struct error *failure);

// How far a prediction is of use: of a count that is looked for, what may take no longer; of all
// others, what reserves no more. 0: without limit. And whether it is of none where it is not safe.
struct plan_use {
    double seconds;
    uint64_t bytes;
    bool only_safe;
};

// Makes the prediction of a candidate as far as it is of use. False where a rule forbids it.
bool plan_try_candidate(const struct plan *p, struct plan_candidate *c, struct plan_use use,
                        struct arena scratch, struct error *e) MUST_USE;

// Tries what is left in the order of what it can count at least, until nothing can be better.
bool search_sweep(struct search *s, struct arena *a, const struct runner *runner,
                  struct error *e) MUST_USE;

// The best of the strategy by the goal, or of all where that is NULL.
const struct plan_candidate *plan_choose_of(const struct plan *p, enum plan_goal goal,
                                            const char *strategy);

#endif
