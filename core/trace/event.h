// One event of an allocator's history, and the only vocabulary shared by those who record histories
// (a torch snapshot, our trace files), those who invent them (the step simulator) and those who
// replay them. A block is named by a handle, a small dense number that is used again once the block
// is gone, so that a replay finds its block by indexing. Recorded histories carry addresses as
// well.
#ifndef FATHOM_TRACE_EVENT_H
#define FATHOM_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/str.h"

enum event_kind {
    EVENT_ALLOC,          // bytes as requested
    EVENT_FREE_REQUESTED, // the program let go; the block is still active
    EVENT_FREE_COMPLETED, // the block may be used again
    EVENT_FREE,           // both at once: what a simulator says when no other stream is involved
    EVENT_SEGMENT_ALLOC,  // the driver's events: true sizes
    EVENT_SEGMENT_FREE,
    EVENT_SEGMENT_MAP,
    EVENT_SEGMENT_UNMAP,
    EVENT_OOM,         // bytes rounded; the allocation that failed
    EVENT_SNAPSHOT,    // a recording's marker, without effect
    EVENT_EMPTY_CACHE, // the program called torch.cuda.empty_cache
    EVENT_RESET_PEAKS, // the program called reset_peak_memory_stats
    EVENT_KINDS,
};

enum {
    EVENT_NO_TAG = 0,
    EVENT_MAX_STREAMS = 1024, // a real job uses a handful; bounds the per-stream tables
};
#define EVENT_NO_BLOCK UINT32_MAX

// What torch's 47-bit addresses and any device's bytes stay far below: sums cannot wrap.
#define EVENT_MAX_ADDRESS (UINT64_C(1) << 57)
#define EVENT_MAX_BYTES   (UINT64_C(1) << 50)

struct event {
    uint64_t
        address; // as recorded, 0 in a simulated history; of an oom, the device's free bytes or 0
    uint64_t bytes;
    uint32_t block;  // handle of the block, EVENT_NO_BLOCK for other events and unknown blocks
    uint32_t tag;    // who owns the block: an index into the maker's own table of owners
    uint16_t stream; // index into the trace's streams
    uint8_t kind;
};

static inline bool event_is_driver(uint8_t kind)
{
    return kind >= EVENT_SEGMENT_ALLOC && kind <= EVENT_SEGMENT_UNMAP;
}

const char *event_kind_name(uint8_t kind); // as torch's snapshot spells it
bool event_kind_find(uint8_t *kind, struct str name);

#endif
