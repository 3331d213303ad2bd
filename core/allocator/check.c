// The allocator's invariants, for tests: bytes are conserved, neighbours are merged, nothing
// overlaps, sets hold exactly the free blocks in order, statistics are what a walk counts.
#include <stddef.h>

#include "core/allocator/internal.h"

struct tally {
    uint64_t allocated, active, requested, reserved, allocations, segments, pending;
};

static bool is_in_set(const struct block *b)
{
    if (b->state == BLOCK_UNMAPPED)
        return b->key == 0 && treap_holds(b->pool->unmapped, b);
    return b->key == b->bytes && block_set_holds(&b->pool->free, b);
}

static const char *check_block(const struct block *b, struct tally *t)
{
    bool free = b->state == BLOCK_FREE || b->state == BLOCK_UNMAPPED;
    if (b->bytes == 0 || b->bytes % BLOCK_MIN_BYTES)
        return "a block has an impossible size";
    if (b->next && (b->next->previous != b || b->next->address != b->address + b->bytes))
        return "neighbours do not touch";
    if (free && b->next && b->next->state == b->state)
        return "neighbours are not merged";
    if (free && !is_in_set(b))
        return "a free block is not in its set";
    bool active = !free;
    if (active && b->requested_bytes > b->bytes)
        return "a block is smaller than its request";
    t->active += active ? b->bytes : 0;
    t->requested += active ? b->requested_bytes : 0;
    t->allocated += b->state == BLOCK_ALLOCATED ? b->bytes : 0;
    t->allocations += b->state == BLOCK_ALLOCATED;
    t->pending += b->state == BLOCK_PENDING;
    return NULL;
}

static const char *check_pages(const struct segment *s, const struct block *b)
{
    bool edge = (b->address - s->address) % s->page_bytes == 0;
    if (b->state == BLOCK_UNMAPPED && (!edge || b->bytes % s->page_bytes))
        return "an unmapped block is not made of whole pages";
    return NULL;
}

static const char *check_segment(const struct segment *s, struct tally *t)
{
    uint64_t sum = 0, mapped = 0;
    if (s->first->previous || s->first->address != s->address)
        return "a segment does not start at its first block";
    for (const struct block *b = s->first; b; b = b->next) {
        const char *broken = check_block(b, t);
        if (!broken && s->expandable)
            broken = check_pages(s, b);
        if (broken)
            return broken;
        if (b->segment != s || b->pool->stream != s->stream)
            return "a block is in another's segment";
        sum += b->bytes;
        mapped += b->state == BLOCK_UNMAPPED ? 0 : b->bytes;
    }
    if (sum != s->bytes)
        return "a segment's blocks do not fill it";
    t->reserved += mapped;
    t->segments += !s->expandable;
    return NULL;
}

static uint64_t count_treap(const struct block *root)
{
    return root ? 1 + count_treap(root->left) + count_treap(root->right) : 0;
}

static bool is_linked(const struct block *b, const struct block *parent)
{
    return !b || (b->parent == parent && is_linked(b->left, b) && is_linked(b->right, b));
}

static bool is_ordered(const struct bucket *k)
{
    bool ordered = k->count > 0 || (!k->rest && !k->front[0]);
    for (int i = 1; i < k->count; i++)
        ordered &= block_is_before(k->front[i - 1], k->front[i]);
    const struct block *next = k->rest;
    while (next && next->left)
        next = next->left;
    return ordered && (!next || block_is_before(k->front[k->count - 1], next));
}

static bool sets_hold_together(const struct allocator *a)
{
    bool hold = true;
    for (int size = 0; size < CLASS_COUNT; size++)
        for (const struct pool *pool = a->pools->first[size]; pool; pool = pool->next) {
            hold &= is_linked(pool->unmapped, NULL);
            for (int i = 0; i < SET_CLASSES; i++)
                hold &= is_linked(pool->free.buckets[i].rest, NULL) &&
                        is_ordered(&pool->free.buckets[i]);
        }
    return hold;
}

static uint64_t count_sets(const struct allocator *a)
{
    uint64_t count = 0;
    for (int size = 0; size < CLASS_COUNT; size++)
        for (const struct pool *pool = a->pools->first[size]; pool; pool = pool->next) {
            count += count_treap(pool->unmapped);
            for (int i = 0; i < SET_CLASSES; i++)
                count +=
                    (uint64_t)pool->free.buckets[i].count + count_treap(pool->free.buckets[i].rest);
        }
    return count;
}

static uint64_t count_free(const struct allocator *a)
{
    uint64_t count = 0;
    for (const struct segment *s = a->segments; s; s = s->next)
        for (const struct block *b = s->first; b; b = b->next)
            count += b->state == BLOCK_FREE || b->state == BLOCK_UNMAPPED;
    return count;
}

uint64_t allocator_inactive_split_bytes(const struct allocator *a)
{
    const struct beside w = beside_of(a);
    uint64_t bytes = 0;
    for (const struct segment *s = a->segments; s; s = s->next)
        for (const struct block *b = s->first; b; b = b->next)
            bytes += b->state == BLOCK_FREE && block_is_piece(b, w) ? b->bytes : 0;
    return bytes;
}

static bool stats_hold(const struct allocator_stats *stats, const struct tally *t)
{
    return stats->allocated_bytes.current == t->allocated &&
           stats->active_bytes.current == t->active &&
           stats->requested_bytes.current == t->requested &&
           stats->reserved_bytes.current == t->reserved &&
           stats->allocations.current == t->allocations && stats->segments.current == t->segments;
}

const char *allocator_check(const struct allocator *a)
{
    struct tally t = {0};
    for (const struct segment *s = a->segments; s; s = s->next) {
        const char *broken = check_segment(s, &t);
        if (broken)
            return broken;
    }
    if (!stats_hold(&a->stats, &t))
        return "the statistics are not what the blocks sum up to";
    if (!sets_hold_together(a))
        return "a set has lost its first block, or a block its parent";
    if (count_sets(a) != count_free(a))
        return "the sets hold more than the free blocks";
    uint64_t pending = 0;
    for (const struct block *b = a->pending; b; b = b->right)
        pending++;
    if (pending != t.pending)
        return "the list of pending frees is not what the blocks say";
    if (a->driver.used_bytes < t.reserved || a->driver.used_bytes > a->driver.capacity_bytes)
        return "the driver's pages are not those of the segments";
    return NULL;
}
