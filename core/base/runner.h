// Independent tasks, run one after another here or side by side by a host that has threads. A task
// writes its result where its context says, in memory that no other task touches, and takes its
// scratch from the arena it is given.
#ifndef FATHOM_BASE_RUNNER_H
#define FATHOM_BASE_RUNNER_H

#include "core/base/arena.h"

struct tasks {
    ptrdiff_t count;
    void (*run)(void *context, ptrdiff_t index, struct arena scratch);
    void *context;
    ptrdiff_t before, of; // of how many they are a part, and what was done before them; 0: of none
};

struct runner {
    void (*run)(void *host, const struct tasks *tasks);
    void *host;
};

// Without a runner (NULL), in the order of their numbers.
void runner_run(const struct runner *r, struct arena scratch, const struct tasks *tasks);

#endif
