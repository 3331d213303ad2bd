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

static inline void player_note_peak(struct replay_peak *peak, const struct stat *stat,
                                    ptrdiff_t index)
{
    if (stat->peak > peak->bytes)
        *peak = (struct replay_peak){stat->peak, index};
}

// The rest of a step that is not a block's event: peaks as they are now.
static inline void player_note(struct player *p, ptrdiff_t index)
{
    const struct allocator_stats *stats = &p->allocator->stats;
    player_note_peak(&p->result->allocated, &stats->allocated_bytes, index);
    player_note_peak(&p->result->requested, &stats->requested_bytes, index);
    player_note_peak(&p->result->active, &stats->active_bytes, index);
    player_note_peak(&p->result->reserved, &stats->reserved_bytes, index);
}

static inline struct block *player_block(const struct player *p, const struct event *event)
{
    if (event->block == EVENT_NO_BLOCK)
        return NULL;
    ASSERT(event->block < p->trace->block_count);
    struct block *b = p->blocks[event->block];
    return b && b->handle == event->block ? b : NULL;
}

void player_make_room(struct player *p, uint32_t block);

// The two steps that most of a history is made of, without a series. False: out of memory.
static inline bool player_allocate(struct player *p, const struct event *event, ptrdiff_t index)
{
    ASSERT(event->block < p->trace->block_count);
    if ((ptrdiff_t)event->block >= p->block_capacity)
        player_make_room(p, event->block);
    struct request request = {event->bytes, event->tag, event->block, event->stream};
    struct block *b = allocator_serve(p->allocator, &request);
    p->blocks[event->block] = b;
    p->result->allocations++;
    p->result->placements_matched += b && b->address == event->address;
    player_note(p, index);
    return b;
}

static inline void player_free(struct player *p, const struct event *event)
{
    struct block *b = player_block(p, event);
    if (b && b->state == BLOCK_ALLOCATED)
        allocator_free(p->allocator, b);
    else if (b && b->state == BLOCK_PENDING)
        allocator_free_complete(p->allocator, b);
    if (event->block != EVENT_NO_BLOCK)
        p->blocks[event->block] = NULL;
}

#endif
