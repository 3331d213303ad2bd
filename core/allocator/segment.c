// The driver side of the allocator. Classic: one cudaMalloc a segment. Expandable: one reservation
// of address space a pool, into which pages are mapped as it grows and from which whole free pages
// are unmapped when the cache is flushed.
#include <stddef.h>

#include "core/allocator/internal.h"
#include "core/base/num.h"

struct segment *segment_new(struct allocator *a, const struct pool *pool, uint64_t bytes)
{
    struct segment *s = a->spare_segments;
    if (s)
        a->spare_segments = s->next;
    else
        s = ROOM(a->arena, struct segment, 1);
    *s = (struct segment){
        .bytes = bytes, .stream = pool->stream, .small = pool->size == CLASS_SMALL};
    return s;
}

static void recycle(struct allocator *a, struct segment *s)
{
    s->next = a->spare_segments;
    a->spare_segments = s;
}

// Enters the segment in the list, with one block that fills it and has no state yet.
struct block *segment_enter(struct allocator *a, struct segment *s, struct pool *pool)
{
    s->next = a->segments;
    if (s->next)
        s->next->previous = s;
    a->segments = s;
    struct block *b = block_new(a);
    s->first = b;
    b->address = s->address;
    b->bytes = s->bytes;
    b->segment = s;
    b->pool = pool;
    b->previous = b->next = NULL;
    return b;
}

static void leave(struct allocator *a, struct segment *s)
{
    block_recycle(a, s->first);
    *(s->previous ? &s->previous->next : &a->segments) = s->next;
    if (s->next)
        s->next->previous = s->previous;
    recycle(a, s);
}

struct block *segment_allocate(struct allocator *a, const struct search *s)
{
    struct segment *made = segment_new(a, s->pool, s->segment_bytes);
    if (!driver_malloc(&a->driver, made)) {
        recycle(a, made);
        return NULL;
    }
    stat_raise(&a->stats.segments, 1);
    stat_raise(&a->stats.reserved_bytes, made->bytes);
    a->stats.device_allocs++;
    return segment_enter(a, made, s->pool);
}

void segment_release(struct allocator *a, struct block *b)
{
    struct segment *s = b->segment;
    ASSERT(!s->expandable && !b->previous && !b->next);
    pool_take(b);
    driver_free(&a->driver, s);
    stat_lower(&a->stats.segments, 1);
    stat_lower(&a->stats.reserved_bytes, s->bytes);
    a->stats.device_frees++;
    leave(a, s);
}

void pool_put_unmapped(struct block *b)
{
    b->state = BLOCK_UNMAPPED;
    b->key = 0;
    treap_add(&b->pool->unmapped, b);
}

static uint64_t page_bytes_of(const struct allocator *a, enum size_class size)
{
    return size == CLASS_SMALL ? SMALL_SEGMENT_BYTES : a->options.large_segment_bytes;
}

// One and an eighth of the device, in whole pages.
static uint64_t reservation_bytes(const struct allocator *a, uint64_t page_bytes)
{
    uint64_t total = a->driver.capacity_bytes + a->options.outside_bytes;
    return u64_align_up(total + total / 8, page_bytes);
}

// At the address given, or at one of the driver's choice where it is 0.
struct segment *segment_reserve(struct allocator *a, struct pool *pool, uint64_t address)
{
    uint64_t page_bytes = page_bytes_of(a, pool->size);
    struct segment *s = segment_new(a, pool, reservation_bytes(a, page_bytes));
    s->expandable = a->has_expandable = true;
    s->page_bytes = page_bytes;
    s->address = address;
    if (!address)
        driver_reserve(&a->driver, s);
    pool_put_unmapped(segment_enter(a, s, pool));
    return s;
}

// Maps whole pages at the start of an unmapped block; the result, merged with free neighbours, is
// in its pool's set. NULL when the driver has no memory: all pages or none.
static struct block *map_pages(struct allocator *a, struct block *b, uint64_t bytes)
{
    uint64_t mapped = u64_align_up(bytes, b->segment->page_bytes);
    ASSERT(b->state == BLOCK_UNMAPPED && mapped <= b->bytes);
    if (!driver_map(&a->driver, b->segment, b->address, mapped))
        return NULL;
    treap_remove(&b->pool->unmapped, b);
    b->state = BLOCK_FREE;
    if (mapped < b->bytes)
        pool_put_unmapped(block_cut(a, b, mapped));
    block_merge(a, b);
    pool_put(a, b);
    stat_raise(&a->stats.reserved_bytes, mapped);
    a->stats.device_allocs++;
    return b;
}

