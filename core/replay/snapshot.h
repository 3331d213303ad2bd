// torch's memory snapshot (`_dump_snapshot`, or the same as JSON) as a history to replay. A
// snapshot holds the segments as they were at its end and the events up to there, often not from
// the start of the process. What was there before the first event is worked out: segments by
// undoing the driver's events, blocks from the frees of what no recorded event allocated and from
// what is alive at the end and older than the history.
#ifndef FATHOM_REPLAY_SNAPSHOT_H
#define FATHOM_REPLAY_SNAPSHOT_H

#include "core/allocator/options.h"
#include "core/base/value.h"
#include "core/trace/trace.h"

struct snapshot {
    struct trace trace;               // linked, with its start state
    uint64_t device;                  // the one with the most events
    struct allocator_options options; // as far as the snapshot says; torch_minor is the caller's
    ptrdiff_t unknown_actions;        // events of kinds that are not known, passed over
};

// Where an event of the device's history was caused, as far as the recording kept stacks: the
// innermost Python frame outside torch itself, "function (file:line)". Empty when there is none.
struct str snapshot_frame(struct arena *a, const struct value *root, uint64_t device,
                          ptrdiff_t event);

bool snapshot_read(struct snapshot *s, struct arena *a, const struct value *root, struct str name,
                   struct error *e) MUST_USE;

#endif
