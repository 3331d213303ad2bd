// What a recipe does, from a fresh process to its end: the trainer that every recipe has, and what
// the recipe puts around it.
#ifndef FATHOM_STEP_JOB_H
#define FATHOM_STEP_JOB_H

#include "core/step/trainer.h"

struct job;

struct job_kind {
    int steps; // simulated; at most PREDICT_STEPS
    void (*build)(struct job *j, const struct plan *p, struct machine *m);
    void (*step)(struct job *j);
    void (*finish)(struct job *j); // NULL where nothing follows the last step
};

struct job {
    const struct job_kind *kind;
    struct trainer trainer;
    struct trainer reference; // of trinity: only read
};

void job_build(struct job *j, const struct plan *p, struct machine *m);
void job_step(struct job *j);
void job_finish(struct job *j);

extern const struct job_kind trinity_job; // trinity.c

#endif
