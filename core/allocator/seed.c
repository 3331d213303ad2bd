// The state a history starts from, when it does not start with the process: the segments of a
// snapshot. A snapshot shows an expandable segment as its mapped runs and not its reservation; the
// reservation is taken to begin at the first run.
#include <stddef.h>

#include "core/allocator/internal.h"

static bool wrong(const struct start_segment *seed, const char *what, struct error *e)
{
    return FAIL(e, BAD_INPUT, STR("segments"), "the segment at %llx %s",
                (unsigned long long)seed->address, what);
}

static bool check_blocks(const struct allocator *a, const struct start_segment *seed,
                         struct error *e)
{
    uint64_t sum = 0;
    if (seed->stream >= a->pools->stream_count || seed->address >= EVENT_MAX_ADDRESS)
        return wrong(seed, "has no stream or address of a device", e);
    for (ptrdiff_t i = 0; i < seed->block_count; i++) {
        const struct start_block *b = &seed->blocks[i];
        if (b->bytes == 0 || b->bytes % BLOCK_MIN_BYTES || b->bytes >= EVENT_MAX_BYTES ||
            b->requested_bytes > b->bytes)
            return wrong(seed, "has a block of impossible size", e);
        sum += b->bytes;
        if (sum > seed->bytes)
            return wrong(seed, "is smaller than its blocks", e);
    }
    if (sum != seed->bytes || seed->bytes == 0)
        return wrong(seed, "is larger than its blocks", e);
    return true;
}

static bool take_pages(struct allocator *a, const struct segment *s,
                       const struct start_segment *seed, struct error *e)
{
    uint64_t pages = driver_bytes(s, seed->bytes);
    if (pages > driver_free_bytes(&a->driver))
        return wrong(seed, "does not fit the device", e);
    a->driver.used_bytes += pages;
    stat_raise(&a->stats.reserved_bytes, seed->bytes);
    return true;
}

static void set_state(struct allocator *a, struct block *b, const struct start_block *seed)
{
    if (seed->state == START_INACTIVE) {
        block_merge(a, b);
        pool_put(a, b);
        return;
    }
    b->state = BLOCK_ALLOCATED;
    b->requested_bytes = seed->requested_bytes;
    b->tag = seed->tag;
    b->handle = seed->block;
    stat_raise(&a->stats.allocations, 1);
    stat_raise(&a->stats.allocated_bytes, b->bytes);
    stat_raise(&a->stats.active_bytes, b->bytes);
    stat_raise(&a->stats.requested_bytes, seed->requested_bytes);
    if (seed->state == START_PENDING_FREE)
        allocator_free_request(a, b);
}

// Cuts the stretch into the snapshot's blocks. Parts not yet given a state count as pending, which
// no neighbour merges with.
static void fill(struct allocator *a, struct block *b, const struct start_segment *seed,
                 struct block **made)
{
    for (ptrdiff_t i = 0; i < seed->block_count; i++) {
        ASSERT(b); // the blocks fill the segment
        struct block *rest = NULL;
        if (seed->blocks[i].bytes < b->bytes) {
            rest = block_cut(a, b, seed->blocks[i].bytes);
            rest->state = BLOCK_PENDING;
        }
        made[i] = seed->blocks[i].state == START_INACTIVE ? NULL : b;
        set_state(a, b, &seed->blocks[i]);
        b = rest;
    }
}

// The unmapped block that holds the run, in the pool's reservation or in a new one.
static struct block *find_unmapped(struct allocator *a, struct pool *pool,
                                   const struct start_segment *seed)
{
    for (struct block *b = treap_find(pool->unmapped, 0, 0); b;
         b = treap_find(pool->unmapped, 0, b->address + 1))
        if (seed->address >= b->address && seed->address - b->address < b->bytes &&
            b->bytes - (seed->address - b->address) >= seed->bytes &&
            (seed->address - b->address) % b->segment->page_bytes == 0)
            return b;
    bool below = seed->reserved_from && seed->reserved_from < seed->address;
    return segment_reserve(a, pool, below ? seed->reserved_from : seed->address)->first;
}

static bool seed_expandable(struct allocator *a, struct pool *pool,
                            const struct start_segment *seed, struct block **made, struct error *e)
{
    struct block *b = find_unmapped(a, pool, seed);
    struct segment *s = b->segment;
    if (seed->bytes % s->page_bytes || seed->bytes > b->bytes ||
        (seed->address - s->address) % s->page_bytes)
        return wrong(seed, "is not made of whole pages", e);
    if (!take_pages(a, s, seed, e))
        return false;
    treap_remove(&pool->unmapped, b);
    if (seed->address > b->address) {
        struct block *run = block_cut(a, b, seed->address - b->address);
        pool_put_unmapped(b);
        b = run;
    }
    if (b->bytes > seed->bytes)
        pool_put_unmapped(block_cut(a, b, seed->bytes));
    b->state = BLOCK_PENDING;
    fill(a, b, seed, made);
    return true;
}

bool allocator_seed(struct allocator *a, const struct start_segment *seed, struct block **made,
                    struct error *e)
{
    if (!check_blocks(a, seed, e))
        return false;
    struct pool *pool = pool_of(a, seed->small ? CLASS_SMALL : CLASS_LARGE, seed->stream);
    if (seed->expandable)
        return seed_expandable(a, pool, seed, made, e);
    struct segment *s = segment_new(a, pool, seed->bytes);
    s->address = seed->address;
    if (!take_pages(a, s, seed, e))
        return false;
    stat_raise(&a->stats.segments, 1);
    fill(a, segment_enter(a, s, pool), seed, made);
    return true;
}
