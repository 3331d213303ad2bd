// Undoing a history. Segments: the driver's events are undone from the last to the first. Blocks: a
// free whose allocation is not recorded tells of a block that was there, by its requested size; a
// block alive at the end whose allocation is not recorded was there too, and its size is known.
#include "core/replay/start.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/num.h"
#include "core/trace/address_map.h"

struct undoing {
    struct arena *arena;
    struct str name;
    struct end_segment *held; // ascending addresses
    ptrdiff_t held_count;
    struct end_block *older; // blocks from before the history
    ptrdiff_t older_count;
    const struct allocator_options *options;
    bool *small;                // by event: the pool of what is mapped or unmapped
    uint64_t reservation_bytes; // what a reservation surely has
};

static uint64_t distance(const struct end_segment *s, uint64_t address)
{
    return s->address > address ? s->address - address : address - s->address;
}

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

// ------------------------------------------------------------------ pools of expandable memory

// The pool of the last block seen in each page of 2 MiB.
static void note_page(const struct undoing *u, struct address_map *pages, const struct event *event)
{
    uint64_t page = event->address / SMALL_SEGMENT_BYTES * SMALL_SEGMENT_BYTES;
    uint32_t ignored;
    if (event->kind > EVENT_FREE)
        return;
    address_map_remove(pages, page, &ignored);
    address_map_add(pages, page, options_round(u->options, event->bytes) <= SMALL_MAX_BYTES);
}

static bool nearest_is_small(const struct undoing *u, const struct event *event)
{
    const struct end_segment *nearest = NULL;
    for (ptrdiff_t i = 0; i < u->held_count; i++) {
        const struct end_segment *s = &u->held[i];
        if (s->expandable && s->stream == event->stream &&
            (!nearest || distance(s, event->address) < distance(nearest, event->address)))
            nearest = s;
    }
    return nearest && nearest->small && distance(nearest, event->address) < u->reservation_bytes;
}

// Whether a block was seen in the memory; its pages or the table are walked, whichever is shorter.
static bool find_block(const struct address_map *pages, const struct event *event, uint32_t *small)
{
    uint64_t count = event->bytes / SMALL_SEGMENT_BYTES;
    for (uint64_t i = 0; count <= pages->mask && i < count; i++)
        if (address_map_find(pages, event->address + i * SMALL_SEGMENT_BYTES, small))
            return true;
    for (uint64_t i = 0; count > pages->mask && i <= pages->mask; i++) {
        const struct address_slot *slot = &pages->slots[i];
        *small = slot->value;
        if (slot->used && slot->address >= event->address &&
            slot->address - event->address < event->bytes)
            return true;
    }
    return false;
}

// Which pool unmapped memory belonged to: that of the last block seen in it. Where none was, the
// small one where it is not made of the large one's pages, or where it lies in the reservation of
// small memory that its stream holds at the end.
static bool was_small(const struct undoing *u, const struct address_map *pages,
                      const struct event *event)
{
    uint32_t small;
    if (event->bytes % u->options->large_segment_bytes)
        return true;
    return find_block(pages, event, &small) ? small : nearest_is_small(u, event);
}

static bool is_request(const struct event *event)
{
    return event->kind == EVENT_ALLOC || event->kind == EVENT_OOM;
}

// Pages are mapped for the request that follows; of unmapped ones the blocks in them tell.
static void find_pools(struct undoing *u, const struct trace *t)
{
    struct address_map pages = address_map_in(u->arena);
    bool small = false;
    u->small = NEW(u->arena, bool, t->count);
    for (ptrdiff_t i = t->count - 1; i >= 0; i--) {
        if (is_request(&t->events[i]))
            small = options_round(u->options, t->events[i].bytes) <= SMALL_MAX_BYTES;
        u->small[i] = small;
    }
    for (ptrdiff_t i = 0; i < t->count; i++) {
        note_page(u, &pages, &t->events[i]);
        if (t->events[i].kind == EVENT_SEGMENT_UNMAP)
            u->small[i] = was_small(u, &pages, &t->events[i]);
    }
}

// A reservation is an eighth larger than the device, which holds what was reserved at once.
static uint64_t least_reservation(const struct trace *t, const struct end_state *end)
{
    uint64_t reserved = 0, most = 0;
    for (ptrdiff_t i = 0; i < end->segment_count; i++)
        reserved = most = sat_add(reserved, end->segments[i].bytes);
    for (ptrdiff_t i = t->count - 1; i >= 0; i--) {
        const struct event *event = &t->events[i];
        if (event->kind == EVENT_SEGMENT_FREE || event->kind == EVENT_SEGMENT_UNMAP)
            reserved = sat_add(reserved, event->bytes);
        else if (event_is_driver(event->kind))
            reserved -= reserved < event->bytes ? reserved : event->bytes;
        most = reserved > most ? reserved : most;
    }
    return sat_add(most, most / 8);
}

// ------------------------------------------------------------------ the driver's events

