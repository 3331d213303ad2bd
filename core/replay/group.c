// See group.h. Where two readings leave the same state behind, the simpler one is taken.
#include "core/replay/group.h"

#include <stddef.h>

#include "core/base/num.h"

static bool is_request(const struct event *event)
{
    return event->kind == EVENT_ALLOC || event->kind == EVENT_OOM;
}

// A free that completes apart from its request: it had waited for another stream.
static bool is_late(const struct trace *t, ptrdiff_t i)
{
    const struct event *event = &t->events[i];
    return event->kind == EVENT_FREE_COMPLETED &&
           !(i > 0 && event[-1].kind == EVENT_FREE_REQUESTED && event[-1].block == event->block);
}

// ------------------------------------------------------------------ what the driver could give

struct tally {
    uint64_t reserved_bytes, before_growth_bytes;
    bool grew; // the event before gave memory
};

static void raise(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

// An out-of-memory carries what the device had free: if that was enough, a limit refused.
static void note_request(struct group_bounds *b, const struct tally *t, const struct event *event,
                         const struct allocator_options *o)
{
    uint64_t segment = options_segment_bytes(o, options_round(o, event->bytes));
    if (event->kind == EVENT_ALLOC && t->grew)
        raise(&b->asked_bytes, sat_add(t->before_growth_bytes, segment));
    if (event->kind == EVENT_OOM && event->address) {
        raise(&b->reserved_bytes, sat_add(t->reserved_bytes, event->address));
        bool by_limit = u64_align_up(segment, o->large_segment_bytes) <= event->address;
        b->maybe_limited = by_limit || (b->told && b->maybe_limited);
        b->told = true;
    }
}

static void note_driver(struct tally *t, const struct event *event)
{
    bool grows = !event_returns_memory(event);
    if (grows && !t->grew)
        t->before_growth_bytes = t->reserved_bytes;
    if (grows)
        t->reserved_bytes = sat_add(t->reserved_bytes, event->bytes);
    else
        t->reserved_bytes -= t->reserved_bytes < event->bytes ? t->reserved_bytes : event->bytes;
    t->grew = grows;
}

// A limit is held against the segment asked for, which is less than the pages mapped for it.
static void note_reserved(struct group_bounds *b, const struct tally *t,
                          const struct allocator_options *o)
{
    raise(&b->reserved_bytes, t->reserved_bytes);
    if (!o->expandable)
        raise(&b->asked_bytes, t->reserved_bytes);
}

struct group_bounds group_bounds_of(const struct trace *t, const struct allocator_options *o)
{
    struct group_bounds bounds = {.maybe_limited = true};
    struct tally tally = {0};
    for (ptrdiff_t i = 0; i < t->start_count; i++)
        tally.reserved_bytes = sat_add(tally.reserved_bytes, t->start[i].bytes);
    note_reserved(&bounds, &tally, o);
    for (ptrdiff_t i = 0; i < t->count; i++) {
        if (event_is_driver(t->events[i].kind)) {
            note_driver(&tally, &t->events[i]);
            note_reserved(&bounds, &tally, o);
            continue;
        }
        bounds.defers = bounds.defers || is_late(t, i);
        if (is_request(&t->events[i]))
            note_request(&bounds, &tally, &t->events[i], o);
        tally.grew = false;
    }
    return bounds;
}

static struct request request_of(const struct event *event)
{
    return (struct request){.bytes = event->bytes, .stream = event->stream};
}

// Whether this request could have been refused, by what is known of device and limit.
static bool could_fail(const struct group_reader *g, const struct event *event)
{
    const struct allocator *a = g->allocator;
    const struct allocator_options *o = &a->options;
    uint64_t segment = options_segment_bytes(o, options_round(o, event->bytes));
    uint64_t reserved = a->stats.reserved_bytes.current;
    uint64_t growth = allocator_growth(a, request_of(event));
    if (o->limited && reserved + segment > o->limit_bytes)
        return true;
    if (o->device_bytes)
        return growth > driver_free_bytes(&a->driver);
    if (o->limited)
        return false;
    // Pages that are there already are given without asking.
    return growth && (reserved + growth > g->bounds.reserved_bytes ||
                      (g->bounds.maybe_limited && reserved + segment > g->bounds.asked_bytes));
}

// ------------------------------------------------------------------ where groups begin and end

static ptrdiff_t end_of_late(const struct group_reader *g, ptrdiff_t i)
{
    while (i < g->end && is_late(g->trace, i))
        i++;
    return i;
}

// Whether memory is returned, or all is lost, at this event: completions before it may be a
// flush's.
static bool may_flush(const struct group_reader *g, ptrdiff_t i)
{
    return i < g->end &&
           (event_returns_memory(&g->trace->events[i]) || g->trace->events[i].kind == EVENT_OOM);
}

// The first completion may come right after its own request, where frees wait for other streams:
// then the flush may have completed it.
bool group_starts(struct group_reader *g, ptrdiff_t i)
{
    uint8_t kind = g->trace->events[i].kind;
    if (kind != EVENT_FREE_COMPLETED || i < g->plain_until)
        return event_is_driver(kind);
    ptrdiff_t end = end_of_late(g, i + 1);
    if (may_flush(g, end) && (g->bounds.defers || is_late(g->trace, i)))
        return true;
    g->plain_until = end;
    return false;
}

static ptrdiff_t end_of_group(const struct group_reader *g, ptrdiff_t i)
{
    for (;;) {
        ptrdiff_t late = end_of_late(g, i);
        i = may_flush(g, late) ? late : i;
        if (i == g->end || !event_is_driver(g->trace->events[i].kind))
            return i;
        i++;
    }
}

struct group group_at(const struct group_reader *g, ptrdiff_t from)
{
    const struct event *events = g->trace->events;
    struct group group = {.from = from, .returns = from};
    if (events[from].kind == EVENT_FREE_COMPLETED)
        group.returns = end_of_late(g, from + 1);
    group.end = end_of_group(g, group.returns);
    group.middle = group.returns;
    while (group.middle < group.end &&
           (event_returns_memory(&events[group.middle]) || is_late(g->trace, group.middle)))
        group.left += is_late(g->trace, group.middle++);
    group.left += group.returns - group.from;
    return group;
}

// ------------------------------------------------------------------ whose returns

// A flush completes every free that is pending.
static bool completes_all(const struct group_reader *g, const struct group *group)
{
    ptrdiff_t pending = 0;
    for (const struct block *b = g->allocator->pending; b; b = b->right)
        if (++pending > group->left)
            return false;
    return true;
}

// Whether all that a flush would return now is returned, in a flush's order.
static bool returns_all(const struct group_reader *g, const struct group *group)
{
    const struct event *events = g->trace->events;
    if (!completes_all(g, group))
        return false;
    ptrdiff_t i = group->returns;
    const struct block *b = allocator_next_whole(g->allocator, NULL);
    for (; b; b = allocator_next_whole(g->allocator, b)) {
        while (i < group->middle && events[i].address != b->address)
            i++;
        if (i++ >= group->middle)
            return false;
    }
    return true;
}

// The block returned first where the request is refused and max_split_size lets it return
// oversize blocks before all else; NULL without such.
static const struct block *first_oversize(const struct group_reader *g, const struct group *group)
{
    if (group->end == g->end || !is_request(&g->trace->events[group->end]))
        return NULL;
    return allocator_first_oversize(g->allocator, request_of(&g->trace->events[group->end]));
}

bool group_leaves_to_flush(const struct group_reader *g, const struct group *group,
                           const struct block *b)
{
    if (group->end == g->end || !is_request(&g->trace->events[group->end]))
        return false;
    if (allocator_would_serve(g->allocator, b, request_of(&g->trace->events[group->end])))
        return true;
    // As a whole oversize block it would have been the first to be returned.
    return allocator_makes_oversize(g->allocator, b, request_of(&g->trace->events[group->end])) &&
           group->returns < group->middle &&
           g->trace->events[group->returns].address != b->segment->address && returns_all(g, group);
}

// A flush returns the large pool before the small one, then by stream, size and address.
static bool comes_before(const struct group_reader *g, const struct event *a, const struct event *b)
{
    bool small = a->bytes == SMALL_SEGMENT_BYTES, other = b->bytes == SMALL_SEGMENT_BYTES;
    uint64_t x = g->trace->streams[a->stream], y = g->trace->streams[b->stream];
    if (small != other)
        return other;
    if (x != y)
        return x < y;
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
}

static ptrdiff_t count_whole(const struct allocator *a)
{
    ptrdiff_t count = 0;
    for (const struct block *b = allocator_next_whole(a, NULL); b; b = allocator_next_whole(a, b))
        count++;
    return count;
}

// Garbage collection is for requests that find no room, once its share of the limit is reserved.
static bool could_collect(const struct group_reader *g, const struct group *group)
{
    const struct allocator *a = g->allocator;
    uint64_t limit = a->options.limited ? a->options.limit_bytes : g->bounds.asked_bytes;
    double threshold = a->options.gc_threshold * (double)limit;
    return a->options.gc_threshold > 0 && (double)a->stats.reserved_bytes.current > threshold &&
           group->returns < group->middle && group->end < g->end &&
           is_request(&g->trace->events[group->end]) &&
           !allocator_has_room(a, request_of(&g->trace->events[group->end]));
}

static bool is_large_free(const struct event *event)
{
    return event->kind == EVENT_SEGMENT_FREE && event->bytes != SMALL_SEGMENT_BYTES;
}

// Garbage collection returns some whole segments of the large pool, a flush all there are. Where
// both did, the flush begins with its completions, with the small pool or where its order starts
// anew.
ptrdiff_t group_collected(const struct group_reader *g, const struct group *group)
{
    const struct event *events = g->trace->events;
    ptrdiff_t i = group->returns, flush = group->returns;
    if (!could_collect(g, group))
        return i;
    for (; i < group->middle && is_large_free(&events[i]); i++)
        if (i > group->returns && comes_before(g, &events[i], &events[i - 1]))
            flush = i;
    if (i == group->middle && group->left == 0 && events[group->end].kind == EVENT_ALLOC)
        flush = i;
    bool all = group->middle - group->returns == count_whole(g->allocator) + group->left;
    return all || returns_all(g, group) ? flush : i;
}

bool group_is_empty_cache(const struct group_reader *g, const struct group *group)
{
    const struct event *event = &g->trace->events[group->end];
    if (group->end == g->end || !is_request(event))
        return true;
    if (event->kind == EVENT_OOM || !completes_all(g, group))
        return false;
    if (event_returns_memory(&event[-1]) && !g->allocator->options.expandable)
        return true; // a retry would have been given memory
    if (allocator_has_room(g->allocator, request_of(event)) || !could_fail(g, event))
        return true;
    const struct block *first = first_oversize(g, group);
    return first && first->address != g->trace->events[group->returns].address;
}
