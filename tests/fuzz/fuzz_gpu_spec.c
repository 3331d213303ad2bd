// Any bytes as a --gpu value. A machine that is accepted has cards with memory, and its total can
// be counted.

#include "core/base/num.h"
#include "core/hardware/hardware.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[1 << 20];

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str exact = exact_copy(data, size);
    struct arena a = arena_over(block, sizeof block, NULL);
    struct setting spec = {STR("gpu"), exact, STR("--gpu")};
    struct error e = {0};
    struct hardware h;
    bool ok = hardware_from_spec(&h, &a, &spec, &e);
    ASSERT(ok == (e.code == ERROR_NONE));
    if (ok) {
        ASSERT(h.nodes > 0 && h.gpus_per_node > 0 && h.card.memory.value > 0);
        ASSERT(sat_mul(h.card.memory.value, hardware_gpus(&h)) != U64_SATURATED);
    }
    exact_free(exact);
    return 0;
}
