// A simulated history as the memory snapshot that torch.cuda.memory._dump_snapshot would have
// written of the run: its memory viewer opens it, and `fathom replay` plays it. Stacks are the
// model's modules, innermost first, then the phase and the step.
#ifndef FATHOM_REPORT_SNAPSHOT_H
#define FATHOM_REPORT_SNAPSHOT_H

#include "core/allocator/allocator.h"
#include "core/predict/predict.h"

// Who made a block: a kind of memory, while a module was at work in a phase.
struct snapshot_owner {
    enum memory_kind kind;
    ptrdiff_t phase, module; // marks of the history; -1 before the first
};

struct snapshot_owners {
    struct snapshot_owner *items; // by tag; the first stands for no tag
    ptrdiff_t count, capacity;
};

// Gives each block of the history its owner's number as tag, in place of its kind.
struct snapshot_owners snapshot_owners_of(struct history *h, struct arena *a);

struct recording {
    const struct trace *log;           // with the driver's events
    const struct allocator *allocator; // as it was left
    const struct history *history;
    const struct snapshot_owners *owners;
    bool expandable;
};

void report_snapshot(struct buf *out, const struct recording *r);

#endif
