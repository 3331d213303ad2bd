// Verdicts by their rule, the rows behind them, and what is known of the card outside torch.
#include <string.h>

#include "tests/support/jobs.h"
#include "tests/support/t.h"

static struct prediction predicted(const char *text)
{
    return predicted_in(test_arena(), text);
}

// Outside the test's arena, which each prediction begins anew.
static const char *with(char *text, ptrdiff_t room, const char *key, uint64_t value)
{
    struct buf b = buf_over(text, room);
    buf_printf(&b, "model=Qwen3-0.6B gpu=H200 layers=2 context=4k %s=%llu%c", key,
               (unsigned long long)value, 0);
    return text;
}

static struct prediction ranged(const char *text)
{
    struct arena *a = test_arena();
    struct prediction p = {0};
    struct error e = {0};
    if (!predict_with_range(&p, a, job_in(a, text), &e))
        test_failed(__FILE__, __LINE__, "%s: %s", text, e.message);
    return p;
}

#define SMALL "model=Qwen3-0.6B gpu=H200 layers=2 context=4k "

#define REWARD                                                                                     \
    "recipe=trl@1.16 task=reward model=Qwen3-0.6B gpu=8xH200 context=1024 batch=3 strategy=fsdp2 " \
    "optimizer=adamw load-once=off network=none "

// The job was run twice on an H200: 2.744 GiB each time, where the rule says 2.988; its events were
// the simulated ones, its segments lay otherwise.
TEST(a_range_is_what_other_runs_may_reserve)
{
    enum { MEASURED_MIB = 2810 };
    struct prediction p = ranged(REWARD);
    CHECK(p.reserved_low_bytes <= MEASURED_MIB * MIB &&
          p.reserved_high_bytes >= MEASURED_MIB * MIB);
    CHECK(p.reserved_low_bytes <= p.reserved_bytes && p.reserved_bytes <= p.reserved_high_bytes);
    CHECK_U64(predicted(REWARD).reserved_high_bytes, 0); // not looked for
    // Whoever asks without it gets the same verdict.
    CHECK_U64(p.verdict.error_bytes, predicted(REWARD).verdict.error_bytes);
    CHECK_U64(p.verdict.driver_low_bytes, predicted(REWARD).verdict.driver_low_bytes);
}

TEST(safe_tight_and_no)
{
    CHECK(predicted(SMALL "memory-limit=20GiB").verdict.grade == GRADE_SAFE);
    uint64_t peak = predicted(SMALL "memory-limit=20GiB").reserved_bytes;
    char text[160];
    struct prediction p = predicted(with(text, sizeof text, "memory-limit", peak));
    CHECK(p.fits && p.verdict.grade == GRADE_TIGHT);
    CHECK_U64(p.verdict.free_bytes, 0);
    CHECK(p.verdict.error_bytes > 0);
    p = predicted(SMALL "memory-limit=2GiB");
    CHECK(!p.fits && p.verdict.grade == GRADE_NO);
    CHECK(p.needs_bytes > 2 * GIB);
}

TEST(what_a_job_needs_is_what_it_takes_without_a_limit)
{
    uint64_t free = predicted(SMALL "memory-limit=40GiB").reserved_bytes;
    CHECK_U64(predicted(SMALL "memory-limit=40GiB").needs_bytes, free);
    CHECK_U64(predicted(SMALL "memory-limit=2GiB").needs_bytes, free);
    uint64_t grown = predicted(SMALL "memory-limit=40GiB expandable=on").reserved_bytes;
    CHECK_U64(predicted(SMALL "memory-limit=2GiB expandable=on").needs_bytes, grown);
}

TEST(a_margin_replaces_the_evidence)
{
    uint64_t peak = predicted(SMALL "memory-limit=20GiB").reserved_bytes;
    for (uint64_t missing = 0; missing <= 1; missing++) {
        char text[160];
        uint64_t limit = peak + GIB - missing;
        struct prediction p = predicted(with(text, sizeof text, "margin=1GiB memory-limit", limit));
        CHECK(p.verdict.grade == (missing ? GRADE_TIGHT : GRADE_SAFE));
        CHECK_U64(verdict_margin_bytes(&p.verdict), GIB);
    }
}

static struct verdict judged(struct outcome_figures f, const char *more)
{
    struct arena *a = test_arena();
    struct job *job = job_in(a, str_format(a, SMALL "%s", more).p);
    struct outside outside = outside_of(job);
    struct wanted w;
    struct error e = {0};
    f.outside_bytes = outside_bytes(&outside);
    CHECK(wanted_read(&w, *a, job, f.limit_bytes, &e));
    return verdict_of(job, &w, &f);
}

TEST(flushes_are_tight_unless_a_margin_decides)
{
    struct outcome_figures f = {true, 100 * GIB, 50 * GIB, 0, 0, 0};
    CHECK(judged(f, "").grade == GRADE_SAFE);
    f.flushes = 1;
    CHECK(judged(f, "").grade == GRADE_TIGHT);
    CHECK(judged(f, "margin=0").grade == GRADE_SAFE);
    CHECK(judged(f, "margin=51GiB").grade == GRADE_TIGHT);
}

