// Free blocks of one pool and stream in torch's order, by size and then address. Buckets by
// size, eight to each power of two, with a bitmap of those in use; in each bucket a treap whose
// links and priorities live in the blocks. The first of a bucket is taken and given back more than
// any other and costs a few steps, however many there are; a million blocks of one size cost the
// depth of one treap.
#ifndef FATHOM_ALLOCATOR_BLOCK_SET_H
#define FATHOM_ALLOCATOR_BLOCK_SET_H

#include <stddef.h>

#include "core/allocator/block.h"
#include "core/base/compiler.h"

enum { SET_CLASSES = 448, SET_WORDS = SET_CLASSES / 64 };

struct block_set {
    uint64_t present[SET_WORDS];
    struct block *roots[SET_CLASSES];
    struct block *first[SET_CLASSES];
};

static inline unsigned block_set_bucket(uint64_t bytes)
{
    uint64_t units = bytes >> 9;
    unsigned highest = 63 ^ (unsigned)__builtin_clzll(units | 8);
    unsigned shift = highest - 3; // so that four bits are left
    return shift * 8 + (unsigned)(units >> shift);
}

void treap_add(struct block **root, struct block *b);
void treap_add_first(struct block **root, struct block *first, struct block *b); // before the first
void treap_remove(struct block **root, struct block *b);
struct block *treap_second(const struct block *first);

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
    b->key = b->bytes;
    b->bucket = (uint16_t)bucket;
    struct block *first = s->first[bucket];
    if (first && block_is_before(first, b)) {
        treap_add(&s->roots[bucket], b);
        return;
    }
    s->first[bucket] = b;
    if (first) {
        treap_add_first(&s->roots[bucket], first, b);
        return;
    }
    s->present[bucket / 64] |= UINT64_C(1) << bucket % 64;
    s->roots[bucket] = b;
    b->left = b->right = b->parent = NULL;
}

static ALWAYS_INLINE void block_set_add(struct block_set *s, struct block *b)
{
    block_set_add_to(s, b, block_set_bucket(b->bytes));
}

static inline bool block_set_is_alone(const struct block_set *s, const struct block *b)
{
    return s->roots[b->bucket] == b && !b->left && !b->right;
}

static ALWAYS_INLINE void block_set_remove(struct block_set *s, struct block *b)
{
    unsigned bucket = b->bucket;
    if (!block_set_is_alone(s, b)) {
        if (s->first[bucket] == b)
            s->first[bucket] = treap_second(b);
        treap_remove(&s->roots[bucket], b);
        return;
    }
    s->roots[bucket] = s->first[bucket] = NULL;
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

// The bare treap, ordered by (key, address).
struct block *treap_find(struct block *root, uint64_t key, uint64_t address);
bool treap_holds(const struct block *root, const struct block *b);

// The first of at least so many bytes, which are of this bucket; NULL if there is none.
static ALWAYS_INLINE struct block *block_set_first(const struct block_set *s, uint64_t bytes,
                                                   unsigned bucket)
{
    struct block *best = s->first[bucket];
    if (best && best->key >= bytes)
        return best;
    best = best ? treap_find(s->roots[bucket], bytes, 0) : NULL;
    if (best)
        return best;
    bucket = block_set_next_bucket(s, bucket + 1);
    return bucket < SET_CLASSES ? s->first[bucket] : NULL;
}

// The first at or after (bytes, address); NULL if there is none.
struct block *block_set_find(const struct block_set *s, uint64_t bytes, uint64_t address);
struct block *block_set_after(const struct block_set *s, const struct block *b);

// Whether this very block is there.
bool block_set_holds(const struct block_set *s, const struct block *b);

// The last before (bytes, address).
struct block *block_set_before(const struct block_set *s, uint64_t bytes, uint64_t address);

#endif
