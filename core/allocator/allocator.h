// PyTorch's CUDA caching allocator (native backend), 2.5 to 2.11, one device, without private pools
// and graph capture: rounding, small and large pools, best fit per stream, splitting and merging,
// deferred frees, cache flush and retry, memory fraction, garbage collection, max_split_size and
// expandable segments. It answers each request with the block torch would have chosen, and makes
// the driver's calls in torch's order.
//
// Blocks belong to the allocator; a block pointer is good until its free completes.
#ifndef FATHOM_ALLOCATOR_ALLOCATOR_H
#define FATHOM_ALLOCATOR_ALLOCATOR_H

#include "core/allocator/block.h"
#include "core/allocator/driver.h"
#include "core/allocator/episode.h"
#include "core/allocator/oom.h"
#include "core/allocator/options.h"
#include "core/base/arena.h"

struct stat {
    uint64_t current, peak;
};

// As torch.cuda.memory_stats counts them.
struct allocator_stats {
    struct stat allocated_bytes, requested_bytes, active_bytes, reserved_bytes;
    struct stat allocations, segments;
    uint64_t retries; // cache flushes because memory was refused
    uint64_t ooms;
    uint64_t flushes; // retries and empty_cache together (num_sync_all_streams)
    uint64_t device_allocs, device_frees;
};

struct request {
    uint64_t bytes;
    uint32_t tag;    // who asks
    uint32_t handle; // what the caller calls the block
    uint16_t stream; // index into the streams given at the start
};

struct allocator {
    struct arena *arena;
    struct allocator_options options;
    bool rounds_plainly; // without divisions of powers of two
    bool collects;       // garbage, so that the age of free blocks counts
    bool has_expandable; // segments
    struct allocator_stats stats;
    struct driver driver;
    struct allocator_oom oom; // the last request that failed
    struct segment *segments; // newest first; walk ->next, then ->first and its ->next
    struct pool_table *pools;
    struct block *pending,
        *pending_last; // frees not completed, oldest first, linked left and right
    struct block *spare_blocks;
    struct segment *spare_segments;
    uint32_t blocks_made;
    struct episode *episode;     // being watched; NULL: none is
    uint64_t *active_by_tag;     // kept up to date where the owner gives an array for all its tags
    void (*missed)(void *owner); // told before anything is done for a request the cache cannot
    void *owner;                 // serve; NULL: nobody asks
};

enum flush_reason { FLUSH_EMPTY_CACHE, FLUSH_RETRY };

// `streams` are torch's stream numbers, indexed by a request's stream; kept by reference.
struct allocator *allocator_new(struct arena *a, const struct allocator_options *options,
                                const uint64_t *streams, uint16_t stream_count);

// NULL is out of memory: allocator->oom says why.
struct block *allocator_serve(struct allocator *a, const struct request *request);

// Requests and frees in a row, of blocks that the row itself asks for. What an allocator makes of
// the sizes is worked out once (allocator_prepare), for a row that is run many times.
struct move {
    uint64_t bytes;
    int32_t place; // where its block is found, from 1
    uint16_t stream;
    uint8_t tag;
    bool asks; // else frees
    uint16_t bucket;
    uint64_t rounded_bytes;
    struct pool *pool;
};

void allocator_prepare(struct allocator *a, struct move *moves, ptrdiff_t count);

// What is seen of what is allocated meanwhile: the most, if that is more than it was, and at which
// move; whether the last move was there; and who is told before what was there is left.
struct summit {
    uint64_t bytes;
    ptrdiff_t at;
    bool is_here;
    void (*leaves)(void *owner);
    void *owner;
};

struct moves {
    const struct move *all;
    ptrdiff_t count;
    struct block **places;
    uint32_t handle; // of the first that asks; the others count on
};

// How many of the moves were made: fewer where memory ran out.
ptrdiff_t allocator_run(struct allocator *a, const struct moves *moves, struct summit *most);

static inline struct block *allocator_alloc(struct allocator *a, struct request request)
{
    return allocator_serve(a, &request);
}

// Whether a request would be served from the cache as it is.
bool allocator_has_room(const struct allocator *a, struct request request);

// Whether it would be served if the free of this pending block completed.
bool allocator_would_serve(const struct allocator *a, const struct block *b,
                           struct request request);

// Whether it would become a whole segment that such a request, when refused, returns before others.
bool allocator_makes_oversize(const struct allocator *a, const struct block *b,
                              struct request request);

// What the driver would be asked for once the cache has no room; 0 where an expandable segment has
// the pages already.
uint64_t allocator_growth(const struct allocator *a, struct request request);

// The oversize block that is returned first when the request is refused; NULL where there is none.
const struct block *allocator_first_oversize(const struct allocator *a, struct request request);

// The classic segments a flush would return, as they are now, in its order; NULL begins and ends.
const struct block *allocator_next_whole(const struct allocator *a, const struct block *b);

void allocator_free_request(struct allocator *a, struct block *b);  // b is allocated
void allocator_free_complete(struct allocator *a, struct block *b); // b is pending
void allocator_free(struct allocator *a, struct block *b);          // both

// Completes all pending frees and returns what can be returned to the driver.
void allocator_flush(struct allocator *a, enum flush_reason reason);

void allocator_reset_peaks(struct allocator *a);

// Free parts of classic segments that are in use (torch's inactive_split_bytes). Walks everything.
uint64_t allocator_inactive_split_bytes(const struct allocator *a);

// Adds a segment of a snapshot with its blocks; `made` has room for one pointer a block and gets
// NULL for the inactive ones. Segments come in ascending order of address, before the first
// request.
bool allocator_seed(struct allocator *a, const struct start_segment *seed, struct block **made,
                    struct error *e) MUST_USE;

// NULL when every invariant holds, else what is broken. Walks everything: for tests.
const char *allocator_check(const struct allocator *a);

#endif
