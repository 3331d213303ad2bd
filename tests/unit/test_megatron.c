// Megatron's step: what a rank has of a model, and what the stages of a pipeline hold. How close it
// is to real runs is tests/measured/megatron.py's business.
#include <stdio.h>

#include "core/models/megatron/megatron.h"
#include "core/predict/predict.h"
#include "core/recipes/run.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static struct prediction predicted(const char *settings)
{
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct prediction p = {0};
    struct error e;
    if (!job_of(job, a, settings, &e) || !predict(&p, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return p;
}

// Of all parameters of a rank.
static uint64_t elements_of(const char *settings, uint64_t *all)
{
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct run *run = NEW(a, struct run, 1);
    struct trace trace = trace_passing(a);
    struct error e;
    uint64_t sum = 0;
    if (!job_of(job, a, settings, &e)) {
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
        return 0;
    }
    uint16_t stream;
    for (uint64_t i = 0; i < MACHINE_STREAMS; i++)
        CHECK(trace_stream(&stream, &trace, i, &e));
    struct machine machine = machine_with(a, &trace);
    run_build(run, job, &machine);
    const struct graph *g = &run->trainer.graph;
    for (int i = 0; i < g->parameter_count; i++)
        sum += g->parameters[i].rows * g->parameters[i].columns;
    *all = job->parameters.total;
    return sum;
}

// The two lists of parameters are one model: vocabularies here are multiples of 128.
TEST(megatrons_parameters_are_the_models)
{
    static const char *const rows[] = {
        "model=Llama-3.1-8B",
        "model=Qwen3-8B",
        "model=Qwen2.5-7B",
        "model=Qwen3-0.6B",
        "model=Qwen3-30B-A3B",
        "model=Mixtral-8x7B-v0.1 layers=5",
        "model=DeepSeek-V2-Lite layers=5",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        char settings[160];
        uint64_t all = 0;
        (void)snprintf(settings, sizeof settings,
                       "%s gpu=8xH200 context=2048 recipe=megatron task=sft", rows[i]);
        uint64_t own = elements_of(settings, &all);
        if (own != all)
            test_failed(__FILE__, __LINE__, "%s: %llu parameters, not %llu", rows[i],
                        (unsigned long long)own, (unsigned long long)all);
    }
}

#define LLAMA "model=Llama-3.1-8B gpu=8xH200 context=2048 recipe=megatron task=sft loss=fused "

// Norms are whole on every tensor parallel rank, matrices are cut.
TEST(tensor_parallel_cuts_matrices)
{
    enum { NORMS = 65 * 4096 };
    uint64_t all, whole = elements_of(LLAMA, &all), part = elements_of(LLAMA "tp=2", &all);
    CHECK_U64((part - NORMS) * 2 + NORMS, whole);
}

TEST(stages_share_the_layers)
{
    uint64_t all, sum = 0, turns = 0, whole = elements_of(LLAMA, &all);
    for (int i = 0; i < 4; i++) {
        char settings[160];
        (void)snprintf(settings, sizeof settings, LLAMA "pp=4 pp-rank=%d accum=4", i);
        sum += elements_of(settings, &all);
        (void)snprintf(settings, sizeof settings, LLAMA "pp=4 virtual-pp=2 accum=4 pp-rank=%d", i);
        turns += elements_of(settings, &all);
    }
    CHECK_U64(sum, whole);
    CHECK_U64(turns, whole);
}

// An earlier stage waits for more micro-batches to come back, and several stages a rank for more.
TEST(earlier_stages_hold_more)
{
    struct prediction middle = predicted(LLAMA "pp=4 pp-rank=2 accum=8");
    struct prediction second = predicted(LLAMA "pp=4 pp-rank=1 accum=8");
    struct prediction turns = predicted(LLAMA "pp=4 pp-rank=1 accum=8 virtual-pp=2");
    CHECK(second.allocated_bytes > middle.allocated_bytes);
    CHECK(turns.allocated_bytes > second.allocated_bytes);
    CHECK_U64(turns.steps[2].end_allocated_bytes, second.steps[2].end_allocated_bytes);
}

// The answer of a pipeline is its largest stage's.
TEST(the_largest_stage_answers)
{
    uint64_t reserved = 0, allocated = 0;
    for (int i = 0; i < 4; i++) {
        char settings[160];
        (void)snprintf(settings, sizeof settings, LLAMA "pp=4 accum=8 pp-rank=%d", i);
        struct prediction p = predicted(settings);
        reserved = p.reserved_bytes > reserved ? p.reserved_bytes : reserved;
        allocated = p.allocated_bytes > allocated ? p.allocated_bytes : allocated;
    }
    struct prediction p = predicted(LLAMA "pp=4 accum=8");
    CHECK_U64(p.reserved_bytes, reserved);
    CHECK_U64(p.allocated_bytes, allocated);
}

// 6 bytes a parameter and 12 over the ranks that share the optimizer's state, 10 without masters,
// none in host memory.
TEST(the_optimizer_is_spread)
{
    struct prediction plain = predicted(LLAMA), aware = predicted(LLAMA "precision-aware=on");
    struct prediction host = predicted(LLAMA "offload=optimizer");
    uint64_t all, part = elements_of(LLAMA, &all) / 8;
    uint64_t saved = plain.steps[2].end_allocated_bytes - aware.steps[2].end_allocated_bytes;
    uint64_t moved = plain.steps[2].end_allocated_bytes - host.steps[2].end_allocated_bytes;
    CHECK(saved > 2 * part - part / 50 && saved < 2 * part + part / 50);
    CHECK(moved > 12 * part - part / 10 && moved < 12 * part + part / 10);
    CHECK(host.host_bytes > 0);
}

TEST(recomputation_and_context_parallel_take_less)
{
    struct prediction plain = predicted(LLAMA "tp=2");
    struct prediction full = predicted(LLAMA "tp=2 checkpointing=on");
    struct prediction p2p = predicted(LLAMA "tp=2 cp=2");
    struct prediction a2a = predicted(LLAMA "tp=2 cp=2 cp-comm=a2a");
    CHECK(full.allocated_bytes < plain.allocated_bytes);
    CHECK(p2p.allocated_bytes < plain.allocated_bytes);
    CHECK(a2a.allocated_bytes < plain.allocated_bytes);
}

// A sample that is longer than the limit has a micro-batch of its own.
// The first so many layers of each stage: each that is recomputed takes less and costs the same,
// and all of them are what the switch means.
TEST(some_layers_are_recomputed)
{
    static const char *const counts[] = {"off", "4", "8", "12", "16"};
    struct prediction before = {0};
    for (ptrdiff_t i = 0; i < COUNT_OF(counts); i++) {
        char settings[160];
        (void)snprintf(settings, sizeof settings, LLAMA "pp=2 accum=2 checkpointing=%s", counts[i]);
        struct prediction p = predicted(settings);
        CHECK(!i ||
              (p.allocated_bytes < before.allocated_bytes && p.time.seconds > before.time.seconds));
        before = p;
    }
    struct prediction all = predicted(LLAMA "pp=2 accum=2 checkpointing=on");
    CHECK_U64(before.allocated_bytes, all.allocated_bytes);
    CHECK_U64(before.reserved_bytes, all.reserved_bytes);
    struct prediction turns = predicted(LLAMA "pp=2 virtual-pp=2 accum=2 checkpointing=8");
    struct prediction whole = predicted(LLAMA "pp=2 virtual-pp=2 accum=2 checkpointing=on");
    CHECK_U64(turns.allocated_bytes, whole.allocated_bytes);
}

TEST(slime_fills_micro_batches_by_tokens)
{
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct error e;
    CHECK(job_of(job, a,
                 "model=Qwen3-4B gpu=8xH200 recipe=megatron context=4096 max-token-len=9000", &e));
    CHECK_U64(job->batch, 2);
    CHECK_U64(job->accumulation, 8);
    CHECK(job_of(job, a,
                 "model=Qwen3-4B gpu=8xH200 recipe=megatron context=4096 max-token-len=1000", &e));
    CHECK_U64(job->batch, 1);
    CHECK(job_of(job, a,
                 "model=Qwen3-4B gpu=8xH200 recipe=megatron cp=2 context=4096 max-token-len=8192",
                 &e));
    CHECK_U64(job->batch, 4);
}
