// What the recordings show, and this file does:
//  - address space is taken from the system in multiples of 32 MiB, aligned to 32 MiB, at the top
//  of
//    the highest hole that is large enough: newer segments lie below older ones until a hole opens;
//  - the rest of a chunk is used, upwards from its lowest free byte, by later allocations that fit,
//    the newest chunk being asked first (2 MiB segments fill the tails of large ones this way);
//  - a chunk whose last allocation is freed goes back and becomes a hole.
// Not modelled: chunks the driver and libraries took for themselves, into which some of the first
// allocations of a process fall.
#include "core/allocator/address.h"

#include <stddef.h>

#include "core/base/num.h"
#include "core/base/units.h"

#define CHUNK_BYTES   (32 * MIB)
#define SPACE_CEILING (UINT64_C(1) << 56)

struct address_space address_space_in(struct arena *a)
{
    return (struct address_space){.arena = a};
}

static struct span *new_span(struct address_space *s)
{
    struct span *span = s->spare_spans;
    if (!span)
        return NEW(s->arena, struct span, 1);
    s->spare_spans = span->next;
    return span;
}

// The lowest free stretch of the chunk that is large enough, as the link a span would go to.
static struct span **first_fit(struct chunk *c, uint64_t bytes, uint64_t *address)
{
    struct span **link = &c->spans;
    uint64_t from = c->address;
    for (; *link; link = &(*link)->next) {
        if ((*link)->address - from >= bytes)
            break;
        from = (*link)->address + (*link)->bytes;
    }
    *address = from;
    return *link || c->address + c->bytes - from >= bytes ? link : NULL;
}

static bool place(struct address_space *s, struct chunk *c, uint64_t bytes, uint64_t *address)
{
    struct span **link = first_fit(c, bytes, address);
    if (!link)
        return false;
    struct span *span = new_span(s);
    *span = (struct span){.next = *link, .address = *address, .bytes = bytes};
    *link = span;
    c->free_bytes -= bytes;
    return true;
}

static struct chunk *new_chunk(struct address_space *s, uint64_t bytes)
{
    struct chunk *above = NULL, *below = s->highest;
    uint64_t ceiling = SPACE_CEILING;
    for (; below && ceiling - (below->address + below->bytes) < bytes; below = below->below) {
        above = below;
        ceiling = below->address;
    }
    ASSERT(ceiling > bytes);
    struct chunk *c = s->spare_chunks;
    if (c)
        s->spare_chunks = c->older;
    else
        c = NEW(s->arena, struct chunk, 1);
    *c = (struct chunk){.below = below,
                        .above = above,
                        .older = s->newest,
                        .address = ceiling - bytes,
                        .bytes = bytes,
                        .free_bytes = bytes};
    *(above ? &above->below : &s->highest) = c;
    if (below)
        below->above = c;
    if (s->newest)
        s->newest->newer = c;
    s->newest = c;
    return c;
}

uint64_t address_take(struct address_space *s, uint64_t bytes, struct chunk **chunk)
{
    uint64_t address;
    for (struct chunk *c = s->newest; c; c = c->older)
        if (c->free_bytes >= bytes && place(s, c, bytes, &address)) {
            *chunk = c;
            return address;
        }
    *chunk = new_chunk(s, u64_align_up(bytes, CHUNK_BYTES));
    bool placed = place(s, *chunk, bytes, &address);
    ASSERT(placed);
    return address;
}

static void drop_chunk(struct address_space *s, struct chunk *c)
{
    *(c->above ? &c->above->below : &s->highest) = c->below;
    if (c->below)
        c->below->above = c->above;
    *(c->newer ? &c->newer->older : &s->newest) = c->older;
    if (c->older)
        c->older->newer = c->newer;
    c->older = s->spare_chunks;
    s->spare_chunks = c;
}

void address_give(struct address_space *s, struct chunk *chunk, uint64_t address)
{
    struct span **link = &chunk->spans;
    while (*link && (*link)->address != address)
        link = &(*link)->next;
    ASSERT(*link);
    struct span *span = *link;
    *link = span->next;
    chunk->free_bytes += span->bytes;
    span->next = s->spare_spans;
    s->spare_spans = span;
    if (!chunk->spans)
        drop_chunk(s, chunk);
}
