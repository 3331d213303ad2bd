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

// The free block that a request got; `is_cut`: only the beginning of it.
struct search;
void episode_served(struct episode *e, const struct block *b, const struct search *s, bool is_cut);
void episode_grew(struct episode *e, const struct block *b); // before that: for this request
void episode_piece(struct episode *e, const struct block *b);
void episode_returned(struct episode *e, const struct block *b); // a whole segment, by a request

bool episode_repeats(const struct episode *e);

#endif
