// How long a prediction takes, one thread: three steps simulated and replayed. Run the release
// build.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/predict/predict.h"

enum { ARENA_BYTES = 1 << 30, ROUNDS = 20 };

static double seconds(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool run(struct arena a, const char *settings)
{
    struct settings s = settings_in(&a);
    struct error e = {0};
    struct job job;
    struct prediction p;
    return settings_read(&s, str_from(settings), ' ', STR("bench"), &e) &&
           job_from_settings(&job, &a, &s, &e) && predict(&p, &a, &job, &e);
}

int main(void)
{
    static const char *const plans[] = {
        "model=Qwen3-8B gpu=8xH200 context=4096",
        "model=Qwen3-8B gpu=8xH200 context=32768",
        "model=Qwen3-8B gpu=8xH200 context=32768 layers=18",
        "model=Qwen3-8B gpu=8xH200 context=262144 loss=chunked:2048",
        "model=Qwen2.5-72B gpu=4x8xH200 context=32768",
        "model=Qwen3-235B-A22B gpu=8x8xH200 context=16384",
    };
    void *block = malloc(ARENA_BYTES);
    if (!block)
        return EXIT_FAILURE;
    for (ptrdiff_t i = 0; i < COUNT_OF(plans); i++) {
        struct arena a = arena_over(block, ARENA_BYTES, NULL);
        double start = seconds();
        for (int round = 0; round < ROUNDS; round++)
            if (!run(a, plans[i]))
                return EXIT_FAILURE;
        printf("%6.1f ms  %s\n", (seconds() - start) * 1000 / ROUNDS, plans[i]);
    }
    free(block);
    return EXIT_SUCCESS;
}
