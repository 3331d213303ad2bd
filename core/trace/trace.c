// Building histories, the names of their events, and the pass that turns recorded addresses into
// handles.
#include "core/trace/trace.h"

#include <string.h>

#include "core/trace/address_map.h"

_Static_assert(sizeof(struct event) <= 32, "histories hold millions of these");

static const char *const kind_names[EVENT_KINDS] = {
    [EVENT_ALLOC] = "alloc",
    [EVENT_FREE_REQUESTED] = "free_requested",
    [EVENT_FREE_COMPLETED] = "free_completed",
    [EVENT_FREE] = "free",
    [EVENT_SEGMENT_ALLOC] = "segment_alloc",
    [EVENT_SEGMENT_FREE] = "segment_free",
    [EVENT_SEGMENT_MAP] = "segment_map",
    [EVENT_SEGMENT_UNMAP] = "segment_unmap",
    [EVENT_OOM] = "oom",
    [EVENT_SNAPSHOT] = "snapshot",
    [EVENT_EMPTY_CACHE] = "empty_cache",
    [EVENT_RESET_PEAKS] = "reset_peaks",
};

const char *event_kind_name(uint8_t kind)
{
    ASSERT(kind < EVENT_KINDS);
    return kind_names[kind];
}

bool event_kind_find(uint8_t *kind, struct str name)
{
    for (int k = 0; k < EVENT_KINDS; k++)
        if (str_is(name, kind_names[k])) {
            *kind = (uint8_t)k;
            return true;
        }
    return false;
}

struct trace trace_in(struct arena *a)
{
    return (struct trace){.arena = a};
}

struct trace trace_passing(struct arena *a)
{
    return (struct trace){.arena = a, .passes = true};
}

void trace_reserve(struct trace *t, ptrdiff_t more)
{
    if (more <= t->capacity - t->count)
        return;
    ptrdiff_t growth = more > t->capacity ? more : t->capacity;
    ptrdiff_t size = (ptrdiff_t)sizeof(struct event);
    if (!arena_extend(t->arena, t->events, t->capacity * size, growth * size)) {
        struct event *moved = NEW(t->arena, struct event, t->capacity + growth);
        if (t->count)
            memcpy(moved, t->events, (size_t)t->count * sizeof *moved);
        t->events = moved;
    }
    t->capacity += growth;
}

void trace_add(struct trace *t, struct event event)
{
    enum { MORE = 64 };
    if (t->count == t->capacity)
        trace_reserve(t, MORE);
    t->events[t->count++] = event;
}

bool trace_stream(uint16_t *index, struct trace *t, uint64_t number, struct error *e)
{
    for (uint16_t i = 0; i < t->stream_count; i++)
        if (t->streams[i] == number) {
            *index = i;
            return true;
        }
    if (t->stream_count == EVENT_MAX_STREAMS)
        return FAIL(e, UNSUPPORTED, STR_NONE, "the history names more than %d streams",
                    EVENT_MAX_STREAMS);
    if (!t->streams)
        t->streams = NEW(t->arena, uint64_t, EVENT_MAX_STREAMS);
    t->streams[t->stream_count] = number;
    *index = t->stream_count++;
    return true;
}

struct linker {
    struct address_map alive;
    uint32_t *spare; // handles given back, a stack
    ptrdiff_t spare_count;
};

static uint32_t take_handle(struct trace *t, struct linker *l)
{
    return l->spare_count ? l->spare[--l->spare_count] : t->block_count++;
}

static uint32_t lost(struct trace *t)
{
    t->unknown_frees++;
    return EVENT_NO_BLOCK;
}

static uint32_t link_free(struct trace *t, struct linker *l, const struct event *event)
{
    uint32_t handle;
    if (event->kind == EVENT_FREE_REQUESTED)
        return address_map_find(&l->alive, event->address, &handle) ? handle : lost(t);
    if (!address_map_remove(&l->alive, event->address, &handle))
        return lost(t);
    l->spare[l->spare_count++] = handle;
    return handle;
}

static bool link_start_block(struct trace *t, struct linker *l, struct start_block *block,
                             uint64_t address, struct error *e)
{
    block->block = EVENT_NO_BLOCK;
    if (block->state == START_INACTIVE)
        return true;
    block->block = take_handle(t, l);
    if (!address_map_add(&l->alive, address, block->block))
        return FAIL(e, BAD_INPUT, STR_NONE, "two blocks start at address %llx",
                    (unsigned long long)address);
    return true;
}

static bool link_start(struct trace *t, struct linker *l, struct error *e)
{
    for (ptrdiff_t i = 0; i < t->start_count; i++) {
        uint64_t address = t->start[i].address;
        for (ptrdiff_t j = 0; j < t->start[i].block_count; j++) {
            struct start_block *block = &t->start[i].blocks[j];
            if (!link_start_block(t, l, block, address, e))
                return false;
            address += block->bytes;
        }
    }
    return true;
}

static ptrdiff_t count_allocations(const struct trace *t)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < t->count; i++)
        count += t->events[i].kind == EVENT_ALLOC;
    for (ptrdiff_t i = 0; i < t->start_count; i++)
        count += t->start[i].block_count;
    return count;
}

static bool twice(struct trace *t, struct str name, ptrdiff_t i, struct error *e)
{
    return FAIL(e, BAD_INPUT, str_format(t->arena, "%.*s:%td", STR_ARGS(name), i + 1),
                "address %llx is allocated while it is still in use",
                (unsigned long long)t->events[i].address);
}

bool trace_link(struct trace *t, struct str name, struct error *e)
{
    struct arena scratch = *t->arena;
    struct linker l = {.spare = NEW(&scratch, uint32_t, count_allocations(t))};
    l.alive = address_map_in(&scratch);
    t->block_count = 0;
    t->unknown_frees = 0;
    if (!link_start(t, &l, e))
        return false;
    for (ptrdiff_t i = 0; i < t->count; i++) {
        struct event *event = &t->events[i];
        event->block = EVENT_NO_BLOCK;
        if (event->kind == EVENT_ALLOC) {
            event->block = take_handle(t, &l);
            if (!address_map_add(&l.alive, event->address, event->block))
                return twice(t, name, i, e);
        } else if (event->kind <= EVENT_FREE) {
            event->block = link_free(t, &l, event);
        }
    }
    return true;
}
