// What a recording shows between one event of the program and the next: frees that complete late
// and calls of the driver. torch records them in the order in which one allocation makes them,
//
//   completions | collected | growth | oversize returns | growth | flush | growth | alloc or oom
//
// (each part may be missing; a flush is completions and returns), and a call of empty_cache before
// it looks like its flush. This file tells the parts of such a group from each other, by what the
// allocator holds and by what the recording shows the driver could give. It changes nothing.
#ifndef FATHOM_REPLAY_GROUP_H
#define FATHOM_REPLAY_GROUP_H

#include "core/allocator/allocator.h"
#include "core/trace/trace.h"

// What the driver and an unknown memory limit certainly allowed, read off the whole recording.
struct group_bounds {
    uint64_t reserved_bytes; // most reserved at once, or what an out-of-memory says there was
    uint64_t asked_bytes;    // most reserved with the segment asked for, which is what a limit sees
    bool told;               // an out-of-memory says what the device had free
    bool maybe_limited;      // not every out-of-memory is the device's, by what they tell
    bool defers;             // frees wait for other streams
};

struct group_reader {
    const struct trace *trace;
    const struct allocator *allocator;
    struct group_bounds bounds;
    ptrdiff_t end;         // of the events to be read
    ptrdiff_t plain_until; // completions before this are known not to begin a group
};

struct group {
    ptrdiff_t from;
    ptrdiff_t returns; // end of the completions it begins with
    ptrdiff_t middle;  // end of the returns after these, with the completions among them
    ptrdiff_t end;     // the event it belongs to, or the end
    ptrdiff_t left;    // completions up to `middle` that are not made yet
};

struct group_bounds group_bounds_of(const struct trace *t, const struct allocator_options *o);

bool group_starts(struct group_reader *g, ptrdiff_t i);
struct group group_at(const struct group_reader *g, ptrdiff_t from);

// Whether the completion could not come before the search: it would have given the request room, or
// (with max_split_size) another block would have been returned first.
bool group_leaves_to_flush(const struct group_reader *g, const struct group *group,
                           const struct block *b);

// The end of what garbage collection returned, from group->returns on.
ptrdiff_t group_collected(const struct group_reader *g, const struct group *group);

// Whether the returns are a call of empty_cache and not the allocation's own.
bool group_is_empty_cache(const struct group_reader *g, const struct group *group);

static inline bool event_returns_memory(const struct event *event)
{
    return event->kind == EVENT_SEGMENT_FREE || event->kind == EVENT_SEGMENT_UNMAP;
}

#endif
