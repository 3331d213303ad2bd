// See bench.h.
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double bench_seconds(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool bench_settings(struct settings *s, struct arena *a, const char *text, struct error *e)
{
    *s = settings_in(a);
    return settings_read(s, str_from(text), ' ', STR("bench"), e) && settings_check(s, e);
}

static bool time_row(struct arena a, const struct bench_row *row, bench_question *question,
                     struct error *e)
{
    struct settings s;
    struct str told;
    double start = bench_seconds(), used = (double)clock() / CLOCKS_PER_SEC;
    if (!bench_settings(&s, &a, row->settings, e) || !question(&told, &a, &s, e))
        return false;
    double took = bench_seconds() - start;
    used = (double)clock() / CLOCKS_PER_SEC - used;
    printf("%6.2f s%s (%.2f of processors)  %.*s: %s\n", took,
           took > row->allowed ? " TOO SLOW" : "", used, STR_ARGS(told), row->settings);
    return true;
}

int bench_rows(const struct bench_row *rows, ptrdiff_t count, bench_question *question)
{
    struct host_memory memory;
    struct error e = {0};
    if (!host_memory_reserve(&memory, &e))
        return EXIT_FAILURE;
    bool ok = true;
    for (ptrdiff_t i = 0; ok && i < count; i++)
        ok = time_row(host_arena(&memory, NULL), &rows[i], question, &e);
    if (!ok)
        printf("%s\n", e.message);
    host_memory_release(&memory);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
