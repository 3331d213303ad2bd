// Following a recording, and running a program. A recording shows the driver's events of an
// allocation before the allocation itself, so they are gathered and offered to the driver model as
// its answers. Memory returned to the driver before an allocation has two readings: torch was
// refused and flushed its cache, or the program called empty_cache. It was empty_cache where the
// cache could have served the request, or where the recording shows, at another time, more memory
// reserved than this request would have needed; the two leave the same state behind. Frees that
// complete right before memory is returned were completed by the flush, after the search: they are
// left to it.
#include "core/replay/replay.h"

#include <stddef.h>

#include "core/base/num.h"
#include "core/replay/player.h"

struct follower {
    struct player player;
    struct tape tape;
    uint64_t most_reserved; // in the whole recording: what the driver certainly had
    bool mixed;             // expandable segments were switched on or off in the middle
    ptrdiff_t end;
    ptrdiff_t plain_until; // completions before this are known not to be a flush's
};

static bool returns_memory(const struct event *event)
{
    return event->kind == EVENT_SEGMENT_FREE || event->kind == EVENT_SEGMENT_UNMAP;
}

static bool has_kind(const struct trace *t, enum event_kind kind)
{
    for (ptrdiff_t i = 0; i < t->count; i++)
        if (t->events[i].kind == kind)
            return true;
    return false;
}

static bool starts_expandable(const struct trace *t)
{
    for (ptrdiff_t i = 0; i < t->start_count; i++)
        if (t->start[i].expandable)
            return true;
    return false;
}

// A request between 1 and 10 MiB that goes to the driver gets exactly one large segment or page.
static bool shows_large_segment(const struct allocator_options *o, const struct event *driver,
                                const struct event *alloc)
{
    bool gives = driver->kind == EVENT_SEGMENT_ALLOC || driver->kind == EVENT_SEGMENT_MAP;
    uint64_t bytes = options_round(o, alloc->bytes);
    return gives && alloc->kind == EVENT_ALLOC && bytes > SMALL_MAX_BYTES &&
           bytes < LARGE_ALLOC_BYTES && driver->bytes > LARGE_ALLOC_BYTES &&
           driver->bytes % MIB == 0;
}

void replay_infer(struct allocator_options *o, const struct trace *t)
{
    o->expandable = has_kind(t, EVENT_SEGMENT_MAP) || has_kind(t, EVENT_SEGMENT_UNMAP) ||
                    (starts_expandable(t) && !has_kind(t, EVENT_SEGMENT_ALLOC));
    if (!torch_has(o->torch_minor, TORCH_LARGE_SEGMENT_OPTION))
        return;
    for (ptrdiff_t i = 0; i + 1 < t->count; i++)
        if (shows_large_segment(o, &t->events[i], &t->events[i + 1])) {
            o->large_segment_bytes = t->events[i].bytes;
            return;
        }
}

static uint64_t most_reserved(const struct trace *t)
{
    uint64_t reserved = 0, most = 0;
    for (ptrdiff_t i = 0; i < t->start_count; i++)
        reserved = most = sat_add(reserved, t->start[i].bytes);
    for (ptrdiff_t i = 0; i < t->count; i++) {
        const struct event *event = &t->events[i];
        if (!event_is_driver(event->kind))
            continue;
        if (!returns_memory(event))
            reserved = sat_add(reserved, event->bytes);
        else
            reserved = reserved > event->bytes ? reserved - event->bytes : 0;
        most = reserved > most ? reserved : most;
    }
    return most;
}

static uint64_t need_of(const struct allocator_options *o, uint64_t rounded)
{
    uint64_t segment = options_segment_bytes(o, rounded);
    uint64_t pages = rounded > SMALL_MAX_BYTES ? u64_align_up(rounded, o->large_segment_bytes) : 0;
    return o->expandable && pages > segment ? pages : segment;
}

// Whether this request could have been refused, by what is known of device and limit.
static bool could_fail(const struct follower *f, uint64_t bytes)
{
    const struct allocator *a = f->player.allocator;
    const struct allocator_options *o = &a->options;
    uint64_t rounded = options_round(o, bytes);
    uint64_t reserved = a->stats.reserved_bytes.current;
    if (o->limited && reserved + options_segment_bytes(o, rounded) > o->limit_bytes)
        return true;
    if (o->device_bytes)
        return need_of(o, rounded) > driver_free_bytes(&a->driver);
    return !o->limited && reserved + need_of(o, rounded) > f->most_reserved;
}

static bool could_collect(const struct follower *f)
{
    const struct allocator *a = f->player.allocator;
    double threshold = a->options.gc_threshold * (double)a->options.limit_bytes;
    return a->options.limited && a->options.gc_threshold > 0 &&
           (double)a->stats.reserved_bytes.current > threshold;
}

