// Free blocks of one pool and stream in torch's order, by size and then address. Buckets by size
// size, eight to each power of two, with a bitmap of those in use; in each bucket a treap whose
// links and priorities live in the blocks. Real histories keep a few blocks a bucket, so an
// operation costs a handful of steps; a million blocks of one size cost the depth of one treap.
#ifndef FATHOM_ALLOCATOR_BLOCK_SET_H
#define FATHOM_ALLOCATOR_BLOCK_SET_H

#include <stddef.h>

#include "core/allocator/block.h"

enum { SET_CLASSES = 448, SET_WORDS = SET_CLASSES / 64 };

struct block_set {
    uint64_t present[SET_WORDS];
    struct block *roots[SET_CLASSES];
};

static inline unsigned block_set_bucket(uint64_t bytes)
{
    uint64_t units = bytes >> 9;
    unsigned shift = 60 - (unsigned)__builtin_clzll(units | 8); // so that four bits are left
    return shift * 8 + (unsigned)(units >> shift);
}

void treap_add(struct block **root, struct block *b);
void treap_remove(struct block **root, struct block *b);

// Sets b->key from its bytes.
static inline void block_set_add(struct block_set *s, struct block *b)
{
    unsigned bucket = block_set_bucket(b->bytes);
    b->key = b->bytes;
    if (s->roots[bucket]) {
        treap_add(&s->roots[bucket], b);
        return;
    }
    s->present[bucket / 64] |= UINT64_C(1) << bucket % 64;
    s->roots[bucket] = b;
    b->left = b->right = NULL;
}

static inline void block_set_remove(struct block_set *s, struct block *b)
{
    unsigned bucket = block_set_bucket(b->key);
    if (s->roots[bucket] != b || b->left || b->right) {
        treap_remove(&s->roots[bucket], b);
        return;
    }
    s->roots[bucket] = NULL;
    s->present[bucket / 64] &= ~(UINT64_C(1) << bucket % 64);
}

// To be asked before a block's bytes or address change: whether it may stay where it is, alone in
// its bucket, and after: its key alone is set then.
static inline bool block_set_may_keep(const struct block_set *s, const struct block *b,
                                      uint64_t bytes)
{
    unsigned bucket = block_set_bucket(bytes);
    return s->roots[bucket] == b && !b->left && !b->right;
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

// The first of at least so many bytes; NULL if there is none.
static inline struct block *block_set_first(const struct block_set *s, uint64_t bytes)
{
    unsigned bucket = block_set_bucket(bytes);
    struct block *best = NULL;
    for (struct block *b = s->roots[bucket]; b;) {
        bool fits = b->key >= bytes;
        best = fits ? b : best;
        b = fits ? b->left : b->right;
    }
    if (best)
        return best;
    bucket = block_set_next_bucket(s, bucket + 1);
    if (bucket == SET_CLASSES)
        return NULL;
    for (best = s->roots[bucket]; best->left;)
        best = best->left;
    return best;
}

// The first at or after (bytes, address); NULL if there is none.
struct block *block_set_find(const struct block_set *s, uint64_t bytes, uint64_t address);
struct block *block_set_after(const struct block_set *s, const struct block *b);

// Whether this very block is there.
bool block_set_holds(const struct block_set *s, const struct block *b);

// The last before (bytes, address).
struct block *block_set_before(const struct block_set *s, uint64_t bytes, uint64_t address);

// The bare treap, ordered by (key, address).
struct block *treap_find(struct block *root, uint64_t key, uint64_t address);
bool treap_holds(const struct block *root, const struct block *b);

#endif
