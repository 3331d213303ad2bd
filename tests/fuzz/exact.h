// The fuzzer's bytes in a heap block of exactly their size: a read past the end is then one past
// the block, which AddressSanitizer sees.
#ifndef FATHOM_TESTS_FUZZ_EXACT_H
#define FATHOM_TESTS_FUZZ_EXACT_H

#include <stdlib.h>
#include <string.h>

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

static inline void exact_free(struct str copy)
{
    union {
        const char *kept;
        char *owned;
    } p = {copy.p};
    free(p.owned);
}

#endif
