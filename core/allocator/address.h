// Where cudaMalloc would put memory when no recording says so. Only the order of addresses matters:
// torch breaks ties between free blocks of one size by the lowest. The policy was read off recorded
// histories (H200, driver of CUDA 13), see address.c.
#ifndef FATHOM_ALLOCATOR_ADDRESS_H
#define FATHOM_ALLOCATOR_ADDRESS_H

#include <stdint.h>

#include "core/base/arena.h"

struct span { // one allocation inside a chunk, in ascending order
    struct span *next;
    uint64_t address, bytes;
};

struct chunk {                   // a stretch of address space the driver took from the system
    struct chunk *below, *above; // by address
    struct chunk *older, *newer; // by time
    struct span *spans;
    uint64_t address, bytes, free_bytes;
};

struct address_space {
    struct arena *arena;
    struct chunk *highest, *newest;
    struct chunk *spare_chunks;
    struct span *spare_spans;
};

struct address_space address_space_in(struct arena *a);

// Never fails: the space is larger than any device's memory.
uint64_t address_take(struct address_space *s, uint64_t bytes, struct chunk **chunk);
void address_give(struct address_space *s, struct chunk *chunk, uint64_t address);

#endif
