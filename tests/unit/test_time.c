// Kernels by shape, streams and the host before them, collectives on their links. That the
// constants are right is for measured steps to say (step_times.py).
#include "core/ops/ops.h"
#include "core/time/timeline.h"
#include "tests/support/t.h"

static struct timeline on(const char *card, const struct network *n)
{
    struct timeline t = {0};
    timeline_start(&t, gpu_find(str_from(card)), n);
    return t;
}

static bool is_near(double value, double wanted, double part)
{
    return value > wanted * (1 - part) && value < wanted * (1 + part);
}

// A tile more than the multiprocessors can have at once costs another wave, unless the depth can be
// split.
TEST(a_tile_more_costs_a_wave)
{
    struct network none = {.silent = true};
    struct timeline t = on("H200", &none);
    struct product_shape full = {1536, 2816, 4096, 1, 2}, more = full, deep = full;
    more.columns += 256;
    deep.depth *= 2;
    double one = product_seconds(&t.rates, &full) - t.rates.kernel_gap;
    double two = product_seconds(&t.rates, &more) - t.rates.kernel_gap;
    CHECK(two > 1.15 * one); // a twelfth more work
    CHECK(is_near(product_seconds(&t.rates, &deep) - t.rates.kernel_gap, 2 * one, 0.001));
    CHECK(is_near(product_flops(&full) / one, t.rates.product_flops, 0.001));
}

// What is thin is read as fast as memory goes.
TEST(thin_products_are_bound_by_memory)
{
    struct network none = {.silent = true};
    struct timeline t = on("H200", &none);
    struct product_shape thin = {16, 65536, 4096, 1, 2};
    double bytes = 2.0 * (16 * 4096 + 4096.0 * 65536 + 16 * 65536);
    CHECK(product_seconds(&t.rates, &thin) >= bytes / t.rates.bandwidth);
}

TEST(causal_attention_leaves_out_half)
{
    struct network none = {.silent = true};
    struct timeline t = on("H200", &none);
    struct attending_shape a = {
        .rows = 1, .tokens = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128};
    struct attending_shape all = a, back = a;
    all.all_pairs = true;
    back.backward = true;
    CHECK(is_near(attending_flops(&all), 2 * attending_flops(&a), 0.001));
    CHECK(is_near(attending_flops(&back), 2 * attending_flops(&a), 0.001));
    CHECK(attending_seconds(&t.rates, &all) > 2 * attending_seconds(&t.rates, &a));
}

// The backward pass of a linear layer multiplies twice as much as its forward pass.
TEST(a_linear_layer_multiplies_thrice)
{
    struct network none = {.silent = true};
    struct timeline time = on("H200", &none);
    struct trace trace = trace_in(test_arena());
    struct machine machine = machine_with(test_arena(), &trace);
    machine.time = &time;
    struct parameter weight = {.rows = 4096, .columns = 1024, .width = 2};
    struct graph g = {.machine = &machine,
                      .recording = true,
                      .keeping = true,
                      .parameters = &weight,
                      .parameter_count = 1};
    struct var x = graph_output(&g, graph_add(&g, &operation_pass), 524288, 2);
    struct var y = op_linear(&g, x, 0, -1);
    double forward = time.now.flops;
    CHECK(is_near(forward, 2.0 * 512 * 1024 * 4096, 1e-9));
    var_drop(&g, &x);
    struct var loss = op_mean(&g, y, 1);
    var_drop(&g, &y);
    graph_backward(&g, loss);
    CHECK(is_near(time.now.flops, 3 * forward, 1e-9));
}

// The host is ahead by so many kernels and no more; then it waits for the card.
TEST(the_host_runs_ahead_by_a_queue)
{
    struct network none = {.silent = true};
    struct timeline t = on("H200", &none);
    for (int i = 0; i < MOST_LAUNCHES_AHEAD; i++)
        timeline_work(&t, 0, WORK_MEMORY, 1e-3);
    CHECK(t.now.host < 0.01);
    for (int i = 0; i < MOST_LAUNCHES_AHEAD; i++)
        timeline_work(&t, 0, WORK_MEMORY, 1e-3);
    CHECK(is_near(t.now.host, (double)MOST_LAUNCHES_AHEAD * 1e-3, 0.01));
    timeline_synchronize(&t, 0);
    CHECK(is_near(t.now.host, 2.0 * (double)MOST_LAUNCHES_AHEAD * 1e-3, 0.01));
    CHECK(t.now.starved < 1e-4);
}

