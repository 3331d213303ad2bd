// The CUDA driver as the allocator sees it: memory in 2 MiB pages up to a capacity, and addresses.
// Two policies: with a tape, the recording's answers are given as far as it has one; without,
// memory is refused when it is used up and addresses are predicted.
#ifndef FATHOM_ALLOCATOR_DRIVER_H
#define FATHOM_ALLOCATOR_DRIVER_H

#include "core/allocator/address.h"
#include "core/allocator/block.h"
#include "core/trace/tape.h"
#include "core/trace/trace.h"

struct driver {
    uint64_t capacity_bytes; // left to this allocator
    uint64_t used_bytes;
    struct address_space addresses;
    struct tape *tape; // NULL: predict
    struct trace *log; // every event made, NULL for none
};

// False: out of memory. Uses the segment's bytes and stream, sets its address.
bool driver_malloc(struct driver *d, struct segment *s) MUST_USE;
void driver_free(struct driver *d, struct segment *s);

// Address space only; no event.
void driver_reserve(struct driver *d, struct segment *s);
void driver_unreserve(struct driver *d, struct segment *s);

bool driver_map(struct driver *d, const struct segment *s, uint64_t address,
                uint64_t bytes) MUST_USE;
void driver_unmap(struct driver *d, const struct segment *s, uint64_t address, uint64_t bytes);

// Pages behind so many bytes of a segment; each page an expandable one maps is memory of its own.
uint64_t driver_bytes(const struct segment *s, uint64_t bytes);

uint64_t driver_free_bytes(const struct driver *d);

#endif
