// What a recording says the driver did, held against what a replay makes the driver do. The matcher
// opens a window on the driver events that belong to one allocation (or flush); the driver model
// asks what the recording answered at this point, and reports every event it makes.
#ifndef FATHOM_TRACE_TAPE_H
#define FATHOM_TRACE_TAPE_H

#include "core/trace/event.h"

enum tape_answer {
    TAPE_GIVES,   // the recording shows this request granted, at the address given
    TAPE_REFUSES, // memory was returned first, or the allocation ended in out-of-memory
    TAPE_SILENT,  // the recording shows no such request
};

struct tape_mismatch {
    bool found;
    ptrdiff_t event;          // index in the recording
    struct event wanted, got; // of kind EVENT_KINDS where there was none
};

struct tape {
    const struct event *events;
    ptrdiff_t next, end;
    ptrdiff_t collected; // what is returned before this was garbage collection's choice
    bool ends_in_oom;
    uint64_t free_bytes; // of the device, where the window ends in an oom that tells; else 0
    ptrdiff_t produced, matched;
    struct tape_mismatch first;
};

// Recorded events left over in the old window count as missed.
void tape_window(struct tape *t, ptrdiff_t from, ptrdiff_t to, bool ends_in_oom);

enum tape_answer tape_ask(const struct tape *t, enum event_kind kind, uint64_t *address);

// Where a new reservation begins: at the next page mapped, which may come after a refusal.
bool tape_find_map(const struct tape *t, uint64_t *address);

// The next return that garbage collection made; NULL when there is none.
const struct event *tape_collected(const struct tape *t);

void tape_produced(struct tape *t, struct event got);

#endif
