// What a recipe does, from a fresh process to its end: the trainer that every recipe has, and what
// the recipe puts around it.
#ifndef FATHOM_RECIPES_RUN_H
#define FATHOM_RECIPES_RUN_H

#include "core/strategies/trainer.h"

struct run;

struct run_kind {
    int steps; // simulated; at most PREDICT_STEPS
    void (*build)(struct run *r, const struct job *p, struct machine *m);
    void (*step)(struct run *r);
    void (*finish)(struct run *r); // NULL where nothing follows the last step
};

struct run {
    const struct run_kind *kind;
    struct trainer trainer;
    struct trainer reference; // of trinity: only read
};

void run_build(struct run *r, const struct job *p, struct machine *m);
void run_step(struct run *r);
void run_finish(struct run *r);

extern const struct run_kind trinity_run; // trinity.c

#endif
