// Event by event comparison: kind, size, stream and address must all agree, in order.
#include "core/trace/tape.h"

#include <stddef.h>

static const struct event nothing = {.kind = EVENT_KINDS, .block = EVENT_NO_BLOCK};

static void mismatch(struct tape *t, struct event wanted, struct event got)
{
    if (!t->first.found)
        t->first = (struct tape_mismatch){true, t->next, wanted, got};
}

// Frees that a flush completed lie among the driver's events.
static void skip_frees(struct tape *t)
{
    while (t->next < t->end && !event_is_driver(t->events[t->next].kind))
        t->next++;
}

void tape_window(struct tape *t, ptrdiff_t from, ptrdiff_t to, bool ends_in_oom)
{
    if (t->next < t->end)
        mismatch(t, t->events[t->next], nothing);
    t->next = from;
    t->end = to;
    t->collected = from;
    t->ends_in_oom = ends_in_oom;
    t->free_bytes = 0;
    skip_frees(t);
}

enum tape_answer tape_ask(const struct tape *t, enum event_kind kind, uint64_t *address)
{
    if (t->next == t->end)
        return t->ends_in_oom ? TAPE_REFUSES : TAPE_SILENT;
    const struct event *event = &t->events[t->next];
    if (event->kind == EVENT_SEGMENT_FREE || event->kind == EVENT_SEGMENT_UNMAP)
        return TAPE_REFUSES;
    if (event->kind != kind)
        return TAPE_SILENT;
    *address = event->address;
    return TAPE_GIVES;
}

bool tape_find_map(const struct tape *t, uint64_t *address)
{
    for (ptrdiff_t i = t->next; i < t->end; i++)
        if (t->events[i].kind == EVENT_SEGMENT_MAP) {
            *address = t->events[i].address;
            return true;
        }
    return false;
}

const struct event *tape_collected(const struct tape *t)
{
    return t->next < t->collected && t->next < t->end ? &t->events[t->next] : NULL;
}

static bool same(const struct event *a, const struct event *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->stream == b->stream &&
           a->address == b->address;
}

void tape_produced(struct tape *t, struct event got)
{
    t->produced++;
    if (t->next == t->end) {
        mismatch(t, nothing, got);
        return;
    }
    if (same(&t->events[t->next], &got))
        t->matched++;
    else
        mismatch(t, t->events[t->next], got);
    t->next++;
    skip_frees(t);
}
