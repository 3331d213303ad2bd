// One history being played through one allocator: finds blocks by their handles, keeps peaks with
// the events that reached them, and samples the series.
#ifndef FATHOM_REPLAY_PLAYER_H
#define FATHOM_REPLAY_PLAYER_H

#include "core/replay/replay.h"

struct player {
    struct allocator *allocator;
    struct arena *arena;
    struct block **blocks; // by handle
    ptrdiff_t block_capacity;
    const struct trace *trace;
    struct replay_result *result;
    struct replay_series *series;
    ptrdiff_t series_events; // events the series is spread over
    ptrdiff_t sampled;       // its points so far
};

// Seeds the start state.
bool player_start(struct player *p, struct arena *a, const struct replay_request *q,
                  struct error *e) MUST_USE;

// False: out of memory. Driver events and recorded out-of-memories are passed over.
bool player_step(struct player *p, ptrdiff_t index);

// An allocation failed: keeps the first.
void player_note_oom(struct player *p, ptrdiff_t index);

// The two steps that most of a history is made of, without a series. False: out of memory.
bool player_allocate(struct player *p, const struct event *event, ptrdiff_t index);
void player_free(struct player *p, const struct event *event);

// The rest of a step that is not a block's event: peaks and series as they are now.
void player_note(struct player *p, ptrdiff_t index);

#endif
