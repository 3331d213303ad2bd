// What was allocated before the first event of a history that starts late.
#ifndef FATHOM_REPLAY_START_H
#define FATHOM_REPLAY_START_H

#include "core/allocator/options.h"
#include "core/trace/trace.h"

// A stretch of memory from the driver, and a block in it, as they are at the history's end.
struct end_segment {
    uint64_t address, bytes;
    uint16_t stream;
    bool small, expandable;
};

struct end_block {
    uint64_t address, bytes, requested_bytes;
    bool pending; // freed, but another stream may still use it
};

struct end_state {
    struct end_segment *segments;
    ptrdiff_t segment_count;
    struct end_block *blocks; // allocated or pending
    ptrdiff_t block_count;
};

// Sets the trace's start state. The trace has its events and is not linked yet.
bool start_from_end(struct trace *t, const struct end_state *end, const struct allocator_options *o,
                    struct str name, struct error *e) MUST_USE;

#endif
