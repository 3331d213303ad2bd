// Ring context parallelism, checkpoints in host memory, and recipes. How close they are to real
// runs is tests/measured/accuracy.py's business.
#include <string.h>

#include "core/predict/predict.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static struct job planned(struct arena *a, const char *settings)
{
    struct job p = {0};
    struct error e;
    if (!job_of(&p, a, settings, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return p;
}

// The number goes behind the settings.
static uint64_t requested(const char *settings, int number)
{
    struct arena *a = test_arena();
    struct prediction p = predicted_in(a, str_format(a, "%s%d", settings, number).p);
    CHECK_U64((uint64_t)p.steps_done, PREDICT_STEPS);
    CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
    return p.requested_bytes;
}

TEST(a_larger_ring_needs_less_of_each_rank)
{
    uint64_t last = UINT64_MAX;
    for (int cp = 1; cp <= 8; cp *= 2) {
        uint64_t now = requested("model=Qwen3-0.6B layers=4 gpu=8xH200 context=64k cp=", cp);
        CHECK(now < last);
        last = now;
    }
}

// Which is why it is the one meant where none is named.
TEST(the_last_but_one_rank_needs_most)
{
    static const char *const plans[] = {
        "model=Qwen3-8B layers=2 gpu=8xH200 context=128k cp=8 recipe=trl cp-rank=",
        "model=Llama-3.1-8B layers=2 gpu=8xH200 context=128k cp=8 loss=none cp-rank=",
        "model=Qwen3-0.6B layers=2 gpu=8xH200 context=32k cp=8 checkpointing=off cp-rank=",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(plans); i++) {
        uint64_t most = requested(plans[i], 6);
        for (int rank = 0; rank < 8; rank++)
            CHECK(requested(plans[i], rank) <= most);
    }
    CHECK_U64(planned(test_arena(), "model=Qwen3-8B gpu=8xH200 context=1k cp=8").ring_rank, 6);
    CHECK_U64(planned(test_arena(), "model=Qwen3-8B gpu=8xH200 context=1k cp=2").ring_rank, 0);
}

// Of 32 layers, 4096 x 16,384 in bf16 each. One comes back, and goes as soon as its layer is
// recomputed.
TEST(checkpoints_in_host_memory_leave_the_card)
{
#define SHAPE "model=Llama-3.1-8B gpu=8xH200 context=128k cp=8 loss=chunked:256"
    struct prediction here = predicted_in(test_arena(), SHAPE);
    struct prediction there = predicted_in(test_arena(), SHAPE " checkpoint-offload=on");
    uint64_t one = UINT64_C(4096) * 16384 * 2;
    CHECK(here.by_kind[MEMORY_CHECKPOINTS] / one >= 31);
    CHECK(there.by_kind[MEMORY_CHECKPOINTS] < one);
    CHECK_U64(there.host_bytes, one * 8 * 32);
#undef SHAPE
}

TEST(a_recipe_fills_in_what_is_not_given)
{
    struct arena *a = test_arena();
    struct job p = planned(a, "model=Qwen3-8B gpu=8xH200 context=4k recipe=trl");
    CHECK(p.strategy == STRATEGY_FSDP2 && p.precision == PRECISION_MIXED && p.checkpointing);
    CHECK(p.optimizer == OPTIMIZER_ADAMW_FUSED && p.loss == LOSS_CHUNKED);
    CHECK_U64(p.loss_chunk, 256);
    CHECK_STR(settings_find_z(p.settings, "loss")->value, "chunked:256");
}

TEST(a_recipe_leaves_what_is_given_and_follows_the_strategy)
{
    struct arena *a = test_arena();
    struct job p =
        planned(a, "model=Qwen3-8B gpu=8xH200 context=4k recipe=trl@1.13 loss=full optimizer=sgd");
    CHECK(p.loss == LOSS_FULL && p.optimizer == OPTIMIZER_SGD);
    p = planned(a, "model=Qwen3-8B gpu=H200 context=4k recipe=trl");
    CHECK(p.strategy == STRATEGY_SINGLE && p.precision == PRECISION_AUTOCAST);
    p = planned(a, "model=Qwen3-8B gpu=8xH200 context=4k recipe=trl strategy=ddp");
    CHECK(p.strategy == STRATEGY_DDP && p.precision == PRECISION_AUTOCAST);
    p = planned(a, "model=Qwen3-8B gpu=8xH200 context=4k recipe=hf");
    CHECK(p.loss == LOSS_FULL && p.optimizer == OPTIMIZER_ADAMW);
}

TEST(bad_rings_are_refused_in_one_sentence)
{
    static const char *const rows[][2] = {
        {"gpu=H200 cp=2", "context parallel needs several GPUs"},
        {"gpu=2xH200 strategy=fsdp1 cp=2", "context parallel is modelled under fsdp2"},
        {"gpu=2xH200 strategy=ddp cp=2", "context parallel is modelled under fsdp2"},
        {"gpu=8xH200 cp=2 sp=2", "cp and sp exclude each other"},
        {"gpu=8xH200 cp=3", "cp 3 does not divide the 8 GPUs"},
        {"gpu=8xH200 cp=8 context=4104", "not a multiple of twice cp 8"},
        {"gpu=8xH200 cp=8 cp-rank=8", "the ranks of cp 8 are 0 to 7"},
        {"gpu=8xH200 cp-rank=1", "there is no context parallel"},
        {"gpu=8xH200 recipe=trl loss=none", "TRL trains with a head"},
        {"gpu=8xH200 checkpointing=off checkpoint-offload=on", "no layer is recomputed"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct job p;
        struct error e;
        bool has_context = strstr(rows[i][0], "context=") != NULL;
        struct str text =
            str_format(a, "model=Qwen3-8B %s%s", rows[i][0], has_context ? "" : " context=4k");
        if (job_of(&p, a, text.p, &e) || !strstr(e.message, rows[i][1]))
            test_failed(__FILE__, __LINE__, "%s gives '%s'", text.p, e.message);
        CHECK_U64((uint64_t)error_exit_status(e.code), 2);
    }
}

// The whole history, with every turn made, replayed.
static void check_left_out(const char *settings)
{
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct prediction p;
    struct trace history;
    struct replay_result r;
    struct error e = {0};
    if (!job_of(job, a, settings, &e) || !predict_fit(&p, a, job, &e) ||
        !predict_history(&history, a, job, &e)) {
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
        return;
    }
    struct replay_request q = {.trace = &history,
                               .options = allocator_options_default(job->torch_minor)};
    q.options.expandable = job->expandable;
    q.options.limited = true;
    q.options.limit_bytes = p.limit_bytes;
    CHECK(replay_run(&r, a, &q, &e));
    CHECK(p.fits == (r.ooms == 0));
    CHECK_U64(p.allocated_bytes, r.allocated.bytes);
    CHECK_U64(p.requested_bytes, r.requested.bytes);
    CHECK_U64(p.reserved_bytes, r.reserved.bytes);
    if (p.fits)
        CHECK_U64(p.steps[p.steps_done - 1].retries, r.stats.retries);
}

// Rings, chunks of verl's head and tiles of TRL's: with room, with little, and with too little,
// when other streams hold what was let go, and with numbers of turns that leave a rest.
TEST(turns_that_are_left_out_change_nothing)
{
    static const char *const settings[] = {
        "model=Qwen3-0.6B layers=3 gpu=8x8xH200 recipe=transformers context=65536 cp=64 "
        "strategy=fsdp2",
        "model=Qwen3-0.6B layers=3 gpu=8x8xH200 recipe=transformers context=65536 cp=64 cp-rank=40 "
        "strategy=fsdp2",
        "model=Qwen3-0.6B layers=3 gpu=8x8xH200 recipe=transformers context=65536 cp=64 cp-rank=63 "
        "strategy=fsdp2",
        "model=Qwen3-8B layers=5 gpu=8x8xH200 recipe=transformers context=1048576 cp=64 cp-rank=7 "
        "strategy=fsdp2 expandable=on",
        "model=Qwen3-8B layers=5 gpu=8x8xH200 recipe=transformers context=1048576 cp=64 cp-rank=7 "
        "memory-limit=14GiB strategy=fsdp2",
        "model=Qwen3-8B layers=5 gpu=8x8xH200 recipe=transformers context=1048576 cp=64 "
        "memory-limit=17GiB strategy=fsdp2",
        "model=Qwen3-0.6B layers=2 gpu=2xH200 recipe=trinity context=100001 max-token-len=100001 "
        "fused-kernels=on",
        "model=Qwen3-0.6B layers=2 gpu=2xH200 recipe=trinity context=65536 max-token-len=65536 "
        "fused-kernels=on strategy=fsdp1 memory-limit=9GiB",
        "model=Qwen3-0.6B layers=2 gpu=H200 recipe=trl context=300001 loss=chunked:256",
        "model=Qwen3-0.6B layers=2 gpu=2xH200 recipe=trl context=300001 loss=chunked:256 "
        "strategy=fsdp2 expandable=on",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(settings); i++)
        check_left_out(settings[i]);
}
