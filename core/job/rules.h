// What cannot be, what a framework cannot run, and what is not modelled: one row each, with the
// reason and what to do instead. A job that breaks a rule is refused by it, once, wherever it came
// from; a remedy that breaks one is never offered.
#ifndef FATHOM_JOB_RULES_H
#define FATHOM_JOB_RULES_H

#include "core/job/job.h"

struct rule {
    trait_set when, unless;            // all of these traits, none of those,
    bool (*test)(const struct job *j); // and this; NULL: no more
    unsigned in;                       // only for these targets; 0: whoever asks
    enum error_code code;              // BAD_INPUT: it cannot be; UNSUPPORTED: it is not modelled
    const char *setting;               // the one to change
    const char *why;                   // a sentence; "@gpus@" stands for a number of the job
};

#define CANNOT  ERROR_BAD_INPUT
#define NOT_YET ERROR_UNSUPPORTED
#define SHARDED (IS_FSDP | IS_ZERO)

// In the order in which they are looked at; a row without a reason ends each list.
extern const struct rule needed_rules[], target_rules[], unmodelled_rules[];

// The first rule of this kind that the job breaks; NULL where it keeps them all.
const struct rule *rule_broken(const struct job *j, enum error_code code);

// Says it: the user's own place where the setting was given.
bool rule_refuse(const struct rule *r, const struct job *j, struct error *e);

#endif
