// What files are written from: the resolved job, and what only files have (a data set, a place to
// save, GPUs beside those that train). Everything a writer's table may ask is here in one of two
// forms: a trait (yes or no) and a fact (a text by name, "@gpus@" in a template).
#ifndef FATHOM_EMIT_DRAFT_H
#define FATHOM_EMIT_DRAFT_H

#include "core/job/job.h"

struct fact {
    const char *name;
    struct str text;
};

enum { DRAFT_MAX_FACTS = 96 };

struct draft {
    struct arena *arena;
    const struct job *job;
    const struct settings *settings;     // as given
    uint64_t traits;                     // the job's, and those of its files
    uint64_t sequences;                  // of one optimizer step
    uint64_t rollout_gpus, teacher_gpus; // beside those that train
    struct fact facts[DRAFT_MAX_FACTS];
    int fact_count;
};

bool draft_from_job(struct draft *j, struct arena *a, const struct job *job,
                    struct error *e) MUST_USE;

// What distillation needs beside the trainer: the facts "teacher_gpus" and its count.
bool draft_teacher(struct draft *j, struct error *e) MUST_USE;

bool draft_is(const struct draft *j, uint64_t when, uint64_t unless); // all of when, none of unless

void draft_fact(struct draft *j, const char *name, struct str text);
void draft_count(struct draft *j, const char *name, uint64_t value);
struct str draft_text(const struct draft *j,
                      const char *name); // a name that is not there is a defect

// How a fact is written where it stands.
enum expansion {
    EXPAND_PLAIN,
    EXPAND_NOTE,  // on one line
    EXPAND_SHELL, // as one word
};

// Copies `text` with each "@name@" replaced.
struct str draft_expand(const struct draft *j, struct str text, enum expansion how);

#endif
