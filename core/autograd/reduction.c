// The scratch of a sum over rows, which gradients of broadcast inputs and of biases are.
#include "core/autograd/graph.h"
#include "core/base/num.h"

static uint64_t power_of_two_below(uint64_t n)
{
    uint64_t power = 1;
    while (2 * power <= n)
        power *= 2;
    return power;
}

// ATen/native/cuda/Reduce.cuh, setReduceConfig for a sum over rows: up to four outputs a thread,
// 512 threads' worth a block, at least 16 and at most 256 values a thread.
void reduction_scratch(struct graph *g, const struct reduction *r)
{
    uint64_t vector = 4, rows = r->inputs_per_output;
    if (!r->outputs)
        return;
    while (r->outputs % vector)
        vector /= 2;
    uint64_t across = r->outputs / vector, threads = 512 / vector;
    uint64_t width = u64_least(power_of_two_below(across), 32);
    uint64_t height = u64_least(power_of_two_below(rows), threads / width);
    width = u64_least(power_of_two_below(across), threads / height);
    ASSERT(width && height);
    uint64_t values = u64_divide_up(rows, height), grid = u64_divide_up(across, width);
    uint64_t target = g->multiprocessors * (g->threads_per_multiprocessor / (width * height));
    if (rows < u64_least(16 * height, 256) || values < 256 || grid > target)
        return;
    uint64_t splits = u64_least(u64_divide_up(target, grid), u64_divide_up(values, 16));
    uint64_t fewest = u64_divide_up(values, 256);
    splits = splits > fewest ? splits : fewest;
    if (splits <= 1)
        return;
    struct storage *partial =
        machine_take(g->machine, 4 * r->outputs * splits * width * vector, MEMORY_WORKSPACE);
    machine_scratch(g->machine, 4 * grid);
    machine_drop(g->machine, partial);
}
