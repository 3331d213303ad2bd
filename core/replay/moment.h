// What an allocator holds at one moment: the largest live blocks, what keeps each segment from
// going back to the driver, and who owns how much. To see a peak, replay up to the event that
// reached it (replay_request.stop_after = its index + 1).
#ifndef FATHOM_REPLAY_MOMENT_H
#define FATHOM_REPLAY_MOMENT_H

#include "core/allocator/allocator.h"

struct moment_block {
    uint64_t address, bytes, requested_bytes;
    uint32_t tag;
    uint16_t stream;
    bool pending; // freed by the program, still in use by another stream
};

struct moment_segment {
    uint64_t address;
    uint64_t reserved_bytes; // of an expandable segment, what is mapped
    uint64_t live_bytes;     // what pins it: allocated and pending
    uint64_t largest_free_bytes;
    uint64_t largest_live_bytes;
    uint32_t largest_live_tag;
    ptrdiff_t live_blocks;
    uint16_t stream;
    bool small, expandable;
};

struct moment {
    struct moment_block *blocks; // largest first
    ptrdiff_t block_count;
    struct moment_segment *segments; // most bytes reserved and not live first
    ptrdiff_t segment_count;
};

struct moment moment_of(struct arena *a, const struct allocator *allocator, ptrdiff_t most_blocks);

// Adds the bytes of live blocks to bytes[tag]; tags from `tags` on are counted in the last one.
void moment_by_tag(const struct allocator *allocator, uint64_t *bytes, ptrdiff_t tags);

#endif