// A card that has nothing to do is starved by its host.
TEST(a_slow_host_starves_the_card)
{
    struct network none = {.silent = true};
    struct timeline t = on("H200", &none);
    for (int i = 0; i < 100; i++) {
        timeline_host(&t, 20e-6);
        timeline_work(&t, 0, WORK_MEMORY, 1e-6);
    }
    CHECK(t.now.starved > 0.9 * t.now.host);
}

// Every second of a kernel is in one of the stretches, also where it crosses from one to the next.
TEST(activity_is_what_streams_were_busy_with)
{
    struct network none = {.silent = true};
    struct timeline t = on("H200", &none);
    struct activity *a = NEW(test_arena(), struct activity, 1);
    a->seconds = 0.1;
    t.activity = a;
    timeline_work(&t, 0, WORK_ATTENTION, 1); // of a step before
    timeline_synchronize(&t, 0);
    (void)timeline_begin(&t);
    for (int i = 0; i < 30; i++)
        timeline_work(&t, i % 3 ? 0 : 1, i % 3 ? WORK_PRODUCTS : WORK_COLLECTIVE, 0.9e-3);
    double sums[WORK_KINDS] = {0};
    for (int kind = 0; kind < WORK_KINDS; kind++)
        for (int i = 0; i < ACTIVITY_POINTS; i++)
            sums[kind] += a->busy[kind][i];
    CHECK(is_near(sums[WORK_PRODUCTS], 20 * 0.9e-3, 1e-6));
    CHECK(is_near(sums[WORK_COLLECTIVE], 10 * 0.9e-3, 1e-6));
    CHECK(sums[WORK_ATTENTION] <= 0);
    timeline_work(&t, 0, WORK_MEMORY, 0.5); // longer than the picture
    CHECK(a->busy[WORK_MEMORY][ACTIVITY_POINTS - 1] > 0);
}

// What is repeated moves every clock alike.
TEST(what_is_repeated_takes_as_long)
{
    struct network none = {.silent = true};
    struct timeline t = on("H200", &none), all = t;
    for (int i = 0; i < 10; i++) {
        struct elapsed before = t.now;
        timeline_work(&all, 0, WORK_PRODUCTS, 1e-3);
        if (i < 2)
            timeline_work(&t, 0, WORK_PRODUCTS, 1e-3);
        if (i == 1)
            timeline_repeat(&t, &before, 8);
    }
    CHECK(is_near(t.now.compute, all.now.compute, 0.001));
    CHECK(is_near(t.now.busy[WORK_PRODUCTS], all.now.busy[WORK_PRODUCTS], 0.001));
}

static struct network network(const char *spec, const char *given)
{
    struct hardware h;
    struct error e = {0};
    struct network n;
    struct setting gpu = {.key = STR("gpu"), .value = str_from(spec), .where = STR("--gpu")};
    struct setting net = {
        .key = STR("network"), .value = str_from(given ? given : ""), .where = STR("--network")};
    CHECK(hardware_from_spec(&h, test_arena(), &gpu, &e));
    CHECK(network_of(&n, &h, given ? &net : NULL, &e));
    return n;
}

