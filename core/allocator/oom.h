// Why a request failed, with the numbers of torch's own message.
#ifndef FATHOM_ALLOCATOR_OOM_H
#define FATHOM_ALLOCATOR_OOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"

struct allocator;

enum oom_cause {
    OOM_NONE,
    OOM_EXHAUSTION,    // not even all cached memory would be enough
    OOM_FRAGMENTATION, // enough is cached, but in pieces, pages or pools that do not serve
};

struct allocator_oom {
    enum oom_cause cause;
    bool by_limit; // the memory fraction refused, not the card
    int torch_minor;
    uint64_t requested_bytes;
    uint64_t tried_bytes; // what the message says: the segment asked for
    uint64_t device_bytes, free_bytes, process_bytes; // of the driver, after the flush
    bool free_known;                                  // free_bytes is the device's, not a guess
    bool limited;
    uint64_t limit_bytes;
    uint64_t allocated_bytes;
    uint64_t unallocated_bytes; // reserved less allocated
    uint16_t stream;
};

// Fills allocator->oom for a request of this many bytes that failed just now.
void allocator_explain_oom(struct allocator *a, uint64_t requested_bytes, uint16_t stream);

// The text of torch's exception for its version.
void oom_message(const struct allocator_oom *oom, struct buf *out);

#endif
