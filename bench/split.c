// How long a division takes, with all that is told beside it; beside what it may take. Run the
// release build on a machine that does nothing else.
#include "core/search/split.h"
#include "bench/bench.h"

#define MODELS "teacher=Qwen3-VL-30B-A3B-Thinking model=Qwen3-VL-4B-Thinking images=1 gpu="

static const struct bench_row divisions[] = {
    {MODELS "8xH100-80G", 1},
    {MODELS "2x8xH100-80G", 1},
    {MODELS "8x8xH100-80G", 1},
    {MODELS "128x8xH100-80G", 1},
};

static bool divide(struct str *told, struct arena *a, const struct settings *s, struct error *e)
{
    struct split_request *r = NEW(a, struct split_request, 1);
    struct split_result *x = NEW(a, struct split_result, 1);
    struct split_change changes[SPLIT_MOST_CHANGES];
    if (!split_read(r, a, s, e) || !split_find(x, r, e))
        return false;
    *told = str_format(a, "%d changes, %.1f s an iteration", split_advice(changes, r, x),
                       x->choices[SPLIT_BEST].iteration);
    return true;
}

int main(void)
{
    return bench_rows(divisions, COUNT_OF(divisions), divide);
}
