// See driver.h. cudaMalloc needs contiguous addresses, not contiguous memory, so that enough free
// pages are the only condition.
#include "core/allocator/driver.h"

#include "core/allocator/options.h"
#include "core/base/num.h"

static void emit(struct driver *d, enum event_kind kind, struct event event)
{
    if (!d->tape && !d->log)
        return;
    event.kind = (uint8_t)kind;
    event.block = EVENT_NO_BLOCK;
    if (d->tape)
        tape_produced(d->tape, event);
    if (d->log)
        trace_add(d->log, event);
}

uint64_t driver_bytes(const struct segment *s, uint64_t bytes)
{
    if (!s->expandable)
        return u64_align_up(bytes, DRIVER_PAGE_BYTES);
    return bytes / s->page_bytes * u64_align_up(s->page_bytes, DRIVER_PAGE_BYTES);
}

static bool take_pages(struct driver *d, const struct segment *s, uint64_t bytes)
{
    uint64_t taken = driver_bytes(s, bytes);
    if (taken > d->capacity_bytes - d->used_bytes)
        return false;
    d->used_bytes += taken;
    return true;
}

// The address is the recording's where it has one.
static enum tape_answer ask(const struct driver *d, enum event_kind kind, uint64_t *address)
{
    return d->tape ? tape_ask(d->tape, kind, address) : TAPE_SILENT;
}

bool driver_malloc(struct driver *d, struct segment *s)
{
    enum tape_answer answer = ask(d, EVENT_SEGMENT_ALLOC, &s->address);
    if (answer == TAPE_REFUSES || !take_pages(d, s, s->bytes))
        return false;
    s->chunk = NULL;
    if (answer == TAPE_SILENT)
        s->address = address_take(&d->addresses, s->bytes, &s->chunk);
    emit(d, EVENT_SEGMENT_ALLOC,
         (struct event){.address = s->address, .bytes = s->bytes, .stream = s->stream});
    return true;
}

void driver_free(struct driver *d, struct segment *s)
{
    d->used_bytes -= driver_bytes(s, s->bytes);
    driver_unreserve(d, s);
    emit(d, EVENT_SEGMENT_FREE,
         (struct event){.address = s->address, .bytes = s->bytes, .stream = s->stream});
}

void driver_reserve(struct driver *d, struct segment *s)
{
    s->chunk = NULL;
    if (!d->tape || !tape_find_map(d->tape, &s->address))
        s->address = address_take(&d->addresses, s->bytes, &s->chunk);
}

void driver_unreserve(struct driver *d, struct segment *s)
{
    if (s->chunk)
        address_give(&d->addresses, s->chunk, s->address);
    s->chunk = NULL;
}

bool driver_map(struct driver *d, const struct segment *s, uint64_t address, uint64_t bytes)
{
    uint64_t recorded;
    if (ask(d, EVENT_SEGMENT_MAP, &recorded) == TAPE_REFUSES || !take_pages(d, s, bytes))
        return false;
    emit(d, EVENT_SEGMENT_MAP,
         (struct event){.address = address, .bytes = bytes, .stream = s->stream});
    return true;
}

void driver_unmap(struct driver *d, const struct segment *s, uint64_t address, uint64_t bytes)
{
    d->used_bytes -= driver_bytes(s, bytes);
    emit(d, EVENT_SEGMENT_UNMAP,
         (struct event){.address = address, .bytes = bytes, .stream = s->stream});
}

uint64_t driver_free_bytes(const struct driver *d)
{
    return d->capacity_bytes - d->used_bytes;
}
