// Free blocks of one pool and stream in torch's order, by size and then address. Buckets by
// size, eight to each power of two, with a bitmap of those in use. The first few of a bucket, which
// are taken and given back more than any others, stand in a row; behind them is a treap whose links
// and priorities live in the blocks, so that a million blocks of one size cost the depth of one
// treap.
#ifndef FATHOM_ALLOCATOR_BLOCK_SET_H
#define FATHOM_ALLOCATOR_BLOCK_SET_H

#include <stddef.h>

#include "core/allocator/block.h"
#include "core/base/compiler.h"

enum { SET_CLASSES = 448, SET_WORDS = SET_CLASSES / 64, SET_FRONT = 6 };

struct bucket {
    struct block *front[SET_FRONT]; // in order, all before the rest
    struct block *rest;             // treap; none where the front is empty
    int count;                      // of the front; where it is 0, the first is NULL
};

struct block_set {
    uint64_t present[SET_WORDS];
    struct bucket buckets[SET_CLASSES];
};

static inline unsigned block_set_bucket(uint64_t bytes)
{
    uint64_t units = bytes >> 9;
    unsigned highest = 63 ^ (unsigned)__builtin_clzll(units | 8);
    unsigned shift = highest - 3; // so that four bits are left
    return shift * 8 + (unsigned)(units >> shift);
}

// Of the bare treap, ordered by (key, address).
void treap_add(struct block **root, struct block *b);
void treap_remove(struct block **root, const struct block *b);
struct block *treap_find(struct block *root, uint64_t key, uint64_t address);
bool treap_holds(const struct block *root, const struct block *b);

// Of a bucket that holds others as well.
void bucket_add(struct bucket *k, struct block *b);
void bucket_remove(struct bucket *k, const struct block *b);
struct block *bucket_find(const struct bucket *k, uint64_t key, uint64_t address);

// Priorities are unique, which keeps this a total order even if a recording overlaps itself.
static inline bool block_is_before(const struct block *a, const struct block *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    return a->address != b->address ? a->address < b->address : a->priority < b->priority;
}

// The bucket is that of its bytes; sets b->key and b->bucket.
static ALWAYS_INLINE void block_set_add_to(struct block_set *s, struct block *b, unsigned bucket)
{
    struct bucket *k = &s->buckets[bucket];
    b->key = b->bytes;
    b->bucket = (uint16_t)bucket;
    if (k->count) {
        bucket_add(k, b);
        return;
    }
    k->front[0] = b;
    k->count = 1;
    s->present[bucket / 64] |= UINT64_C(1) << bucket % 64;
}

static ALWAYS_INLINE void block_set_add(struct block_set *s, struct block *b)
{
    block_set_add_to(s, b, block_set_bucket(b->bytes));
}

static inline bool block_set_is_alone(const struct block_set *s, const struct block *b)
{
    const struct bucket *k = &s->buckets[b->bucket];
    return k->count == 1 && !k->rest;
}

static ALWAYS_INLINE void block_set_remove(struct block_set *s, const struct block *b)
{
    unsigned bucket = b->bucket;
    struct bucket *k = &s->buckets[bucket];
    if (!block_set_is_alone(s, b)) {
        bucket_remove(k, b);
        return;
    }
    k->front[0] = NULL;
    k->count = 0;
    s->present[bucket / 64] &= ~(UINT64_C(1) << bucket % 64);
}

// Another address and other bytes for a block of the set; alone in its bucket it may stay there.
static ALWAYS_INLINE void block_set_change(struct block_set *s, struct block *b, uint64_t address,
                                           uint64_t bytes)
{
    unsigned bucket = block_set_bucket(bytes);
    bool stays = bucket == b->bucket && block_set_is_alone(s, b);
    if (!stays)
        block_set_remove(s, b);
    b->address = address;
    b->bytes = bytes;
    if (stays)
        b->key = bytes;
    else
        block_set_add_to(s, b, bucket);
}

// The first bucket at or after this one that holds anything; SET_CLASSES if none does.
static inline unsigned block_set_next_bucket(const struct block_set *s, unsigned bucket)
{
    if (bucket >= SET_CLASSES)
        return SET_CLASSES;
    unsigned word = bucket / 64;
    uint64_t bits = s->present[word] & (UINT64_MAX << bucket % 64);
    while (!bits && ++word < SET_WORDS)
        bits = s->present[word];
    return bits ? word * 64 + (unsigned)__builtin_ctzll(bits) : SET_CLASSES;
}

// The first of at least so many bytes, which are of this bucket; NULL if there is none.
static ALWAYS_INLINE struct block *block_set_first(const struct block_set *s, uint64_t bytes,
                                                   unsigned bucket)
{
    const struct bucket *k = &s->buckets[bucket];
    struct block *best = k->front[0];
    if (best && best->key >= bytes)
        return best;
    best = best ? bucket_find(k, bytes, 0) : NULL;
    if (best)
        return best;
    bucket = block_set_next_bucket(s, bucket + 1);
    return bucket < SET_CLASSES ? s->buckets[bucket].front[0] : NULL;
}

// The first at or after (bytes, address); NULL if there is none.
struct block *block_set_find(const struct block_set *s, uint64_t bytes, uint64_t address);
struct block *block_set_after(const struct block_set *s, const struct block *b);

// Whether this very block is there.
bool block_set_holds(const struct block_set *s, const struct block *b);

// The last before (bytes, address).
struct block *block_set_before(const struct block_set *s, uint64_t bytes, uint64_t address);

#endif
