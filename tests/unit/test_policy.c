// The step of a policy as Trinity-RFT trains it: packed by tokens, with a reference model and an
// entropy.
#include <string.h>

#include "core/predict/predict.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

#define PLAYED "recipe=trinity memory-limit=77.15GiB tied=off accum=2 reshard=off torch=2.11 "

// Measured on an H200: tests/runs/trinity_played.jsonl.
TEST(trinity_is_as_played)
{
    struct prediction p =
        predicted_in(test_arena(), PLAYED "model=Qwen3-0.6B gpu=H200 context=20480");
    CHECK(p.fits);
    CHECK_U64((uint64_t)p.steps_done, 2);
    CHECK_U64(p.steps[0].allocated_bytes, 60078908416);
    CHECK_U64(p.steps[1].allocated_bytes, 66091968000);
    CHECK_U64(p.steps[1].end_allocated_bytes, 10592186880);
    p = predicted_in(test_arena(), PLAYED "model=Qwen3-0.6B gpu=H200 context=24576");
    CHECK(!p.fits);
    CHECK_U64(p.allocated_bytes, 67536352256);
    CHECK(p.phase == PHASE_BACKWARD);
}

TEST(fused_kernels_need_no_logits_of_all_tokens)
{
    static const char settings[] = "recipe=trinity model=Qwen3-8B layers=4 gpu=4xH200 context=8192";
    struct arena *a = test_arena();
    struct prediction p = predicted_in(test_arena(), settings);
    struct prediction fused = predicted_in(a, str_format(a, "%s fused-kernels=on", settings).p);
    uint64_t logits = 2 * UINT64_C(16384) * 151936;
    CHECK(p.allocated_bytes - fused.allocated_bytes > 2 * logits);
    // nothing is left over but what blocks have beyond their requests
    CHECK(fused.steps[1].end_allocated_bytes - p.steps[1].end_allocated_bytes < 4 * MIB);
}

static bool is_near(uint64_t mine, uint64_t measured)
{
    return (mine > measured ? mine - measured : measured - mine) < measured / 1000;
}

// Measured on an H200: tests/runs/h200_entropy.jsonl.
TEST(policy_losses_are_as_measured)
{
    static const struct {
        const char *settings;
        uint64_t first, second;
    } rows[] = {
        {"context=5000 entropy-saving=on", 20242377728, 25012272640},
        {"context=10240 entropy-saving=on", 34153376768, 38922817024},
        {"context=10240 fused-kernels=on", 13184285184, 15339695104},
        {"context=10240 fused-kernels=on entropy-saving=on", 13184285184, 15339695104},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct str text = str_format(a, "recipe=trinity model=Qwen3-0.6B gpu=H200 torch=2.11 %s",
                                     rows[i].settings);
        struct prediction p = predicted_in(a, text.p);
        CHECK(is_near(p.steps[0].allocated_bytes, rows[i].first));
        CHECK(is_near(p.steps[1].allocated_bytes, rows[i].second));
    }
}

// Nothing of a chunk's size before the third chunk; none of it is left over.
TEST(an_entropy_in_chunks_keeps_pieces_until_its_end)
{
    static const char settings[] = "recipe=trinity model=Qwen3-8B layers=4 gpu=4xH200 context=%d "
                                   "entropy-saving=%s";
    static const struct {
        int context;
        bool more;
    } rows[] = {{2048, false}, {5000, true}, {8192, false}, {10240, true}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct prediction off = predicted_in(a, str_format(a, settings, rows[i].context, "off").p);
        struct prediction on = predicted_in(a, str_format(a, settings, rows[i].context, "on").p);
        CHECK((on.allocated_bytes > off.allocated_bytes + 64 * MIB) == rows[i].more);
        CHECK(on.steps[1].end_allocated_bytes <= off.steps[1].end_allocated_bytes + 4 * MIB);
    }
}

