// Everything that gives memory back to the driver: the flush of the cache, garbage collection under
// a limit, and the release of oversize blocks. Order matters, for the recording shows it: large
// pool before small, then by stream number, size and address.
#include <stddef.h>

#include "core/allocator/internal.h"

static bool is_whole(const struct block *b)
{
    return !b->previous && !b->next;
}

static void release_class(struct allocator *a, enum size_class size)
{
    struct block *b, *next;
    for (struct pool *pool = a->pools->first[size]; pool; pool = pool->next)
        for (b = block_set_find(&pool->free, 0, 0); b; b = next) {
            next = block_set_after(&pool->free, b);
            if (!b->segment->expandable && is_whole(b))
                segment_release(a, b);
        }
    // Remnants of an unmapped block are smaller than it, so the walk does not meet them.
    for (struct pool *pool = a->pools->first[size]; pool; pool = pool->next)
        for (b = block_set_find(&pool->free, 0, 0); b; b = next) {
            next = block_set_after(&pool->free, b);
            if (b->segment->expandable)
                segment_unmap(a, b);
        }
}

const struct block *allocator_next_whole(const struct allocator *a, const struct block *b)
{
    int size = b ? (int)b->pool->size : 0;
    const struct pool *pool = b ? b->pool : a->pools->first[size];
    for (;;) {
        for (; pool; pool = pool->next, b = NULL) {
            b = b ? block_set_after(&pool->free, b) : block_set_find(&pool->free, 0, 0);
            while (b && (b->segment->expandable || !is_whole(b)))
                b = block_set_after(&pool->free, b);
            if (b)
                return b;
        }
        if (++size == CLASS_COUNT)
            return NULL;
        pool = a->pools->first[size];
    }
}

void allocator_flush(struct allocator *a, enum flush_reason reason)
{
    a->stats.flushes++;
    a->stats.retries += reason == FLUSH_RETRY;
    while (a->pending)
        allocator_free_complete(a, a->pending);
    for (int size = 0; size < CLASS_COUNT; size++)
        release_class(a, (enum size_class)size);
}

struct collection {
    uint64_t total_age;
    uint64_t blocks; // whole ones, which could be freed
    uint64_t reclaimed_bytes;
    bool freed;
};

static uint64_t age_of(const struct block *b)
{
    return *b->pool->searches - b->inserted_at;
}

static void count_ages(const struct allocator *a, struct collection *c)
{
    for (struct pool *pool = a->pools->first[CLASS_LARGE]; pool; pool = pool->next)
        for (struct block *b = block_set_find(&pool->free, 0, 0); b;
             b = block_set_after(&pool->free, b))
            if (is_whole(b)) {
                c->total_age += age_of(b);
                c->blocks++;
            }
}

// One pass: everything at least as old as the mean goes, past the target too.
static void collect_old(struct allocator *a, struct collection *c)
{
    double mean = (double)c->total_age / (double)c->blocks;
    c->freed = false;
    struct block *b, *next;
    for (struct pool *pool = a->pools->first[CLASS_LARGE]; pool; pool = pool->next)
        for (b = block_set_find(&pool->free, 0, 0); b; b = next) {
            next = block_set_after(&pool->free, b);
            if (!is_whole(b) || b->segment->expandable || (double)age_of(b) < mean)
                continue;
            c->freed = true;
            c->reclaimed_bytes += b->bytes;
            c->total_age -= age_of(b);
            c->blocks--;
            segment_release(a, b);
        }
}

void release_old_blocks(struct allocator *a)
{
    uint64_t threshold = (uint64_t)(a->options.gc_threshold * (double)a->options.limit_bytes);
    uint64_t reserved = a->stats.reserved_bytes.current;
    if (reserved <= threshold)
        return;
    uint64_t target = reserved - threshold;
    struct collection c = {.freed = true};
    count_ages(a, &c);
    while (c.reclaimed_bytes < target && c.freed && c.blocks > 0)
        collect_old(a, &c);
}

void release_collected(struct allocator *a)
{
    const struct event *event;
    while ((event = tape_collected(a->driver.tape))) {
        const struct pool *pool = pool_of(a, CLASS_LARGE, event->stream);
        struct block *b = block_set_find(&pool->free, event->bytes, event->address);
        if (!b || b->address != event->address || b->segment->expandable || !is_whole(b))
            return;
        segment_release(a, b);
    }
}

// Blocks of at least max_split_size are whole segments, but for those of a snapshot that was taken
// under other settings.
static uint64_t release_largest(struct allocator *a, struct pool *pool, uint64_t wanted,
                                struct block *b)
{
    uint64_t released = 0;
    while (b && released < wanted && b->bytes >= a->options.max_split_bytes) {
        struct block *smaller = block_set_before(&pool->free, b->key, b->address);
        if (!b->segment->expandable && is_whole(b)) {
            released += b->bytes;
            segment_release(a, b);
        }
        b = smaller;
    }
    return released;
}

struct block *oversize_first(const struct allocator *a, const struct search *s)
{
    uint64_t limit = a->options.max_split_bytes;
    struct block *b = block_set_find(&s->pool->free, s->bytes < limit ? limit : s->bytes, 0);
    if (b && !b->segment->expandable && is_whole(b))
        return b;
    uint64_t bytes = b ? b->key : UINT64_MAX, address = b ? b->address : UINT64_MAX;
    do {
        b = block_set_before(&s->pool->free, bytes, address);
        bytes = b ? b->key : 0;
        address = b ? b->address : 0;
    } while (b && b->bytes >= limit && (b->segment->expandable || !is_whole(b)));
    return b && b->bytes >= limit ? b : NULL;
}

bool release_oversize(struct allocator *a, const struct search *s)
{
    uint64_t limit = a->options.max_split_bytes;
    uint64_t wanted = s->bytes < limit ? limit : s->bytes;
    struct block *b = block_set_find(&s->pool->free, wanted, 0);
    if (b && !b->segment->expandable && is_whole(b)) {
        segment_release(a, b);
        return true;
    }
    uint64_t bytes = b ? b->key : UINT64_MAX, address = b ? b->address : UINT64_MAX;
    b = block_set_before(&s->pool->free, bytes, address);
    return release_largest(a, s->pool, wanted, b) >= wanted;
}
