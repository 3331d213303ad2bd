// Where cudaMalloc would put memory when no recording says so. Only the order of addresses matters:
// torch breaks ties between free blocks of one size by the lowest. The policy was read off recorded
// histories (H200, driver of CUDA 13), see address.c.
#ifndef FATHOM_ALLOCATOR_ADDRESS_H
#define FATHOM_ALLOCATOR_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"

// Which of two chunks lies lower depends on what else the process has mapped: the newer one as a
// rule, but it may be the older one, or either (an H200's histories have all three).
enum placing { PLACED_BELOW, PLACED_ABOVE, PLACED_APART };

struct span { // one allocation inside a chunk, in ascending order
    struct span *next;
    uint64_t address, bytes;
};

struct chunk {                   // a stretch of address space the driver took from the system
    struct chunk *below, *above; // by address
    struct chunk *next_hole;     // the next chunk below that has a hole; or the next spare one
    struct chunk *previous_hole;
    struct span *spans;
    uint64_t address, bytes;
    uint64_t hole_bytes; // not taken, between this chunk and the one above
    ptrdiff_t slot;      // its place by age
};

struct address_space {
    struct arena *arena;
    enum placing placing;
    struct chunk *highest, *lowest;
    struct chunk *highest_hole, *lowest_hole;
    struct chunk **by_age; // [slots], oldest first, NULL where one is gone
    uint64_t *gaps;        // [2 * slots], a tree: the largest free stretch of each, and of each two
    ptrdiff_t slots, next_slot;
    struct chunk *spare_chunks;
    struct span *spare_spans;
};

struct address_space address_space_in(struct arena *a);

// Never fails: the space is larger than any device's memory.
uint64_t address_take(struct address_space *s, uint64_t bytes, struct chunk **chunk);
void address_give(struct address_space *s, struct chunk *chunk, uint64_t address);

#endif