TEST(the_host_decides_where_its_memory_is_known)
{
    struct outcome_figures f = {true, 100 * GIB, 50 * GIB, 65 * GIB, 0, 0};
    CHECK(judged(f, "").grade == GRADE_SAFE);
    CHECK(judged(f, "host-memory=65GiB").grade == GRADE_SAFE);
    struct verdict v = judged(f, "host-memory=64GiB");
    CHECK(v.grade == GRADE_NO && v.host_is_short);
}

TEST(the_driver_shows_what_is_reserved_and_what_lives_outside)
{
    struct prediction p = predicted(SMALL);
    uint64_t middle = p.reserved_bytes + outside_bytes(&p.outside);
    CHECK(p.verdict.driver_low_bytes < middle && middle < p.verdict.driver_high_bytes);
    struct outcome_figures full = {true, 100 * GIB, 139 * GIB, 0, 0, 0};
    struct verdict v = judged(full, "");
    struct arena *a = test_arena();
    CHECK_U64(v.driver_high_bytes, job_in(a, SMALL)->hardware.card.memory.value);
}

static uint64_t kind_runs(const char *text, const char *kind)
{
    struct arena *a = test_arena();
    struct evidence v = evidence_of(job_in(a, text));
    if (strcmp(v.kind, kind) != 0)
        test_failed(__FILE__, __LINE__, "%s: %s, not %s", text, v.kind, kind);
    return v.runs;
}

TEST(kinds_of_job)
{
    CHECK(kind_runs(SMALL, "plain step on one GPU") > 0);
    CHECK(kind_runs(SMALL "strategy=ddp", "plain step under ddp") > 0);
    CHECK(kind_runs("model=Qwen3-8B gpu=8xH200 context=4k", "plain step under fsdp2") > 0);
    CHECK(kind_runs("model=Qwen3-8B gpu=8xH200 context=4k recipe=trl", "TRL under fsdp2") > 0);
}

TEST(kinds_of_job_with_something_more)
{
    CHECK(kind_runs("model=Qwen3-8B gpu=8xH200 context=4k recipe=trinity", "trinity") > 0);
    CHECK(kind_runs(SMALL "lora=16", "adapters") > 0);
    CHECK(kind_runs(SMALL "recipe=trl", "TRL on one GPU") > 0);
}

TEST(kinds_that_nothing_measured)
{
    CHECK_U64(kind_runs(SMALL "recipe=trl@1.13 loss=full", "not measured"), 0);
    CHECK_U64(kind_runs(SMALL "lora=16 loss=chunked:256", "not measured"), 0);
    CHECK_U64(kind_runs("model=Qwen3-8B gpu=8xH200 context=256k strategy=zero3", "not measured"),
              0);
}

static void check_row(const struct evidence_row *row, uint64_t widest_bytes)
{
    struct evidence v = {row->kind, row->source, row->runs, row->errors};
    uint64_t bytes = evidence_short_bytes(&v, 80 * GIB);
    CHECK(row->runs > 0 && row->errors.reserved_median <= row->errors.reserved_worst);
    CHECK(bytes > 0 && bytes <= widest_bytes);
}

TEST(what_nothing_measured_is_given_the_widest_error)
{
    struct arena *a = test_arena();
    struct evidence none = evidence_of(job_in(a, SMALL "recipe=trl@1.13 loss=full"));
    for (ptrdiff_t i = 0; i < evidence_row_count; i++)
        check_row(&evidence_rows[i], evidence_short_bytes(&none, 80 * GIB));
}

static uint64_t more_outside(const char *text)
{
    struct arena *a = test_arena();
    return spread_of(job_in(a, text)).more_bytes;
}

// Where it is not known, more may live there.
TEST(outside_torch)
{
    uint64_t eight = more_outside("model=Qwen3-8B gpu=8xH200 context=4k");
    CHECK(more_outside(SMALL) < 64 * MIB && eight > 512 * MIB);
    CHECK(more_outside("model=Qwen3-8B gpu=8xH100-80G context=4k") > eight);
    CHECK(more_outside("model=Qwen3-8B gpu=8xH200 context=4k sp=4") > eight);
    CHECK(more_outside("model=Qwen3-8B gpu=custom:memory=80GiB context=4k") > 600 * MIB);
}

TEST(doubts_are_told_once)
{
    struct arena *a = test_arena();
    struct buf b = buf_in(a);
    doubts_put(&b, job_in(a, SMALL));
    CHECK_U64((uint64_t)b.n, 0);
    CHECK(!is_doubted(job_in(a, "model=Qwen3-30B-A3B gpu=8xH200 context=4k")));
    CHECK(is_doubted(job_in(a, "model=Qwen3-30B-A3B gpu=8xH200 context=4k offload=all")));
    doubts_put(&b, job_in(a, "model=Qwen3-8B gpu=8xA100-80G context=4k offload=all"));
    CHECK_STR(buf_str(&b), "NCCL's buffers; the scratch of attention and sums on this card (taken "
                           "as on an H200); host memory");
}
