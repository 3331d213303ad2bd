// The block behind a program's arena: address space reserved once and paid for page by page as it
// is touched, so a small request costs little and a large one is not refused early.
#ifndef FATHOM_HOST_SYSTEM_MEMORY_H
#define FATHOM_HOST_SYSTEM_MEMORY_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/error.h"

struct host_memory {
    void *block;
    ptrdiff_t bytes;
};

// Reserves up to 16 GiB, half of it each time the system refuses.
bool host_memory_reserve(struct host_memory *m, struct error *e) MUST_USE;

// An arena over all of it. `exhausted` must not return; it may be NULL, then exhaustion traps.
struct arena host_arena(const struct host_memory *m, void (*exhausted)(void *context));

void host_memory_release(struct host_memory *m); // every arena over it ends here

#endif
