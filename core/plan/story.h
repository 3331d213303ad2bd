// What is told beside the best configuration: why others lost, memory against time, what more GPUs
// would buy; where nothing is safe, the least changes with which something is.
#ifndef FATHOM_PLAN_STORY_H
#define FATHOM_PLAN_STORY_H

#include "core/plan/front.h"
#include "core/predict/epoch.h"

// A configuration by its words, predicted; or why it cannot be.
struct plan_row {
    const char *what;
    struct str words;   // laid over the base
    struct str options; // the same as options, in short
    uint64_t batch, accum, gpus;
    bool otherwise; // it does not train the same
    bool possible;
    struct error refusal;
    struct prediction prediction;
};

enum { PLAN_MOST_ROWS = 16, PLAN_MOST_CHANGES = 8 };

// A machine, a length or a model with which something is safe.
struct plan_change {
    const char *what;  // "a shorter context"
    struct str words;  // "context=1024"
    bool found;        // safe with it
    struct plan *plan; // its best configuration is the answer
};

struct plan_story {
    struct plan plan;
    struct data data;
    struct plan_row rows[PLAN_MOST_ROWS];
    int row_count;
    struct plan_front front;
    struct plan_change more; // GPUs; no words where there cannot be
    struct plan_change changes[PLAN_MOST_CHANGES];
    int change_count;
};

// Into zeroed memory.
bool plan_tell(struct plan_story *s, struct arena *a, const struct plan_request *r,
               const struct runner *runner, struct error *e) MUST_USE;

#endif
