// Any bytes as the header of a safetensors file. Either the sums agree with each other (bytes by
// type add up; each element takes at least half a byte and at most eight), or nothing was added and
// the error says why.

#include "core/base/num.h"
#include "host/formats/safetensors.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[1 << 20];

static void check_sums(const struct weights *w, struct arena a)
{
    uint64_t bytes = 0;
    for (ptrdiff_t i = 0; i < WEIGHTS_DTYPES; i++)
        bytes += w->dtype_bytes[i];
    ASSERT(bytes == w->bytes && w->bytes != U64_SATURATED && w->parameters != U64_SATURATED);
    ASSERT(w->parameters / 2 <= w->bytes && w->bytes / 8 <= w->parameters);
    ASSERT(w->tensors > 0 || w->parameters == 0);
    ASSERT((weights_dtypes(&a, w).n > 0) == (w->bytes > 0));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str exact = exact_copy(data, size);
    struct arena a = arena_over(block, sizeof block, NULL);
    struct weights w = {0};
    struct error e = {0};
    struct str header = exact;
    bool ok = safetensors_header_read(&w, a, header, STR("m.st"), &e);
    exact_free(exact);
    ASSERT(ok == (e.code == ERROR_NONE));
    if (ok)
        check_sums(&w, a);
    else
        ASSERT(e.message[0] && !w.tensors && !w.parameters && !w.bytes);
    return 0;
}
