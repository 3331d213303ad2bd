// Inside the room: the families and groups of a plan.
#ifndef FATHOM_PLAN_SPACE_H
#define FATHOM_PLAN_SPACE_H

#include "core/plan/plan.h"

bool plan_families(struct plan *p, struct arena *a, struct error *e) MUST_USE;

// What a family is made of: its words with those of another axis, which say where, and its job.
enum { PLAN_SHARING_TROUBLE = 3 };
struct plan_family plan_placed(struct arena *a, struct plan_family f, struct str words,
                               int trouble);
bool plan_add_family(struct plan *p, struct arena *a, struct plan_family f,
                     struct error *e) MUST_USE;
bool plan_megatron_families(struct plan *p, struct arena *a, struct plan_family f,
                            struct error *e) MUST_USE;
bool plan_is_given(const struct plan *p, const char *setting);
// Of a micro-batch.
uint64_t plan_fewest_rows(const struct job *job);

// What takes longer than so many times the fastest is told of only where memory is the goal.
#define PLAN_FRONT_TIMES 2.0

// "strategy=ddp", by its number; false after the last.
bool plan_strategy_words(struct str *words, struct arena *a, ptrdiff_t i);

void plan_groups(struct plan *p, struct arena *a); // of its families

// All values of the dials in turn, the last one turning fastest.
struct plan_candidate plan_node(const struct plan_group *g, ptrdiff_t node);

// Predicts what may be the best: of one strategy, or of all where that is NULL.
bool plan_search(struct plan *p, struct arena *a, const char *strategy, const struct runner *runner,
                 struct error *e) MUST_USE;

// And what only fits, where nothing of the strategy is safe.
bool plan_search_tight(struct plan *p, struct arena *a, const char *strategy,
                       const struct runner *runner, struct error *e) MUST_USE;

// Predicts what of the strategy has least alive, where that is known of something and nothing of it
// was predicted.
bool plan_search_least(struct plan *p, struct arena *a, const char *strategy,
                       struct error *e) MUST_USE;

// And what no other beats in both memory and time.
bool plan_search_front(struct plan *p, struct arena *a, const struct runner *runner,
                       struct error *e) MUST_USE;

#endif
