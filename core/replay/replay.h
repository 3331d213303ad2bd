// Replays a history through the allocator. Following a recording, the driver's recorded answers and
// addresses are used and every driver event the allocator makes is held against the recorded one:
// an exact copy matches them all. Otherwise recorded driver events are ignored and the history is a
// program run under other options: another version, mode, limit or device.
#ifndef FATHOM_REPLAY_REPLAY_H
#define FATHOM_REPLAY_REPLAY_H

#include "core/allocator/allocator.h"
#include "core/trace/trace.h"

enum { REPLAY_SERIES_POINTS = 512 };

struct replay_series { // the most in each stretch of events
    ptrdiff_t count;   // points in use
    uint64_t allocated_bytes[REPLAY_SERIES_POINTS], reserved_bytes[REPLAY_SERIES_POINTS];
};

struct replay_request {
    const struct trace *trace;
    struct allocator_options options;
    bool follow;                  // a recording, with its driver's events
    ptrdiff_t stop_after;         // run only so many events; 0: all
    struct replay_series *series; // NULL for none
    struct trace *log;            // gets the history torch would have recorded; NULL for none
};

struct replay_peak {
    uint64_t bytes;
    ptrdiff_t event; // index of the event that reached it first
};

struct replay_result {
    ptrdiff_t events, allocations;
    ptrdiff_t unknown_frees; // of blocks from before the history
    struct replay_peak allocated, requested, active, reserved;
    uint64_t retries;
    ptrdiff_t flushes;       // empty_cache: given, or seen in the recording
    ptrdiff_t *flush_events; // where: each before this event
    uint64_t ooms;
    ptrdiff_t oom_event; // the first
    struct allocator_oom oom;
    struct allocator_stats stats;      // at the end
    const struct allocator *allocator; // as it was left, in the arena

    // following a recording
    ptrdiff_t segment_events, segment_events_matched;
    ptrdiff_t segment_events_extra; // made and not recorded
    ptrdiff_t placements_matched;   // allocations at their recorded address
    struct tape_mismatch first_mismatch;
};

// The size of large segments (expandable: pages), where a recording's driver events show it, and
// both that and the mode.
void replay_infer_large_segment(struct allocator_options *o, const struct trace *t);
void replay_infer(struct allocator_options *o, const struct trace *t);

// Without `follow`, stops at the first out-of-memory. Errors are those of the start state.
bool replay_run(struct replay_result *r, struct arena *a, const struct replay_request *q,
                struct error *e) MUST_USE;

// The program behind a recording: its allocations, frees and calls of empty_cache without what the
// driver did. An allocation that failed becomes one that is freed at once.
struct trace replay_program(struct arena *a, const struct trace *recording,
                            const struct replay_result *followed);

// What expandable segments (or their absence) would have done: the program under the other mode.
bool replay_other_mode(struct replay_result *r, struct arena *a, const struct replay_request *q,
                       struct error *e) MUST_USE;

#endif
