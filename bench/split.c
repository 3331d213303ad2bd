// How long a division takes, with all that is told beside it; beside what it may take. Run the
// release build on a machine that does nothing else.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/search/split.h"
#include "host/system/memory.h"

#define MODELS "teacher=Qwen3-VL-30B-A3B-Thinking model=Qwen3-VL-4B-Thinking images=1 gpu="

static const struct {
    const char *settings;
    double allowed;
} divisions[] = {
    {MODELS "8xH100-80G", 1},
    {MODELS "2x8xH100-80G", 1},
    {MODELS "8x8xH100-80G", 1},
    {MODELS "128x8xH100-80G", 1},
};

static double seconds(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool time_division(struct arena a, ptrdiff_t i, struct error *e)
{
    struct settings s = settings_in(&a);
    struct split_request *r = NEW(&a, struct split_request, 1);
    struct split_result *x = NEW(&a, struct split_result, 1);
    struct split_change changes[SPLIT_MOST_CHANGES];
    double start = seconds();
    if (!settings_read(&s, str_from(divisions[i].settings), ' ', STR("bench"), e) ||
        !split_read(r, &a, &s, e) || !split_find(x, r, e))
        return false;
    int count = split_advice(changes, r, x);
    double took = seconds() - start;
    printf("%6.2f s%s  %d changes, %.1f s an iteration: %s\n", took,
           took > divisions[i].allowed ? " TOO SLOW" : "", count, x->choices[SPLIT_BEST].iteration,
           divisions[i].settings);
    return true;
}

int main(void)
{
    struct host_memory memory;
    struct error e = {0};
    bool ok = host_memory_reserve(&memory, &e);
    if (!ok)
        return EXIT_FAILURE;
    for (ptrdiff_t i = 0; ok && i < COUNT_OF(divisions); i++)
        ok = time_division(host_arena(&memory, NULL), i, &e);
    if (!ok)
        printf("%s\n", e.message);
    host_memory_release(&memory);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
