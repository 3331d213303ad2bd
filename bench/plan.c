// How long a plan takes, with all that is told beside it, on as many threads as there are
// processors; beside what it may take. Run the release build on a machine that does nothing else.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/plan/story.h"
#include "host/system/memory.h"
#include "host/system/task_pool.h"

static const struct {
    const char *settings;
    double allowed;
} plans[] = {
    {"recipe=trl task=reward model=Qwen3-4B gpu=8xRTX4090 context=2048 global-batch=128", 1},
    {"recipe=trl model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32", 1},
    {"recipe=trl model=Qwen3-8B gpu=H200 context=8192 global-batch=32", 1},
    {"recipe=trl model=Qwen3-8B gpu=64x8xH100-80G context=16384 global-batch=1024", 3},
    {"recipe=trl model=Qwen3-32B gpu=512x8xH100-80G context=16384 global-batch=8192", 10},
    {"recipe=trl model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32 goal=memory", 1},
    {"recipe=trl model=Qwen3-8B gpu=64x8xH100-80G context=16384 global-batch=1024 goal=memory", 3},
    {"recipe=trl model=Qwen3-32B gpu=512x8xH100-80G context=16384 global-batch=8192 goal=memory",
     10},
    {"recipe=trl model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32 goal=cost", 1},
};

static double seconds(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool time_plan(struct arena a, ptrdiff_t i, struct error *e)
{
    struct settings s = settings_in(&a);
    struct plan_story *story = NEW(&a, struct plan_story, 1);
    struct plan_request r;
    struct task_pool pool = {0};
    struct runner runner = task_pool_runner(&pool);
    double start = seconds();
    if (!settings_read(&s, str_from(plans[i].settings), ' ', STR("bench"), e) ||
        !plan_request_read(&r, &s, e) || !plan_tell(story, &a, &r, &runner, e))
        return false;
    double took = seconds() - start;
    printf("%6.2f s%s  %lld of %lld configurations: %s\n", took,
           took > plans[i].allowed ? " TOO SLOW" : "", (long long)story->plan.predicted,
           (long long)story->plan.all, plans[i].settings);
    return true;
}

int main(void)
{
    struct host_memory memory;
    struct error e = {0};
    bool ok = host_memory_reserve(&memory, &e);
    if (!ok)
        return EXIT_FAILURE;
    for (ptrdiff_t i = 0; ok && i < COUNT_OF(plans); i++)
        ok = time_plan(host_arena(&memory, NULL), i, &e);
    if (!ok)
        printf("%s\n", e.message);
    host_memory_release(&memory);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
