// Tasks on threads: each runs once, with memory of its own, and the end is told.
#include "host/system/task_pool.h"

#include "tests/support/t.h"

enum { TASKS = 500 };

struct sums {
    uint64_t squares[TASKS];
    ptrdiff_t last_done, calls;
};

static void square(void *context, ptrdiff_t index, struct arena scratch)
{
    struct sums *s = context;
    uint64_t *steps = NEW(&scratch, uint64_t, index + 1);
    for (ptrdiff_t i = 0; i <= index; i++)
        steps[i] = (uint64_t)index;
    for (ptrdiff_t i = 0; i <= index; i++)
        s->squares[index] += steps[i];
}

static void note(void *context, ptrdiff_t done, ptrdiff_t total)
{
    struct sums *s = context;
    CHECK(done >= s->last_done && done <= total);
    s->last_done = done;
    s->calls++;
}

static void run_with(int threads, ptrdiff_t count)
{
    struct sums *s = NEW(test_arena(), struct sums, 1);
    struct task_pool pool = {.threads = threads, .progress = note, .context = s};
    struct runner runner = task_pool_runner(&pool);
    struct arena unused = {0};
    runner_run(&runner, unused, &(struct tasks){count, square, s});
    CHECK(!count || pool.memory[0].block);
    task_pool_release(&pool);
    CHECK(!pool.memory[0].block);
    for (ptrdiff_t i = 0; i < count; i++)
        CHECK_U64(s->squares[i], (uint64_t)(i * (i + 1)));
    CHECK_U64((uint64_t)s->last_done, (uint64_t)count);
    CHECK(s->calls > 0);
}

TEST(every_task_runs_once)
{
    run_with(1, TASKS);
    run_with(4, TASKS);
    run_with(64, 3);
    run_with(0, TASKS);
    run_with(2, 0);
}

TEST(without_a_runner_they_run_in_order)
{
    struct arena *a = test_arena();
    struct sums *s = NEW(a, struct sums, 1);
    runner_run(NULL, *a, &(struct tasks){TASKS, square, s});
    CHECK_U64(s->squares[TASKS - 1], (uint64_t)TASKS * (TASKS - 1));
}