// ml-engineering 744d01e: 16 GiB gathered over 8 x H200 at 361 GB/s.
TEST(collectives_reach_published_rates)
{
    struct network h200 = network("8xH200", NULL), nodes = network("2x8xH200", "50");
    double bytes = 16.0 * 1024 * 1024 * 1024;
    double seconds = collective_seconds(&h200, GATHER, 8, bytes);
    CHECK(is_near(bytes * 7 / 8 / seconds, 361e9, 0.03));
    CHECK(is_near(collective_seconds(&h200, ALL_REDUCE, 8, bytes), 2 * seconds, 0.01));
    CHECK(is_near(bytes * 15 / 16 / collective_seconds(&nodes, GATHER, 16, bytes), 50e9, 0.01));
    CHECK(collective_seconds(&h200, GATHER, 1, bytes) == 0);
    // eight shards share what a node sends
    CHECK(is_near(bytes / collective_seconds(&nodes, REPLICA_REDUCE, 2, bytes), 50e9 / 8, 0.01));
    struct network silent = network("8xH200", "none");
    CHECK(collective_seconds(&silent, GATHER, 8, bytes) == 0);
}

// Every eighth rank of two nodes is on another: as many rings as a node has GPUs share what it
// sends. Of what 16 ranks exchange, half is for the other node.
TEST(ranks_apart_are_on_other_nodes)
{
    struct network nodes = network("2x8xH200", "50");
    double bytes = 16.0 * 1024 * 1024 * 1024;
    struct ranks_apart far = {2, 8}, near = {4, 2}, all = {16, 1};
    CHECK(is_near(bytes / 2 / group_seconds(&nodes, GATHER, far, bytes), 50e9 / 8, 0.01));
    CHECK(is_near(group_seconds(&nodes, GATHER, near, bytes),
                  collective_seconds(&nodes, GATHER, 4, bytes), 0.001));
    CHECK(is_near(bytes / 2 / group_seconds(&nodes, ALL_TO_ALL, all, bytes), 50e9 / 8, 0.01));
    CHECK(handing_seconds(&nodes, 16, bytes) > 10 * handing_seconds(&nodes, 8, bytes));
}

// A product that adds to fp32 reads and writes four bytes for each two that it would write.
TEST(what_a_product_adds_to_is_read)
{
    struct network none = {.silent = true};
    struct timeline t = on("B200", &none);
    struct product_shape plain = {57344, 8192, 4096, 1, 2}, added = plain, thin = plain;
    added.added = thin.added = true;
    thin.depth = 64;
    double more = product_seconds(&t.rates, &added) - product_seconds(&t.rates, &plain);
    double elements = (double)plain.rows * (double)plain.columns;
    CHECK(is_near(more, 4 * elements / t.rates.bandwidth, 0.001));
    CHECK(product_seconds(&t.rates, &thin) > 8 * elements / t.rates.bandwidth);
}

// SimuMax 4dcaae5's table for one B200: 4096 x 8192 x 57344 at 0.487 of 2250e12 over 75 calls; its
// steps on eight of them are slower by a tenth.
TEST(products_on_b200_last_at_what_was_measured)
{
    struct network none = {.silent = true};
    struct timeline t = on("B200", &none);
    struct rates lasting = rates_lasting(&t.burst, 1);
    struct product_shape large = {4096, 57344, 8192, 1, 2};
    double part = product_flops(&large) / product_seconds(&lasting, &large) / 2250e12;
    CHECK(part < 0.487 && part > 0.487 * 0.88);
}

// A block that another stream may still use comes back once the host's clock is past that use,
// though nobody has waited for it.
TEST(a_waiting_free_is_done_by_the_clock)
{
    struct network none = {.silent = true};
    struct timeline time = on("H200", &none);
    struct trace trace = trace_in(test_arena());
    struct machine m = machine_with(test_arena(), &trace);
    m.time = &time;
    struct storage *s = machine_take_on(&m, FIRST_SIDE_STREAM, 512, MEMORY_WORKING);
    machine_take(&m, 512, MEMORY_WORKING);
    timeline_work(&time, STREAM_COMPUTE, WORK_MEMORY, 1);
    machine_drop_after(&m, s, STREAM_COMPUTE);
    machine_take(&m, 512, MEMORY_WORKING);
    CHECK(m.first_waiting == s);
    timeline_host(&time, 2);
    machine_take(&m, 512, MEMORY_WORKING);
    CHECK(m.first_waiting == NULL);
}