// A free that completes apart from its request: it had waited for another stream.
static bool is_late(const struct follower *f, ptrdiff_t i)
{
    const struct event *event = &f->player.trace->events[i];
    return event->kind == EVENT_FREE_COMPLETED &&
           !(i > 0 && event[-1].kind == EVENT_FREE_REQUESTED && event[-1].block == event->block);
}

static ptrdiff_t end_of_late(const struct follower *f, ptrdiff_t i)
{
    while (i < f->end && is_late(f, i))
        i++;
    return i;
}

// Late completions from `i` on that a flush made: memory is returned, or all is lost, right after.
static ptrdiff_t end_of_flushed(const struct follower *f, ptrdiff_t i)
{
    ptrdiff_t end = end_of_late(f, i);
    if (end == f->end)
        return i;
    const struct event *next = &f->player.trace->events[end];
    return returns_memory(next) || next->kind == EVENT_OOM ? end : i;
}

// The end of the driver's events and of the completions among them.
static ptrdiff_t end_of_group(const struct follower *f, ptrdiff_t i)
{
    for (;;) {
        i = end_of_flushed(f, i);
        if (i == f->end || !event_is_driver(f->player.trace->events[i].kind))
            return i;
        i++;
    }
}

static ptrdiff_t end_of_returns(const struct follower *f, ptrdiff_t i, ptrdiff_t end)
{
    while (i < end && (returns_memory(&f->player.trace->events[i]) || is_late(f, i)))
        i++;
    return i;
}

// Whether the program itself emptied the cache here, with `end` the first event after the group.
static bool is_empty_cache(const struct follower *f, ptrdiff_t end)
{
    const struct event *event = &f->player.trace->events[end];
    if (end == f->end || (event->kind != EVENT_ALLOC && event->kind != EVENT_OOM))
        return true;
    if (event->kind == EVENT_OOM)
        return false;
    if (returns_memory(&event[-1]))
        return true; // a retry would have been given memory
    struct request request = {.bytes = event->bytes, .stream = event->stream};
    return allocator_has_room(f->player.allocator, request) ||
           !(could_fail(f, event->bytes) || could_collect(f));
}

static void set_mode(struct follower *f, ptrdiff_t from, ptrdiff_t end)
{
    bool *expandable = &f->player.allocator->options.expandable;
    for (ptrdiff_t i = from; f->mixed && i < end; i++) {
        if (f->player.trace->events[i].kind == EVENT_SEGMENT_MAP)
            *expandable = true;
        if (f->player.trace->events[i].kind == EVENT_SEGMENT_ALLOC)
            *expandable = false;
    }
}

// The driver's events from `from` up to the event they belong to, whose index is returned. Blocks
// whose frees the flush is to complete lose their handles now: the next allocation may get one.
static ptrdiff_t open_group(struct follower *f, ptrdiff_t from)
{
    struct player *p = &f->player;
    const struct event *events = p->trace->events;
    ptrdiff_t end = end_of_group(f, from);
    set_mode(f, from, end);
    for (ptrdiff_t i = from; i < end; i++)
        if (events[i].kind == EVENT_FREE_COMPLETED && events[i].block != EVENT_NO_BLOCK)
            p->blocks[events[i].block] = NULL;
    ptrdiff_t middle = end_of_returns(f, from, end);
    if (middle > from && is_empty_cache(f, end)) {
        tape_window(&f->tape, from, middle, false);
        allocator_flush(p->allocator, FLUSH_EMPTY_CACHE);
        p->result->flush_events[p->result->flushes++] = end;
        from = middle;
    }
    tape_window(&f->tape, from, end, end < f->end && events[end].kind == EVENT_OOM);
    return end;
}

// Where replay and recording disagree, blocks that lost their handles may still be pending.
static void complete_orphans(struct player *p)
{
    struct block *next;
    for (struct block *b = p->allocator->pending; b; b = next) {
        next = b->right;
        if (p->blocks[b->handle] != b)
            allocator_free_complete(p->allocator, b);
    }
}

static void note_oom(struct player *p, ptrdiff_t index)
{
    if (p->result->ooms++ == 0) {
        p->result->oom = p->allocator->oom;
        p->result->oom_event = index;
    }
}

// A recorded out-of-memory: the request is made again and must fail.
static void follow_oom(struct follower *f, ptrdiff_t index)
{
    const struct event *event = &f->player.trace->events[index];
    f->tape.ends_in_oom = true;
    struct block *b = allocator_alloc(
        f->player.allocator,
        (struct request){.bytes = event->bytes, .handle = EVENT_NO_BLOCK, .stream = event->stream});
    if (b)
        allocator_free(f->player.allocator, b);
    else
        note_oom(&f->player, index);
    player_note(&f->player, index);
    tape_window(&f->tape, index, index, false);
}

