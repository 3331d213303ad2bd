// What a recipe does, from a fresh process to its end: the trainer that every recipe has, and what
// the recipe puts around it. A recipe is a file that fills a row, and a line of the table in run.c.
#ifndef FATHOM_RECIPES_RUN_H
#define FATHOM_RECIPES_RUN_H

#include "core/strategies/trainer.h"

struct run;

struct run_kind {
    int steps; // simulated; at most PREDICT_STEPS
    struct habits habits;
    void (*build)(struct run *r, const struct job *p, struct machine *m);
    void (*step)(struct run *r);
    void (*finish)(struct run *r); // NULL where nothing follows the last step
    bool always_distributed;       // on one GPU too
    uint64_t kernels_bytes;        // that its own kernels take beside torch's
};

struct run {
    const struct run_kind *kind;
    struct trainer trainer;
    struct trainer reference; // of trinity: only read
    struct job reference_job; // its own micro-batches
    struct job evaluation_job, evaluation_reference_job;
};

const struct run_kind *run_kind_of(enum recipe recipe);

void run_build(struct run *r, const struct job *p, struct machine *m);
void run_step(struct run *r);
void run_evaluate(struct run *r); // evaluate.c: a batch of it
void run_save(struct run *r);     // save.c
void run_finish(struct run *r);

// hf.c: a trainer and nothing else.
void plain_build(struct run *r, const struct job *p, struct machine *m);
void plain_step(struct run *r);

// generate.c: a step's answers, by the model that is trained.
void generate_answers(struct trainer *t, enum phase phase);

// trl.c: the same, and what its trainers read of them before the loss, for a step or an evaluation.
void answer_and_read(struct trainer *t, bool evaluates);

extern const struct run_kind hf_run, transformers_run, trl_run, deepspeed_run, trinity_run,
    verl_run, masked_run, megatron_run;

#endif