// Eight sequences in as few micro-batches as the limit allows.
TEST(trinity_packs_sequences_by_tokens)
{
    static const struct {
        const char *limit;
        uint64_t batch, accumulation;
    } rows[] = {{"8192", 1, 8}, {"16384", 2, 4}, {"20000", 2, 4}, {"24576", 3, 3}, {"65536", 8, 1}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct job p = {0};
        struct error e = {0};
        struct arena *a = test_arena();
        struct str text = str_format(a,
                                     "recipe=trinity model=Qwen3-8B gpu=4xH200 context=8192 "
                                     "max-token-len=%s",
                                     rows[i].limit);
        CHECK(job_of(&p, a, text.p, &e));
        CHECK_U64(p.batch, rows[i].batch);
        CHECK_U64(p.accumulation, rows[i].accumulation);
    }
}

// Each micro-batch's log-probabilities of the reference are kept, and nothing else grows.
TEST(trinity_keeps_a_few_bytes_of_each_of_many_micro_batches)
{
    static const char job[] = "model=Qwen3-1.7B gpu=2xA100-80G context=4096 recipe=trinity accum=";
    static const uint64_t counts[] = {16, 80, 81, 1000, 65536};
    struct prediction first = {0};
    ptrdiff_t events = 0;
    for (ptrdiff_t i = 0; i < COUNT_OF(counts); i++) {
        struct arena *a = test_arena();
        struct str text = str_format(a, "%s%llu", job, (unsigned long long)counts[i]);
        struct prediction p = predicted_in(a, text.p);
        if (!i) {
            first = p;
            events = history_in(a, text.p).count;
        }
        uint64_t kept = (counts[i] - counts[0]) * 2 * 4096 * 4;
        uint64_t more = p.steps[0].reserved_bytes - first.steps[0].reserved_bytes;
        CHECK(p.fits && more + 2 * MIB >= kept && more <= kept + 2 * MIB);
        CHECK_U64(p.steps[1].allocated_bytes, first.steps[1].allocated_bytes);
        CHECK((uint64_t)(history_in(a, text.p).count - events) <= 8 * (kept / MIB + 64));
    }
}

// The reference model reads the sixteen sequences that are trained on in micro-batches of its own.
TEST(trinity_reads_the_reference_by_tokens)
{
    static const char settings[] = "recipe=trinity model=Qwen3-8B gpu=4xH200 context=8192 "
                                   "layers=2 batch=2 accum=8";
    struct arena *a = test_arena();
    struct error e = {0};
    struct job p = {0};
    CHECK(job_of(&p, a, str_format(a, "%s log-prob-max-token-len=25000", settings).p, &e));
    CHECK_U64(p.batch, 2);
    CHECK_U64(job_reference_count(&p), 6);
    CHECK_U64(job_reference_batch(&p), 3);
    struct prediction as_policy = predicted_in(a, settings);
    struct prediction same =
        predicted_in(a, str_format(a, "%s log-prob-max-token-len=16384", settings).p);
    struct prediction more =
        predicted_in(a, str_format(a, "%s log-prob-max-token-len=131072", settings).p);
    CHECK_U64(same.allocated_bytes, as_policy.allocated_bytes);
    CHECK_U64(same.reserved_bytes, as_policy.reserved_bytes);
    CHECK(more.steps[0].allocated_bytes > as_policy.steps[0].allocated_bytes + GIB);
}

TEST(reference_lets_its_root_go)
{
    static const char settings[] = "recipe=trinity model=Qwen3-8B layers=4 gpu=4xH200 context=4096";
    struct prediction p = predicted_in(test_arena(), settings);
    struct arena *a = test_arena();
    struct prediction kept = predicted_in(a, str_format(a, "%s reshard=off", settings).p);
    uint64_t root = 2 * (2 * UINT64_C(151936) + 1) * 4096; // embedding, head and last norm in bf16
    CHECK_U64(kept.steps[1].end_allocated_bytes - p.steps[1].end_allocated_bytes, root);
}