static bool starts_group(struct follower *f, ptrdiff_t i)
{
    if (event_is_driver(f->player.trace->events[i].kind))
        return true;
    if (i < f->plain_until || !is_late(f, i))
        return false;
    if (end_of_flushed(f, i) > i)
        return true;
    f->plain_until = end_of_late(f, i);
    return false;
}

static void follow(struct follower *f)
{
    struct player *p = &f->player;
    for (ptrdiff_t i = 0; i < f->end; i++) {
        bool grouped = starts_group(f, i);
        if (grouped)
            i = open_group(f, i);
        if (i == f->end)
            break;
        if (p->trace->events[i].kind == EVENT_OOM)
            follow_oom(f, i);
        else if (!player_step(p, i))
            note_oom(p, i);
        if (grouped)
            complete_orphans(p);
    }
    tape_window(&f->tape, f->end, f->end, false);
}

static void run(struct player *p, ptrdiff_t end)
{
    struct replay_result *r = p->result;
    for (ptrdiff_t i = 0; i < end; i++) {
        if (!player_step(p, i)) {
            note_oom(p, i);
            return;
        }
        if (p->trace->events[i].kind == EVENT_EMPTY_CACHE)
            r->flush_events[r->flushes++] = i;
    }
}

static ptrdiff_t count_possible_flushes(const struct trace *t, ptrdiff_t *segment_events)
{
    ptrdiff_t flushes = 0;
    for (ptrdiff_t i = 0; i < t->count; i++) {
        *segment_events += event_is_driver(t->events[i].kind);
        flushes += returns_memory(&t->events[i]) || t->events[i].kind == EVENT_EMPTY_CACHE;
    }
    return flushes;
}

bool replay_run(struct replay_result *r, struct arena *a, const struct replay_request *q,
                struct error *e)
{
    struct replay_result made = {.events = q->trace->count, .oom_event = -1};
    struct follower f = {.player.result = &made};
    f.end = q->stop_after && q->stop_after < q->trace->count ? q->stop_after : q->trace->count;
    made.events = f.end;
    made.unknown_frees = q->trace->unknown_frees;
    ptrdiff_t flushes = count_possible_flushes(q->trace, &made.segment_events);
    made.flush_events = NEW(a, ptrdiff_t, flushes);
    if (!player_start(&f.player, a, q, e))
        return false;
    player_note(&f.player, 0);
    if (q->follow) {
        f.tape.events = q->trace->events;
        f.player.allocator->driver.tape = &f.tape;
        f.most_reserved = most_reserved(q->trace);
        f.mixed = has_kind(q->trace, EVENT_SEGMENT_MAP) && has_kind(q->trace, EVENT_SEGMENT_ALLOC);
        follow(&f);
        f.player.allocator->driver.tape = NULL;
        made.segment_events_matched = f.tape.matched;
        made.segment_events_extra = f.tape.produced - f.tape.matched;
        made.first_mismatch = f.tape.first;
    } else {
        run(&f.player, f.end);
    }
    made.stats = f.player.allocator->stats;
    made.retries = made.stats.retries;
    made.allocator = f.player.allocator;
    *r = made;
    return true;
}

struct trace replay_program(struct arena *a, const struct trace *recording,
                            const struct replay_result *followed)
{
    struct trace program = *recording;
    program.arena = a;
    program.events = NULL;
    program.count = program.capacity = 0;
    trace_reserve(&program, recording->count + followed->flushes);
    bool has_oom = has_kind(recording, EVENT_OOM);
    ptrdiff_t flush = 0;
    for (ptrdiff_t i = 0; i <= recording->count; i++) {
        for (; flush < followed->flushes && followed->flush_events[flush] == i; flush++)
            trace_add(&program, (struct event){.kind = EVENT_EMPTY_CACHE, .block = EVENT_NO_BLOCK});
        if (i == recording->count || event_is_driver(recording->events[i].kind))
            continue;
        struct event event = recording->events[i];
        if (event.kind == EVENT_OOM) {
            event.block = recording->block_count;
            event.kind = EVENT_ALLOC;
            trace_add(&program, event);
            event.kind = EVENT_FREE;
        }
        trace_add(&program, event);
    }
    program.block_count += has_oom;
    return program;
}

bool replay_other_mode(struct replay_result *r, struct arena *a, const struct replay_request *q,
                       struct error *e)
{
    struct replay_request other = *q;
    other.options.expandable = !q->options.expandable;
    other.follow = false;
    if (!q->follow)
        return replay_run(r, a, &other, e);
    struct replay_result followed;
    struct replay_request plain = *q;
    plain.series = NULL;
    plain.log = NULL;
    if (!replay_run(&followed, a, &plain, e))
        return false;
    struct trace program = replay_program(a, q->trace, &followed);
    other.trace = &program;
    return replay_run(r, a, &other, e);
}
