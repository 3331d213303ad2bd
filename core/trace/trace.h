// A history of events with the streams they name and, for a history that starts late, the segments
// and blocks that were there before its first event.
#ifndef FATHOM_TRACE_TRACE_H
#define FATHOM_TRACE_TRACE_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/trace/event.h"

enum start_state { START_INACTIVE, START_ALLOCATED, START_PENDING_FREE };

struct start_block {
    uint64_t bytes, requested_bytes;
    uint32_t block; // handle, given by trace_link
    uint32_t tag;
    enum start_state state;
};

// One entry of a torch snapshot's `segments`: its blocks lie side by side and fill it. Segments are
// in ascending order of address.
struct start_segment {
    uint64_t address, bytes;
    uint64_t reserved_from; // expandable: where its reservation is known to begin, or `address`
    struct start_block *blocks;
    ptrdiff_t block_count;
    uint16_t stream;
    bool small, expandable;
};

struct trace {
    struct arena *arena;
    struct event *events;
    ptrdiff_t count, capacity;
    bool passes; // its events are counted and not kept, for whom plays them while they are made
    uint64_t *streams; // torch's number of each stream: their order decides the order of releases
    uint16_t stream_count;
    uint32_t block_count;    // handles are below this
    ptrdiff_t unknown_frees; // of blocks that neither the start nor an allocation made
    struct start_segment *start;
    ptrdiff_t start_count;
};

struct trace trace_in(struct arena *a);
struct trace trace_passing(struct arena *a);

// Room for `more` events at once; without it trace_add grows as it goes.
void trace_reserve(struct trace *t, ptrdiff_t more);
void trace_add(struct trace *t, struct event event);

// Counts an event that nobody keeps; false: it must be added.
static inline bool trace_passes(struct trace *t)
{
    t->count += t->passes;
    return t->passes;
}

// The index of a stream, added if it is new.
bool trace_stream(uint16_t *index, struct trace *t, uint64_t number, struct error *e) MUST_USE;

// Gives handles to the blocks of a recorded history by following their addresses, from the start
// state on. Fails when an address is allocated while it is alive.
bool trace_link(struct trace *t, struct str name, struct error *e) MUST_USE;

#endif