static bool is_available(const struct block *b)
{
    return b && (b->state == BLOCK_FREE || b->state == BLOCK_UNMAPPED);
}

static bool has_space(const struct block *b, uint64_t bytes)
{
    uint64_t sum = 0;
    for (; sum < bytes && is_available(b); b = b->next)
        sum += b->bytes;
    return sum >= bytes;
}

// Where to grow: the lowest unmapped block that has room, with the free block before it.
static struct block *find_space(const struct search *s)
{
    struct block *b = treap_find(s->pool->unmapped, 0, 0);
    for (; b; b = treap_find(s->pool->unmapped, 0, b->address + 1)) {
        struct block *start = is_available(b->previous) ? b->previous : b;
        if (has_space(start, s->bytes))
            return start;
    }
    return NULL;
}

uint64_t segment_growth(const struct allocator *a, const struct search *s)
{
    uint64_t page = page_bytes_of(a, s->bytes <= SMALL_MAX_BYTES ? CLASS_SMALL : CLASS_LARGE);
    const struct block *b = s->pool ? find_space(s) : NULL;
    uint64_t got = 0, mapped = 0;
    if (!b)
        return u64_align_up(s->bytes, page);
    for (; got < s->bytes; b = b->next) {
        uint64_t bytes = b->bytes;
        if (b->state == BLOCK_UNMAPPED) {
            uint64_t missing = u64_align_up(s->bytes - got, page);
            bytes = bytes < missing ? bytes : missing;
            mapped += bytes;
        }
        got += bytes;
    }
    return mapped;
}

static void drop_reservation(struct allocator *a, struct block *b)
{
    treap_remove(&b->pool->unmapped, b);
    driver_unreserve(&a->driver, b->segment);
    leave(a, b->segment);
}

// A reservation made for a request that was refused outright. torch keeps it, but a recording shows
// its address only with the first page mapped, so that the next request makes it anew.
static void forget_untouched(struct allocator *a, struct pool *pool)
{
    struct block *b = treap_find(pool->unmapped, 0, 0), *next;
    for (; a->driver.tape && b; b = next) {
        next = treap_find(pool->unmapped, 0, b->address + 1);
        if (!b->previous && !b->next)
            drop_reservation(a, b);
    }
}

struct block *segment_expand(struct allocator *a, const struct search *s)
{
    if (s->bytes > reservation_bytes(a, page_bytes_of(a, s->pool->size)))
        return NULL;
    struct block *b = find_space(s);
    if (!b)
        b = segment_reserve(a, s->pool, 0)->first;
    if (b->state == BLOCK_UNMAPPED)
        b = map_pages(a, b, b->bytes < s->bytes ? b->bytes : s->bytes);
    while (b && b->bytes < s->bytes) {
        uint64_t missing = s->bytes - b->bytes;
        struct block *next = b->next;
        ASSERT(next); // the walk that chose the start summed up to here
        b = map_pages(a, next, missing < next->bytes ? missing : next->bytes);
    }
    if (b)
        pool_take(b);
    else
        forget_untouched(a, s->pool);
    return b;
}

void segment_unmap(struct allocator *a, struct block *b)
{
    struct segment *s = b->segment;
    uint64_t offset = b->address - s->address;
    uint64_t from = u64_align_up(offset, s->page_bytes);
    uint64_t to = (offset + b->bytes) / s->page_bytes * s->page_bytes;
    if (to <= from)
        return;
    pool_take(b);
    if (to - offset < b->bytes)
        pool_put(a, block_cut(a, b, to - offset));
    if (from > offset) {
        struct block *pages = block_cut(a, b, from - offset);
        pool_put(a, b);
        b = pages;
    }
    b->state = BLOCK_UNMAPPED;
    block_merge(a, b);
    pool_put_unmapped(b);
    driver_unmap(&a->driver, s, s->address + from, to - from);
    stat_lower(&a->stats.reserved_bytes, to - from);
    a->stats.device_frees++;
    if (!b->previous && !b->next)
        drop_reservation(a, b);
}
