// Undoing a history. Segments: the driver's events are undone from the last to the first. Blocks: a
// free whose allocation is not recorded tells of a block that was there, by its requested size; a
// block alive at the end whose allocation is not recorded was there too, and its size is known.
#include "core/replay/start.h"

#include <stdlib.h>
#include <string.h>

#include "core/trace/address_map.h"

struct undoing {
    struct arena *arena;
    struct str name;
    struct end_segment *held; // ascending addresses
    ptrdiff_t held_count;
    struct end_block *older; // blocks from before the history
    ptrdiff_t older_count;
    const struct allocator_options *options;
};

static bool contradicts(const struct undoing *u, const char *what, uint64_t address,
                        struct error *e)
{
    return FAIL(e, BAD_INPUT, u->name, "the history does not lead to its segments: %s at 0x%llx",
                what, (unsigned long long)address);
}

// Index of the first held segment that ends after `address`.
static ptrdiff_t find_held(const struct undoing *u, uint64_t address)
{
    ptrdiff_t low = 0, high = u->held_count;
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (u->held[middle].address + u->held[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The array has room for one entry more than there can be: every event adds at most one.
static void insert_held(struct undoing *u, ptrdiff_t at, struct end_segment segment)
{
    memmove(u->held + at + 1, u->held + at, (size_t)(u->held_count - at) * sizeof *u->held);
    u->held[at] = segment;
    u->held_count++;
}

static void remove_held(struct undoing *u, ptrdiff_t at)
{
    u->held_count--;
    memmove(u->held + at, u->held + at + 1, (size_t)(u->held_count - at) * sizeof *u->held);
}

static bool touches(const struct end_segment *below, const struct end_segment *above)
{
    return below->expandable && above->expandable && below->small == above->small &&
           below->stream == above->stream && below->address + below->bytes == above->address;
}

// Runs of one reservation that touch are one segment, as in a snapshot.
static void join_with_next(struct undoing *u, ptrdiff_t at)
{
    if (at < 0 || at + 1 >= u->held_count || !touches(&u->held[at], &u->held[at + 1]))
        return;
    u->held[at].bytes += u->held[at + 1].bytes;
    remove_held(u, at + 1);
}

static bool add_back(struct undoing *u, struct end_segment segment, struct error *e)
{
    ptrdiff_t at = find_held(u, segment.address);
    if (at < u->held_count && u->held[at].address < segment.address + segment.bytes)
        return contradicts(u, "memory given back twice", segment.address, e);
    insert_held(u, at, segment);
    join_with_next(u, at);
    join_with_next(u, at - 1);
    return true;
}

// Takes [address, address + bytes) out of the held segment that contains it.
static bool take_out(struct undoing *u, const struct event *event, struct error *e)
{
    uint64_t end = event->address + event->bytes;
    ptrdiff_t at = find_held(u, event->address);
    if (at == u->held_count || u->held[at].address > event->address ||
        u->held[at].address + u->held[at].bytes < end)
        return contradicts(u, "memory taken that is not there", event->address, e);
    struct end_segment whole = u->held[at], head = whole, tail = whole;
    head.bytes = event->address - whole.address;
    tail.address = end;
    tail.bytes = whole.address + whole.bytes - end;
    remove_held(u, at);
    if (tail.bytes)
        insert_held(u, at, tail);
    if (head.bytes)
        insert_held(u, at, head);
    return true;
}

static uint64_t distance(const struct end_segment *s, uint64_t address)
{
    return s->address > address ? s->address - address : address - s->address;
}

// Whether mapped memory belonged to the small pool: as the nearest memory that its stream mapped,
// for that is of the same reservation; where there is none by its size, for the large pool maps
// whole large pages.
static bool was_small(const struct undoing *u, const struct event *event)
{
    const struct end_segment *nearest = NULL;
    for (ptrdiff_t i = 0; i < u->held_count; i++) {
        const struct end_segment *s = &u->held[i];
        bool candidate = s->expandable && s->stream == event->stream;
        if (candidate &&
            (!nearest || distance(s, event->address) < distance(nearest, event->address)))
            nearest = s;
    }
    return nearest ? nearest->small : event->bytes % u->options->large_segment_bytes != 0;
}

static bool undo_driver_event(struct undoing *u, const struct event *event, struct error *e)
{
    struct end_segment segment = {event->address, event->bytes, event->stream, false, false};
    switch ((enum event_kind)event->kind) {
    case EVENT_SEGMENT_ALLOC:
    case EVENT_SEGMENT_MAP:
        return take_out(u, event, e);
    case EVENT_SEGMENT_FREE:
        segment.small = event->bytes == SMALL_SEGMENT_BYTES;
        return add_back(u, segment, e);
    case EVENT_SEGMENT_UNMAP:
        segment.expandable = true;
        segment.small = was_small(u, event);
        return add_back(u, segment, e);
    case EVENT_ALLOC:
    case EVENT_FREE_REQUESTED:
    case EVENT_FREE_COMPLETED:
    case EVENT_FREE:
    case EVENT_OOM:
    case EVENT_SNAPSHOT:
    case EVENT_EMPTY_CACHE:
    case EVENT_RESET_PEAKS:
    case EVENT_KINDS:
        return true;
    }
    __builtin_trap();
}

static bool undo_driver(struct undoing *u, const struct trace *t, const struct end_state *end,
                        struct error *e)
{
    ptrdiff_t driver_events = 0;
    for (ptrdiff_t i = 0; i < t->count; i++)
        driver_events += event_is_driver(t->events[i].kind);
    u->held = NEW(u->arena, struct end_segment, end->segment_count + driver_events + 1);
    if (end->segment_count)
        memcpy(u->held, end->segments, (size_t)end->segment_count * sizeof *u->held);
    u->held_count = end->segment_count;
    for (ptrdiff_t i = t->count - 1; i >= 0; i--)
        if (!undo_driver_event(u, &t->events[i], e))
            return false;
    return true;
}

static void note_older(struct undoing *u, struct address_map *known, const struct event *event)
{
    uint32_t ignored;
    bool completed = event->kind == EVENT_FREE_COMPLETED;
    if (event->kind == EVENT_ALLOC) {
        address_map_add(known, event->address, 0);
        return;
    }
    if (event->kind != EVENT_FREE_REQUESTED && !completed)
        return;
    if (!address_map_find(known, event->address, &ignored)) {
        u->older[u->older_count++] = (struct end_block){
            event->address, options_round(u->options, event->bytes), event->bytes, completed};
        address_map_add(known, event->address, 0);
    }
    if (completed)
        address_map_remove(known, event->address, &ignored);
}

static int by_address(const void *a, const void *b)
{
    const struct end_block *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static void find_older_blocks(struct undoing *u, const struct trace *t, const struct end_state *end)
{
    struct address_map known = address_map_in(u->arena);
    u->older = NEW(u->arena, struct end_block, t->count + end->block_count + 1);
    for (ptrdiff_t i = 0; i < t->count; i++)
        note_older(u, &known, &t->events[i]);
    for (ptrdiff_t i = 0; i < end->block_count; i++) {
        uint32_t ignored;
        if (!address_map_find(&known, end->blocks[i].address, &ignored))
            u->older[u->older_count++] = end->blocks[i];
    }
    qsort(u->older, (size_t)u->older_count, sizeof *u->older, by_address);
}

// A classic large block may be up to a MiB larger than its request: a remainder that small is never
// split off, so no free block that small exists there.
static uint64_t with_remainder(const struct end_segment *segment, uint64_t bytes, uint64_t gap)
{
    bool whole = !segment->small && !segment->expandable && gap <= SMALL_MAX_BYTES;
    return whole ? bytes + gap : bytes;
}

static bool lay_out_segment(struct undoing *u, struct start_segment *out,
                            const struct end_segment *segment, ptrdiff_t *next, struct error *e)
{
    uint64_t at = segment->address, end = segment->address + segment->bytes;
    ptrdiff_t last = *next;
    while (last < u->older_count && u->older[last].address < end)
        last++;
    *out = (struct start_segment){.address = segment->address,
                                  .bytes = segment->bytes,
                                  .stream = segment->stream,
                                  .small = segment->small,
                                  .expandable = segment->expandable};
    out->blocks = NEW(u->arena, struct start_block, 2 * (last - *next) + 1);
    for (; *next < last; (*next)++) {
        const struct end_block *b = &u->older[*next];
        uint64_t bound = *next + 1 < last ? u->older[*next + 1].address : end;
        if (b->address < at || b->address + b->bytes > bound)
            return contradicts(u, "two blocks overlap", b->address, e);
        if (b->address > at)
            out->blocks[out->block_count++] = (struct start_block){.bytes = b->address - at};
        uint64_t bytes = with_remainder(segment, b->bytes, bound - b->address - b->bytes);
        out->blocks[out->block_count++] =
            (struct start_block){.bytes = bytes,
                                 .requested_bytes = b->requested_bytes,
                                 .state = b->pending ? START_PENDING_FREE : START_ALLOCATED};
        at = b->address + bytes;
    }
    if (at < end)
        out->blocks[out->block_count++] = (struct start_block){.bytes = end - at};
    return true;
}

bool start_from_end(struct trace *t, const struct end_state *end, const struct allocator_options *o,
                    struct str name, struct error *e)
{
    struct undoing u = {.arena = t->arena, .name = name, .options = o};
    if (!undo_driver(&u, t, end, e))
        return false;
    find_older_blocks(&u, t, end);
    struct start_segment *start = NEW(t->arena, struct start_segment, u.held_count);
    ptrdiff_t next = 0;
    for (ptrdiff_t i = 0; i < u.held_count; i++)
        if (!lay_out_segment(&u, &start[i], &u.held[i], &next, e))
            return false;
    if (next < u.older_count)
        return contradicts(&u, "a block outside every segment", u.older[next].address, e);
    t->start = start;
    t->start_count = u.held_count;
    return true;
}
