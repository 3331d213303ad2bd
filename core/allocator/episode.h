// Whether a part of a history, played once more by the allocator that it leaves behind, is served
// the same without the driver. It is where nothing was flushed and what was alive before is alive
// after, and nothing else: then all that differs is the segments made meanwhile, free now. None of
// them may serve an earlier request in place of the block that this one got, so that each lies idle
// until the request that it was made for. Where it is as large as that block it may, if until all
// of about this size are free again they were whole segments that nobody cut: these only change
// places.
#ifndef FATHOM_ALLOCATOR_EPISODE_H
#define FATHOM_ALLOCATOR_EPISODE_H

#include "core/allocator/block_set.h"

enum { EPISODE_POOLS = 2 }; // small and large

// Of the requests whose sizes share a bucket: the least, and the last of the blocks that they got,
// in the order of the set.
struct served {
    uint64_t least_bytes;
    uint64_t most_bytes, most_address;
};

// What was seen in one of the classes of sizes, by bucket.
struct episode_class {
    struct served served[SET_CLASSES];
    uint32_t lent[SET_CLASSES]; // segments that requests got whole and did not give back
    uint64_t cut[SET_WORDS];    // blocks that a request got and was not given whole
    uint64_t pieces[SET_WORDS]; // free parts of segments
    uint64_t ties[SET_WORDS];   // segments made of late, as large as a block that was got before
};

struct episode {
    struct episode_class classes[EPISODE_POOLS];
    bool differs; // a segment would be used before its time
};

struct allocator;

// Watches what the allocator does from now on.
void episode_begin(struct episode *e, struct allocator *a);

static inline void episode_mark(uint64_t words[SET_WORDS], unsigned bucket)
{
    words[bucket / 64] |= UINT64_C(1) << bucket % 64;
}

static inline bool episode_is_before(uint64_t bytes, uint64_t address, const struct served *s)
{
    return bytes != s->most_bytes ? bytes < s->most_bytes : address < s->most_address;
}

// The free block that a request got, and the buckets of both; `is_cut`: only the beginning of it.
struct episode_service {
    uint64_t bytes;
    unsigned bucket, block_bucket;
    bool is_cut;
};
static inline void episode_served(struct episode_class *c, const struct block *b,
                                  const struct episode_service *how)
{
    struct served *s = &c->served[how->bucket];
    if (!s->most_bytes || how->bytes < s->least_bytes)
        s->least_bytes = how->bytes;
    if (!episode_is_before(b->bytes, b->address, s)) {
        s->most_bytes = b->bytes;
        s->most_address = b->address;
    }
    if (how->is_cut)
        episode_mark(c->cut, how->block_bucket);
    else if (!b->previous && !b->next)
        c->lent[how->block_bucket]++;
}

void episode_grew(struct episode *e, const struct block *b); // before that: for this request

// A request returned a whole segment of such a bucket; and all that were lent.
void episode_returned_all(struct episode *e, struct episode_class *c, unsigned bucket);
static inline void episode_returned(struct episode *e, struct episode_class *c, unsigned bucket)
{
    if (!--c->lent[bucket])
        episode_returned_all(e, c, bucket);
}

bool episode_repeats(const struct episode *e);

#endif
