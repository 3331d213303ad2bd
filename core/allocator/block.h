// The objects of the allocator: blocks side by side in segments, and pools that hold the free ones.
// Callers walk them to see who is alive and what pins a segment; only the allocator changes them.
#ifndef FATHOM_ALLOCATOR_BLOCK_H
#define FATHOM_ALLOCATOR_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum block_state {
    BLOCK_FREE,
    BLOCK_ALLOCATED,
    BLOCK_PENDING,  // free requested, not completed: active, unusable
    BLOCK_UNMAPPED, // address space of an expandable segment without memory behind it
};

struct block {
    struct block *left, *right; // children in a set; neighbours in the list of pending blocks
    struct block *parent;       // in a set
    uint64_t key;               // order in a set before the address: bytes, or 0 where unmapped
    uint64_t address, bytes;
    uint32_t priority; // unique; heap order in a set
    uint16_t bucket;   // of the set that it is in
    uint8_t state;
    struct block *previous, *next; // neighbours in the segment
    struct segment *segment;
    struct pool *pool;
    union {
        uint64_t requested_bytes; // active
        uint64_t inserted_at;     // free: the pool's count of searches when it became so
    };
    uint32_t handle; // the request's, as the tag
    uint32_t tag;
};

// cudaMalloc'd memory, or the reservation of an expandable segment.
struct segment {
    struct segment *previous, *next;
    struct block *first;
    struct chunk *chunk; // its place in predicted address space, NULL when recorded
    uint64_t address, bytes;
    uint64_t page_bytes; // expandable: what is mapped and unmapped at once
    uint16_t stream;
    bool small, expandable;
};

#endif
