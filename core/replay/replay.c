// Following a recording, and running a program. A recording shows the driver's events of an
// allocation before the allocation itself, so they are gathered (group.h) and offered to the driver
// model as its answers.
#include "core/replay/replay.h"

#include <stddef.h>

#include "core/base/num.h"
#include "core/replay/group.h"
#include "core/replay/player.h"

struct follower {
    struct player player;
    struct tape tape;
    struct group_reader reader;
    bool mixed; // expandable segments were switched on or off in the middle
};

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

// A request between 1 and 10 MiB that goes to the driver gets exactly one large segment.
static bool shows_large_segment(const struct allocator_options *o, const struct event *driver)
{
    const struct event *alloc = driver + 1;
    uint64_t bytes = options_round(o, alloc->bytes);
    return driver->kind == EVENT_SEGMENT_ALLOC && alloc->kind == EVENT_ALLOC &&
           bytes > SMALL_MAX_BYTES && bytes < LARGE_ALLOC_BYTES;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// What all that was mapped for large requests is made of, and what was mapped before; 0 where
// nothing was.
static uint64_t common_page(const struct allocator_options *o, const struct trace *t)
{
    uint64_t page = 0;
    for (ptrdiff_t i = 0; i < t->start_count; i++)
        if (t->start[i].expandable && !t->start[i].small)
            page = common_divisor(page, t->start[i].bytes);
    bool large = false;
    for (ptrdiff_t i = t->count - 1; i >= 0; i--) {
        const struct event *event = &t->events[i];
        if (event->kind == EVENT_ALLOC || event->kind == EVENT_OOM)
            large = options_round(o, event->bytes) > SMALL_MAX_BYTES;
        if (event->kind == EVENT_SEGMENT_MAP && large)
            page = common_divisor(page, event->bytes);
    }
    return page;
}

void replay_infer_large_segment(struct allocator_options *o, const struct trace *t)
{
    uint64_t bytes = common_page(o, t);
    for (ptrdiff_t i = 0; !bytes && i + 1 < t->count; i++)
        if (shows_large_segment(o, &t->events[i]))
            bytes = t->events[i].bytes;
    // Whole numbers of the pages that are known already say nothing against these.
    bool pages = has_kind(t, EVENT_SEGMENT_MAP) || starts_expandable(t);
    if (!torch_has(o->torch_minor, TORCH_LARGE_SEGMENT_OPTION) || bytes <= LARGE_ALLOC_BYTES ||
        bytes % MIB || (pages && bytes % o->large_segment_bytes == 0))
        return;
    if (o->max_non_split_rounding_bytes == o->large_segment_bytes)
        o->max_non_split_rounding_bytes = bytes;
    o->large_segment_bytes = bytes;
}

void replay_infer(struct allocator_options *o, const struct trace *t)
{
    o->expandable = has_kind(t, EVENT_SEGMENT_MAP) || has_kind(t, EVENT_SEGMENT_UNMAP) ||
                    (starts_expandable(t) && !has_kind(t, EVENT_SEGMENT_ALLOC));
    replay_infer_large_segment(o, t);
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

// Completions before the search are made now. Blocks whose frees the flush is to complete lose
// their handles now: the next allocation may get one.
static void open_completions(struct follower *f, struct group *group)
{
    struct player *p = &f->player;
    bool left = false;
    for (ptrdiff_t i = group->from; i < group->end; i++) {
        const struct event *event = &p->trace->events[i];
        if (event->kind != EVENT_FREE_COMPLETED || event->block == EVENT_NO_BLOCK)
            continue;
        struct block *b = p->blocks[event->block];
        left = left || i >= group->returns || !b || group_leaves_to_flush(&f->reader, group, b);
        if (left) {
            p->blocks[event->block] = NULL;
        } else {
            player_step(p, i);
            group->left--;
        }
    }
}

// Makes ready for the event the group belongs to, whose index is returned.
static ptrdiff_t open_group(struct follower *f, ptrdiff_t from)
{
    struct player *p = &f->player;
    struct group group = group_at(&f->reader, from);
    set_mode(f, from, group.end);
    open_completions(f, &group);
    ptrdiff_t collected = group_collected(&f->reader, &group);
    from = group.returns;
    if (collected == from && group.middle > from && group_is_empty_cache(&f->reader, &group)) {
        tape_window(&f->tape, from, group.middle, false);
        allocator_flush(p->allocator, FLUSH_EMPTY_CACHE);
        p->result->flush_events[p->result->flushes++] = group.end;
        from = group.middle;
    }
    bool oom = group.end < f->reader.end && p->trace->events[group.end].kind == EVENT_OOM;
    tape_window(&f->tape, from, group.end, oom);
    f->tape.collected = collected;
    return group.end;
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

// A recorded out-of-memory: the request is made again and must fail.
static void follow_oom(struct follower *f, ptrdiff_t index)
{
    const struct event *event = &f->player.trace->events[index];
    f->tape.ends_in_oom = true;
    f->tape.free_bytes = event->address;
    struct block *b = allocator_alloc(
        f->player.allocator,
        (struct request){.bytes = event->bytes, .handle = EVENT_NO_BLOCK, .stream = event->stream});
    if (b)
        allocator_free(f->player.allocator, b);
    else
        player_note_oom(&f->player, index);
    player_note(&f->player, index);
    tape_window(&f->tape, index, index, false);
}

static void follow(struct follower *f)
{
    struct player *p = &f->player;
    ptrdiff_t end = f->reader.end;
    for (ptrdiff_t i = 0; i < end; i++) {
        bool grouped = group_starts(&f->reader, i);
        if (grouped)
            i = open_group(f, i);
        if (i == end)
            break;
        if (p->trace->events[i].kind == EVENT_OOM)
            follow_oom(f, i);
        else if (!player_step(p, i))
            player_note_oom(p, i);
        if (grouped)
            complete_orphans(p);
    }
    tape_window(&f->tape, end, end, false);
}

// To the end, or until memory runs out.
static void run(struct player *p, ptrdiff_t end)
{
    struct replay_result *r = p->result;
    for (ptrdiff_t i = 0; i < end; i++) {
        if (!player_step(p, i)) {
            player_note_oom(p, i);
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
        flushes += event_returns_memory(&t->events[i]) || t->events[i].kind == EVENT_EMPTY_CACHE;
    }
    return flushes;
}

static void run_following(struct follower *f, const struct replay_request *q)
{
    struct replay_result *made = f->player.result;
    f->tape.events = q->trace->events;
    f->player.allocator->driver.tape = &f->tape;
    f->reader = (struct group_reader){.trace = q->trace,
                                      .allocator = f->player.allocator,
                                      .bounds = group_bounds_of(q->trace, &q->options),
                                      .end = made->events};
    f->mixed = has_kind(q->trace, EVENT_SEGMENT_MAP) && has_kind(q->trace, EVENT_SEGMENT_ALLOC);
    follow(f);
    f->player.allocator->driver.tape = NULL;
    made->segment_events_matched = f->tape.matched;
    made->segment_events_extra = f->tape.produced - f->tape.matched;
    made->first_mismatch = f->tape.first;
}

bool replay_run(struct replay_result *r, struct arena *a, const struct replay_request *q,
                struct error *e)
{
    struct replay_result made = {.events = q->trace->count, .oom_event = -1};
    struct follower f = {.player.result = &made};
    if (q->stop_after && q->stop_after < q->trace->count)
        made.events = q->stop_after;
    made.unknown_frees = q->trace->unknown_frees;
    ptrdiff_t flushes = count_possible_flushes(q->trace, &made.segment_events);
    made.flush_events = NEW(a, ptrdiff_t, flushes);
    if (!player_start(&f.player, a, q, e))
        return false;
    player_note(&f.player, 0);
    if (q->follow)
        run_following(&f, q);
    else
        run(&f.player, made.events);
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
            event.address = 0;
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
