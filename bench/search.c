// How long searches take: the longest context of single configurations, and a whole guide on as
// many threads as there are processors. With "check", also whether the search finds what trying
// every length finds, over the guide's configurations. Run the release build.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/search/guide.h"
#include "host/system/task_pool.h"

enum { ROUNDS = 3 };

static const char *const plans[] = {
    "model=Qwen3-8B gpu=8xH100-80G",
    "model=Qwen3-8B gpu=8xH100-80G expandable=on",
    "model=Qwen3-8B gpu=4xA100-80G sp=2 recipe=trinity grid=trinity",
    "model=Qwen3-14B gpu=6xA100-80G sp=2 recipe=trinity grid=trinity",
    "model=Qwen3-0.6B gpu=4xA100-80G sp=4 recipe=trinity grid=trinity expandable=on",
    "model=Qwen3-14B gpu=4xA100-80G sp=4 recipe=trinity grid=trinity expandable=on offload=all",
};

static const char whole_guide[] = "model=Qwen3-0.6B,Qwen3-1.7B,Qwen3-4B,Qwen3-8B,Qwen3-14B "
                                  "gpu=1,2,4,6xA100-80G recipe=trinity";

static int failed(const struct error *e)
{
    printf("%s\n", e->message);
    return EXIT_FAILURE;
}

static bool time_plan(struct arena a, const char *text, struct error *e)
{
    struct settings s;
    struct capacity c;
    struct capacity_request r = {.settings = &s, .grid = {.step = GRID_DEFAULT_STEP}};
    if (!bench_settings(&s, &a, text, e) || !grid_parse(&r.grid, settings_find_z(&s, "grid"), e))
        return false;
    double best = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_seconds();
        if (!capacity_find(&c, a, &r, e))
            return false;
        double took = bench_seconds() - start;
        best = i && best < took ? best : took;
    }
    printf("%7.1f ms  %7llu tokens, %2d simulations, %2d replays: %s\n", best * 1000,
           (unsigned long long)c.context, c.simulations, c.replays, text);
    return true;
}

static bool time_guide(struct guide *g, struct arena *a, struct error *e)
{
    struct settings s;
    struct task_pool pool = {0};
    struct runner runner = task_pool_runner(&pool);
    double start = bench_seconds();
    bool ok = bench_settings(&s, a, whole_guide, e) && guide_make(g, a, &s, &runner, e);
    task_pool_release(&pool);
    if (!ok)
        return false;
    int searches = 0, simulations = 0, replays = 0;
    for (ptrdiff_t i = 0; i < g->sweep.cell_count; i++) {
        searches += g->sweep.cells[i].possible;
        simulations += g->sweep.cells[i].capacity.simulations;
        replays += g->sweep.cells[i].capacity.replays;
    }
    printf("%7.1f ms  a guide: %d searches, %d simulations, %d replays\n",
           (bench_seconds() - start) * 1000, searches, simulations, replays);
    return true;
}

// The searches of the guide again, length by length.
struct check {
    const struct guide *guide;
    struct capacity *scanned;
};

static void scan(void *context, ptrdiff_t index, struct arena scratch)
{
    struct check *c = context;
    struct cell *cell = &c->guide->sweep.cells[index];
    struct capacity_request r = c->guide->request;
    struct error e = {0};
    r.settings = &cell->settings;
    if (cell->possible && !capacity_scan(&c->scanned[index], scratch, &r, &e))
        printf("%s\n", e.message);
}

static int check(struct arena *a, const struct guide *g)
{
    struct check c = {g, NEW(a, struct capacity, g->sweep.cell_count)};
    struct task_pool pool = {0};
    struct runner runner = task_pool_runner(&pool);
    runner_run(&runner, *a, &(struct tasks){g->sweep.cell_count, scan, &c});
    task_pool_release(&pool);
    int different = 0, replays = 0;
    for (ptrdiff_t i = 0; i < g->sweep.cell_count; i++) {
        const struct capacity *found = &g->sweep.cells[i].capacity;
        different += !capacity_same(found, &c.scanned[i]);
        replays += c.scanned[i].replays;
    }
    printf("            %d searches find something else than trying every length (%d replays)\n",
           different, replays);
    return different ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct host_memory memory;
    struct error e = {0};
    if (!host_memory_reserve(&memory, &e))
        return failed(&e);
    struct arena a = host_arena(&memory, NULL);
    for (ptrdiff_t i = 0; i < COUNT_OF(plans); i++)
        if (!time_plan(a, plans[i], &e))
            return failed(&e);
    struct guide *g = NEW(&a, struct guide, 1);
    if (!time_guide(g, &a, &e))
        return failed(&e);
    int status = argc > 1 && strcmp(argv[1], "check") == 0 ? check(&a, g) : EXIT_SUCCESS;
    host_memory_release(&memory);
    return status;
}
