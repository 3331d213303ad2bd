// What the allocator's own files share. The pools: one for each size class and stream, because free
// memory never moves between them.
#ifndef FATHOM_ALLOCATOR_INTERNAL_H
#define FATHOM_ALLOCATOR_INTERNAL_H

#include "core/allocator/allocator.h"
#include "core/allocator/block_set.h"

enum size_class { CLASS_LARGE, CLASS_SMALL, CLASS_COUNT }; // in the order of release

struct pool {
    struct block_set free;
    struct block *unmapped; // treap by address
    struct pool *next;      // of the same size, by ascending stream number
    uint64_t stream_number;
    uint64_t *searches;         // of the whole class: the clock of garbage collection
    struct episode_class *seen; // of the episode that is watched; NULL: none is
    uint16_t stream;
    enum size_class size;
};

struct pool_table {
    const uint64_t *streams;
    uint16_t stream_count;
    struct pool **by_stream[CLASS_COUNT];
    struct pool *first[CLASS_COUNT];
    uint64_t searches[CLASS_COUNT];
};

// A request on its way through the allocator.
struct search {
    struct pool *pool;
    uint64_t bytes;         // rounded
    unsigned bucket;        // of these
    uint64_t segment_bytes; // what cudaMalloc would be asked for
};

struct pool *pool_of(struct allocator *a, enum size_class size, uint16_t stream);

static inline void stat_raise(struct stat *s, uint64_t by)
{
    s->current += by;
    if (s->current > s->peak)
        s->peak = s->current;
}

static inline void stat_lower(struct stat *s, uint64_t by)
{
    s->current -= by;
}

struct block *block_new(struct allocator *a);
void block_recycle(struct allocator *a, struct block *b);

// Cuts the block after `bytes`; the new one, the upper part, has no state yet.
struct block *block_cut(struct allocator *a, struct block *b, uint64_t bytes);

// Takes in free (or, for an unmapped block, unmapped) neighbours; the block is in no set meanwhile.
void block_merge(struct allocator *a, struct block *b);

// What an allocator may do beside the plain path; looked at once before many requests.
struct beside {
    bool divides;     // powers of two, when it rounds
    bool collects;    // garbage
    bool expands;     // segments, or has some that can be
    bool keeps_whole; // blocks that are too large to be split
    bool logs;
    bool watched; // by an episode
};

static inline struct beside beside_of(const struct allocator *a)
{
    return (struct beside){.divides = !a->rounds_plainly,
                           .collects = a->collects,
                           .expands = a->options.expandable || a->has_expandable,
                           .keeps_whole = a->options.max_split_bytes != UINT64_MAX,
                           .logs = a->driver.log != NULL,
                           .watched = a->episode != NULL};
}

static inline bool is_plain(struct beside w)
{
    return !w.divides && !w.collects && !w.expands && !w.keeps_whole && !w.logs;
}

// A part of a classic segment.
static ALWAYS_INLINE bool block_is_piece(const struct block *b, struct beside w)
{
    return (b->previous || b->next) && !(w.expands && b->segment->expandable);
}

// To and from the set of free blocks.
static ALWAYS_INLINE void became_free(struct block *b, struct beside w)
{
    b->state = BLOCK_FREE;
    if (w.collects)
        b->inserted_at = *b->pool->searches;
    if (w.watched && block_is_piece(b, w))
        episode_mark(b->pool->seen->pieces, b->bucket);
}

static inline void pool_put(struct allocator *a, struct block *b)
{
    block_set_add(&b->pool->free, b);
    became_free(b, beside_of(a));
}

static inline void pool_take(struct block *b)
{
    block_set_remove(&b->pool->free, b);
}

void pool_put_unmapped(struct block *b);

// segment.c. Both return a free block, outside its set, of at least the bytes searched for.
struct block *segment_allocate(struct allocator *a, const struct search *s);
struct block *segment_expand(struct allocator *a, const struct search *s);
uint64_t segment_growth(const struct allocator *a, const struct search *s); // pages it would map
struct segment *segment_new(struct allocator *a, const struct pool *pool, uint64_t bytes);
struct block *segment_enter(struct allocator *a, struct segment *s, struct pool *pool);
struct segment *segment_reserve(struct allocator *a, struct pool *pool, uint64_t address);
void segment_release(struct allocator *a,
                     struct block *b);                    // an unsplit free block of a classic one
void segment_unmap(struct allocator *a, struct block *b); // the whole pages inside a free block

// release.c
void release_old_blocks(struct allocator *a); // garbage collection
void release_collected(struct allocator *a);  // what the recording says it returned
struct block *oversize_first(const struct allocator *a, const struct search *s);
bool release_oversize(struct allocator *a, const struct search *s);

#endif
