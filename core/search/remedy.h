// What would make a job that does not fit smaller, each change predicted: rows in order of trouble.
// Only what the job's framework can run and `emit` can write is offered: a change is settings, and
// the changed settings are resolved as any others, under that framework's rules.
#ifndef FATHOM_SEARCH_REMEDY_H
#define FATHOM_SEARCH_REMEDY_H

#include "core/predict/predict.h"

struct remedy {
    const char *what;    // "a chunked loss"
    const char *options; // "--loss chunked:2048"
    struct prediction prediction;
};

enum { REMEDIES_MOST = 48 };

struct remedies {
    struct remedy items[REMEDIES_MOST];
    int count;
};

bool remedies_find(struct remedies *r, struct arena *a, const struct job *job,
                   struct error *e) MUST_USE;

#endif