static bool undo_driver_event(struct undoing *u, const struct event *event, bool small,
                              struct error *e)
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
        segment.small = small;
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
    u->reservation_bytes = least_reservation(t, end);
    find_pools(u, t);
    for (ptrdiff_t i = t->count - 1; i >= 0; i--)
        if (!undo_driver_event(u, &t->events[i], u->small[i], e))
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

// The last block that starts at or before the address.
static ptrdiff_t find_older(const struct undoing *u, uint64_t address)
{
    ptrdiff_t low = 0, high = u->older_count;
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (u->older[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

// Whether an allocation at `address` shows that the block before it reaches up to there: it lies in
// the same classic segment of the large pool, no further off than a remainder that is not split.
static bool shows_end(const struct undoing *u, const struct end_block *b, uint64_t address)
{
    ptrdiff_t at = find_held(u, b->address);
    if (at == u->held_count || u->held[at].small || u->held[at].expandable)
        return false;
    uint64_t end = b->address + b->bytes;
    return address > end && address - end <= SMALL_MAX_BYTES &&
           address < u->held[at].address + u->held[at].bytes;
}

// A block that lost its neighbour does not show where it ends, unless something is allocated behind
// it while it lives: that starts at its end, for large blocks are larger than any remainder.
static void find_ends(struct undoing *u, const struct trace *t)
{
    bool *gone = NEW(u->arena, bool, u->older_count);
    for (ptrdiff_t i = 0; i < t->count; i++) {
        const struct event *event = &t->events[i];
        ptrdiff_t at = find_older(u, event->address);
        if (at < 0 || gone[at])
            continue;
        struct end_block *b = &u->older[at];
        if (event->kind == EVENT_FREE_COMPLETED || event->kind == EVENT_FREE)
            gone[at] = event->address == b->address;
        else if (event->kind == EVENT_ALLOC && shows_end(u, b, event->address))
            b->bytes = event->address - b->address;
    }
}

// A classic large block may be up to a MiB larger than its request: a remainder that small is never
// split off, so no free block that small exists there. One of max_split_size is never split at all.
static uint64_t with_remainder(const struct undoing *u, const struct end_segment *segment,
                               uint64_t bytes, uint64_t gap)
{
    bool whole = !segment->small && !segment->expandable &&
                 (gap <= SMALL_MAX_BYTES || bytes >= u->options->max_split_bytes);
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
        uint64_t bytes = with_remainder(u, segment, b->bytes, bound - b->address - b->bytes);
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

// A pool keeps to one reservation as long as any of it is mapped, for that is larger than the
// device. What is mapped below the first run meanwhile is a hole from before the history.
struct reservation {
    uint64_t from, mapped_bytes;
};

static void follow_reservation(struct reservation *r, const struct event *event, uint64_t page)
{
    if (event->kind == EVENT_SEGMENT_UNMAP) {
        r->mapped_bytes -= r->mapped_bytes < event->bytes ? r->mapped_bytes : event->bytes;
    } else if (event->kind == EVENT_SEGMENT_MAP && r->mapped_bytes) {
        r->mapped_bytes += event->bytes;
        if (event->address < r->from && (r->from - event->address) % page == 0)
            r->from = event->address;
    }
}

static void find_reservations(struct undoing *u, const struct trace *t, struct start_segment *start)
{
    struct reservation *all = NEW(u->arena, struct reservation, 2 * (ptrdiff_t)t->stream_count);
    for (ptrdiff_t i = u->held_count - 1; i >= 0; i--) {
        struct reservation *r = &all[2 * start[i].stream + start[i].small];
        if (start[i].expandable)
            *r = (struct reservation){start[i].address, r->mapped_bytes + start[i].bytes};
    }
    for (ptrdiff_t i = 0; i < t->count; i++) {
        struct reservation *r = &all[2 * t->events[i].stream + u->small[i]];
        uint64_t page = u->small[i] ? SMALL_SEGMENT_BYTES : u->options->large_segment_bytes;
        follow_reservation(r, &t->events[i], page);
    }
    for (ptrdiff_t i = 0; i < u->held_count; i++)
        if (start[i].expandable)
            start[i].reserved_from = all[2 * start[i].stream + start[i].small].from;
}

bool start_from_end(struct trace *t, const struct end_state *end, const struct allocator_options *o,
                    struct str name, struct error *e)
{
    struct undoing u = {.arena = t->arena, .name = name, .options = o};
    if (!undo_driver(&u, t, end, e))
        return false;
    find_older_blocks(&u, t, end);
    find_ends(&u, t);
    struct start_segment *start = NEW(t->arena, struct start_segment, u.held_count);
    ptrdiff_t next = 0;
    for (ptrdiff_t i = 0; i < u.held_count; i++)
        if (!lay_out_segment(&u, &start[i], &u.held[i], &next, e))
            return false;
    find_reservations(&u, t, start);
    if (next < u.older_count)
        return contradicts(&u, "a block outside every segment", u.older[next].address, e);
    t->start = start;
    t->start_count = u.held_count;
    return true;
}
