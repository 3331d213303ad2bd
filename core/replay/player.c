// See player.h. A flush completes pending frees on its own, so the completion a history shows later
// may come too late: a block is only touched while it still bears the handle.
#include "core/replay/player.h"

#include <stddef.h>

static ptrdiff_t most_blocks(const struct trace *t)
{
    ptrdiff_t most = 0;
    for (ptrdiff_t i = 0; i < t->start_count; i++)
        if (t->start[i].block_count > most)
            most = t->start[i].block_count;
    return most;
}

static bool seed(struct player *p, struct arena *a, struct error *e)
{
    const struct trace *t = p->trace;
    struct block **made = NEW(a, struct block *, most_blocks(t));
    for (ptrdiff_t i = 0; i < t->start_count; i++) {
        const struct start_segment *s = &t->start[i];
        if (!allocator_seed(p->allocator, s, made, e))
            return false;
        for (ptrdiff_t j = 0; j < s->block_count; j++)
            if (made[j])
                p->blocks[s->blocks[j].block] = made[j];
    }
    allocator_reset_peaks(p->allocator); // pending blocks counted as allocated for a moment
    return true;
}

bool player_start(struct player *p, struct arena *a, const struct replay_request *q,
                  struct error *e)
{
    p->trace = q->trace;
    p->series = q->series;
    p->series_events = q->stop_after ? q->stop_after : q->trace->count;
    if (p->series)
        *p->series = (struct replay_series){.count = p->series_events < REPLAY_SERIES_POINTS
                                                         ? p->series_events
                                                         : REPLAY_SERIES_POINTS};
    p->allocator = allocator_new(a, &q->options, q->trace->streams, q->trace->stream_count);
    p->arena = a;
    p->block_capacity = (ptrdiff_t)q->trace->block_count;
    p->blocks = NEW(a, struct block *, p->block_capacity);
    p->allocator->driver.log = q->log;
    return seed(p, a, e);
}

// Stretches without an event of the program's are as the last was.
static void sample(struct player *p, ptrdiff_t index)
{
    struct replay_series *s = p->series;
    const struct allocator_stats *stats = &p->allocator->stats;
    ptrdiff_t point = (ptrdiff_t)((int64_t)index * s->count / p->series_events);
    for (; p->sampled < point; p->sampled++) {
        ptrdiff_t before = p->sampled > 0 ? p->sampled - 1 : 0;
        s->allocated_bytes[p->sampled] = s->allocated_bytes[before];
        s->reserved_bytes[p->sampled] = s->reserved_bytes[before];
    }
    if (p->sampled == point)
        p->sampled++;
    if (stats->allocated_bytes.current > s->allocated_bytes[point])
        s->allocated_bytes[point] = stats->allocated_bytes.current;
    if (stats->reserved_bytes.current > s->reserved_bytes[point])
        s->reserved_bytes[point] = stats->reserved_bytes.current;
}

void player_note_oom(struct player *p, ptrdiff_t index)
{
    if (p->result->ooms++ == 0) {
        p->result->oom = p->allocator->oom;
        p->result->oom_event = index;
    }
}

// A history that is still being made has more blocks from time to time.
void player_make_room(struct player *p, uint32_t block)
{
    while ((ptrdiff_t)block >= p->block_capacity)
        p->blocks = arena_grow(p->arena, p->blocks, sizeof(struct block *), p->block_capacity,
                               &p->block_capacity);
}

static void request_free(struct player *p, const struct event *event)
{
    struct block *b = player_block(p, event);
    if (b && b->state == BLOCK_ALLOCATED)
        allocator_free_request(p->allocator, b);
}

bool player_step(struct player *p, ptrdiff_t index)
{
    const struct event *event = &p->trace->events[index];
    bool ok = true;
    switch ((enum event_kind)event->kind) {
    case EVENT_ALLOC:
        ok = player_allocate(p, event, index);
        break;
    case EVENT_FREE_REQUESTED:
        request_free(p, event);
        break;
    case EVENT_FREE_COMPLETED:
    case EVENT_FREE:
        player_free(p, event);
        break;
    case EVENT_EMPTY_CACHE:
        allocator_flush(p->allocator, FLUSH_EMPTY_CACHE);
        break;
    case EVENT_RESET_PEAKS:
        allocator_reset_peaks(p->allocator);
        break;
    case EVENT_SEGMENT_ALLOC:
    case EVENT_SEGMENT_FREE:
    case EVENT_SEGMENT_MAP:
    case EVENT_SEGMENT_UNMAP:
    case EVENT_OOM:
    case EVENT_SNAPSHOT:
    case EVENT_KINDS:
        break;
    }
    if (p->series)
        sample(p, index);
    return ok;
}
