// The fuzzer's bytes in a heap block of exactly their size: a read past the end is then one past
// the block, which AddressSanitizer sees.
#ifndef FATHOM_TESTS_FUZZ_EXACT_H
#define FATHOM_TESTS_FUZZ_EXACT_H

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/str.h"

static inline struct str exact_copy(const unsigned char *data, size_t size)
{
    char *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    if (size)
        memcpy(exact, data, size);
    return (struct str){exact, (ptrdiff_t)size};
}

// Memory that grows with the input alone: an input that makes a reader take more traps. It is
// quicker too, for an arena begins by poisoning all of it.
static inline struct arena exact_arena(char *block, size_t block_bytes, size_t size)
{
    enum { LEAST = 1 << 20, A_BYTE = 4 << 10 };
    size_t bytes = LEAST + size * A_BYTE;
    return arena_over(block, (ptrdiff_t)(bytes < block_bytes ? bytes : block_bytes), NULL);
}

static inline void exact_free(struct str copy)
{
    union {
        const char *kept;
        char *owned;
    } p = {copy.p};
    free(p.owned);
}

#endif
