// What the recordings show, and this file does:
//  - address space is taken from the system in multiples of 32 MiB, aligned to 32 MiB, at the top
//  of
//    the highest hole that is large enough: newer segments lie below older ones until a hole opens;
//  - the rest of a chunk is used, upwards from its lowest free byte, by later allocations that fit,
//    the newest chunk being asked first (2 MiB segments fill the tails of large ones this way);
//  - a chunk whose last allocation is freed goes back and becomes a hole.
// Not modelled: chunks the driver and libraries took for themselves, into which some of the first
// allocations of a process fall. The newest chunk that fits is found in a tree over their ages.
#include "core/allocator/address.h"

#include <string.h>

#include "core/base/num.h"
#include "core/base/units.h"

enum { FIRST_SLOTS = 64 };

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
        return ROOM(s->arena, struct span, 1);
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

static uint64_t largest_gap(const struct chunk *c)
{
    uint64_t from = c->address, largest = 0;
    for (const struct span *span = c->spans; span; span = span->next) {
        largest = span->address - from > largest ? span->address - from : largest;
        from = span->address + span->bytes;
    }
    uint64_t last = c->address + c->bytes - from;
    return last > largest ? last : largest;
}

// ------------------------------------------------------------------ by age

static void set_gap(struct address_space *s, ptrdiff_t slot, uint64_t bytes)
{
    ptrdiff_t i = s->slots + slot;
    if (s->gaps[i] == bytes) // as of most new chunks, which are filled at once
        return;
    s->gaps[i] = bytes;
    for (i /= 2; i > 0; i /= 2) {
        uint64_t left = s->gaps[2 * i], right = s->gaps[2 * i + 1];
        s->gaps[i] = left > right ? left : right;
    }
}

static struct chunk *newest_with(const struct address_space *s, uint64_t bytes)
{
    if (!s->slots || s->gaps[1] < bytes)
        return NULL;
    ptrdiff_t i = 1;
    while (i < s->slots)
        i = s->gaps[2 * i + 1] >= bytes ? 2 * i + 1 : 2 * i;
    return s->by_age[i - s->slots];
}

// Closes the gaps that chunks left, and makes room where few are left.
static void renumber(struct address_space *s)
{
    ptrdiff_t live = 0, old = s->slots;
    struct chunk **from = s->by_age;
    for (ptrdiff_t i = 0; i < old; i++)
        live += from[i] != NULL;
    if (2 * live >= old) {
        s->slots = old ? 2 * old : FIRST_SLOTS;
        s->by_age = ROOM(s->arena, struct chunk *, s->slots);
        s->gaps = ROOM(s->arena, uint64_t, 2 * s->slots);
    }
    s->next_slot = 0;
    for (ptrdiff_t i = 0; i < old; i++)
        if (from[i]) {
            from[i]->slot = s->next_slot;
            s->by_age[s->next_slot++] = from[i];
        }
    for (ptrdiff_t i = s->next_slot; i < s->slots; i++)
        s->by_age[i] = NULL;
    memset(s->gaps, 0, (size_t)(2 * s->slots) * sizeof *s->gaps);
    for (ptrdiff_t i = 0; i < s->next_slot; i++)
        s->gaps[s->slots + i] = largest_gap(s->by_age[i]);
    for (ptrdiff_t i = s->slots - 1; i > 0; i--) {
        uint64_t left = s->gaps[2 * i], right = s->gaps[2 * i + 1];
        s->gaps[i] = left > right ? left : right;
    }
}

static uint64_t place(struct address_space *s, struct chunk *c, uint64_t bytes)
{
    uint64_t address;
    struct span **link = first_fit(c, bytes, &address);
    ASSERT(link); // its largest gap is large enough
    struct span *span = new_span(s);
    *span = (struct span){.next = *link, .address = address, .bytes = bytes};
    *link = span;
    set_gap(s, c->slot, largest_gap(c));
    return address;
}

// ------------------------------------------------------------------ by address

// The nearest chunk above that has a hole. Looks both ways, for a flush opens one hole next to
// another, from the lowest upwards.
static struct chunk *hole_above(const struct address_space *s, const struct chunk *c)
{
    struct chunk *up = c->above, *down = c->below;
    while (up && !up->hole_bytes) {
        if (!down)
            return s->lowest_hole;
        if (down->hole_bytes)
            return down->previous_hole;
        up = up->above;
        down = down->below;
    }
    return up;
}

