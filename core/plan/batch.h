// Every way to make up a global batch: sequences of a micro-batch x micro-batches x data-parallel
// ranks, each predicted; by which arithmetic, what divides what, and what a batch of another
// machine is here.
#ifndef FATHOM_PLAN_BATCH_H
#define FATHOM_PLAN_BATCH_H

#include "core/base/runner.h"
#include "core/predict/epoch.h"
#include "core/predict/predict.h"

struct batch_row {
    uint64_t batch, accum, data_parallel;
    uint64_t cp, sp;
    bool possible; // else a rule forbids it
    struct error refusal;
    struct prediction prediction;
    struct training_time training; // where data and time are known
};

// What a framework computes a batch by, and when batches that are made up differently train the
// same.
struct batch_rule {
    const char *equation, *checks, *equal, *evidence;
};

struct evaluation {
    uint64_t size, every; // 0: not asked
    uint64_t batch, batches, times;
    double seconds; // of one evaluation
};

struct batch_story {
    const struct settings *settings;
    struct settings base; // without what only this command has
    struct job *job;      // of the base
    bool counts_only;     // no step of this framework is modelled: only its arithmetic is answered
    struct data data;
    uint64_t global_batch;
    uint64_t was_ranks, was_batch, was_accum; // 0: no other machine is named
    struct str was;
    struct batch_row *rows;
    ptrdiff_t row_count;
    const struct batch_row *best; // the fastest safe; where time is not known, the largest
    // That is safe, whether it makes up the batch or not, where a step has several and where it
    // has one; 0: none.
    uint64_t largest_batch, largest_alone;
    uint64_t ranks;                      // data parallel, sequences not shared beyond what is given
    uint64_t least_rows;                 // of a micro-batch, where this one cannot be made up
    uint64_t nearest_less, nearest_more; // batches that can be made up, where this one cannot; or 0
    struct evaluation evaluation;
};

bool batch_make(struct batch_story *s, struct arena *a, const struct settings *settings,
                const struct runner *runner, struct error *e) MUST_USE;

const struct batch_rule *batch_rule_of(const struct job *job);

// Of reinforcement learning, whose data are prompts.
bool batch_counts_answers(const struct job *job);

const char *batch_unit(const struct job *job); // "answer", "pair", "sequence"

// Data are prompts where a batch is answers to them: as many to each as files have where nobody
// says (core/emit/rollout.c).
bool data_read_units(struct data *d, const struct settings *s, const struct job *job,
                     uint64_t global_batch, struct error *e) MUST_USE;

// "batch=2 accum=8 cp=2"
struct str batch_words(struct arena *a, const struct batch_row *row);

#endif
