// What differs between torch versions, in one table: 2.5 to 2.11 share one engine and a handful of
// gates.
#ifndef FATHOM_ALLOCATOR_TORCH_H
#define FATHOM_ALLOCATOR_TORCH_H

#include <stdbool.h>

#include "core/base/error.h"

enum { TORCH_OLDEST = 5, TORCH_NEWEST = 11 }; // minor of 2.x

enum torch_gate {
    TORCH_NON_SPLIT_ROUNDING_OPTION,   // max_non_split_rounding_mb exists
    TORCH_FRACTION_OPTION,             // per_process_memory_fraction exists
    TORCH_FRACTION_ONE_IS_NO_LIMIT,    // before, any call armed the limit
    TORCH_LARGE_SEGMENT_OPTION,        // large_segment_size_mb exists
    TORCH_SPLIT_FLOOR_INCLUSIVE,       // max_split_size_mb may equal the large segment
    TORCH_DIVISIONS_REST_STARTS_AFTER, // ">" no longer overwrites the last named bucket
    TORCH_MESSAGE_NAMES_ALLOC_CONF,    // PYTORCH_ALLOC_CONF in the out-of-memory text
    TORCH_MESSAGE_NEW_URL,
    TORCH_GATES,
};

bool torch_has(int minor, enum torch_gate gate);

// "2.9", "2.11.0+cu130" to the minor; fails outside 2.5 to 2.11.
bool torch_version_parse(int *minor, struct str text, struct error *e) MUST_USE;

#endif