static void add_hole(struct address_space *s, struct chunk *c)
{
    c->previous_hole = hole_above(s, c);
    c->next_hole = c->previous_hole ? c->previous_hole->next_hole : s->highest_hole;
    *(c->previous_hole ? &c->previous_hole->next_hole : &s->highest_hole) = c;
    *(c->next_hole ? &c->next_hole->previous_hole : &s->lowest_hole) = c;
}

static void remove_hole(struct address_space *s, const struct chunk *c)
{
    *(c->previous_hole ? &c->previous_hole->next_hole : &s->highest_hole) = c->next_hole;
    *(c->next_hole ? &c->next_hole->previous_hole : &s->lowest_hole) = c->previous_hole;
}

// Between `below` and the chunk above it, at the top.
static struct chunk *insert_above(struct address_space *s, struct chunk *below, uint64_t bytes)
{
    struct chunk *c = s->spare_chunks;
    if (c)
        s->spare_chunks = c->next_hole;
    else
        c = ROOM(s->arena, struct chunk, 1);
    struct chunk *above = below ? below->above : s->lowest;
    uint64_t ceiling = above ? above->address : SPACE_CEILING;
    ASSERT(ceiling > bytes);
    *c = (struct chunk){.below = below, .above = above, .address = ceiling - bytes, .bytes = bytes};
    *(above ? &above->below : &s->highest) = c;
    *(below ? &below->above : &s->lowest) = c;
    return c;
}

static struct chunk *new_chunk(struct address_space *s, uint64_t bytes)
{
    struct chunk *below = s->highest_hole;
    while (below && below->hole_bytes < bytes)
        below = below->next_hole;
    if (below) {
        below->hole_bytes -= bytes;
        if (!below->hole_bytes)
            remove_hole(s, below);
    }
    struct chunk *c = insert_above(s, below, bytes);
    if (s->next_slot == s->slots)
        renumber(s);
    c->slot = s->next_slot++;
    s->by_age[c->slot] = c;
    return c;
}

// Where a chunk is said to be. Apart: its number from the top, turned by an odd factor, in the
// upper bits, so that each has its own.
static uint64_t shown(const struct address_space *s, const struct chunk *c)
{
    enum { CHUNK_BITS = 25, NUMBER_BITS = 22 };
    uint64_t from_top = SPACE_CEILING - c->address - c->bytes;
    if (s->placing == PLACED_BELOW)
        return c->address;
    if (s->placing == PLACED_ABOVE)
        return from_top;
    uint64_t number = (from_top >> CHUNK_BITS) * UINT64_C(0x9E3779B1);
    return (number & ((UINT64_C(1) << NUMBER_BITS) - 1)) << (64 - NUMBER_BITS);
}

uint64_t address_take(struct address_space *s, uint64_t bytes, struct chunk **chunk)
{
    *chunk = newest_with(s, bytes);
    if (!*chunk)
        *chunk = new_chunk(s, u64_align_up(bytes, CHUNK_BYTES));
    return place(s, *chunk, bytes) - (*chunk)->address + shown(s, *chunk);
}

// The space goes to the hole above the chunk below; what is below the lowest is no hole.
static void drop_chunk(struct address_space *s, struct chunk *c)
{
    struct chunk *below = c->below;
    if (below && !below->hole_bytes)
        add_hole(s, below);
    if (below)
        below->hole_bytes += c->bytes + c->hole_bytes;
    if (c->hole_bytes)
        remove_hole(s, c);
    *(c->above ? &c->above->below : &s->highest) = below;
    *(below ? &below->above : &s->lowest) = c->above;
    s->by_age[c->slot] = NULL;
    set_gap(s, c->slot, 0);
    c->next_hole = s->spare_chunks;
    s->spare_chunks = c;
}

void address_give(struct address_space *s, struct chunk *chunk, uint64_t address)
{
    struct span **link = &chunk->spans;
    uint64_t own = address - shown(s, chunk) + chunk->address;
    while (*link && (*link)->address != own)
        link = &(*link)->next;
    ASSERT(*link);
    struct span *span = *link;
    *link = span->next;
    span->next = s->spare_spans;
    s->spare_spans = span;
    if (chunk->spans)
        set_gap(s, chunk->slot, largest_gap(chunk));
    else
        drop_chunk(s, chunk);
}
