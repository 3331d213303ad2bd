// Precisions other than bf16, and attention where FlashAttention and cuDNN cannot be: fp16 with a
// scaler, fp32, and cards before compute capability 8.0. What torch runs for the math kernel was
// laid beside it by scripts/compare_operators.py; nothing of it was measured on a card.
#include <string.h>

#include "core/base/units.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static const char *with(struct arena *a, const char *more)
{
    return str_format(a, "model=Qwen3-0.6B layers=2 context=2048 %s", more).p;
}

static struct trace history; // of the last prediction

static struct prediction predicted(const char *more)
{
    struct arena *a = test_arena();
    const char *settings = with(a, more);
    struct prediction p = predicted_in(a, settings);
    history = history_in(a, settings);
    return p;
}

static uint64_t requests_of(uint64_t bytes)
{
    uint64_t count = 0;
    for (ptrdiff_t i = 0; i < history.count; i++)
        count += history.events[i].kind == EVENT_ALLOC && history.events[i].bytes == bytes;
    return count;
}

// All that differs is a few numbers.
TEST(fp16_is_bf16_with_a_scaler)
{
    static const char *const rows[][2] = {
        {"gpu=H200 recipe=trl precision=fp16", "gpu=H200 recipe=trl precision=autocast"},
        {"gpu=H200 recipe=transformers precision=fp16 checkpointing=off",
         "gpu=H200 recipe=transformers precision=autocast checkpointing=off"},
        {"gpu=H200 lora=16 precision=fp16", "gpu=H200 lora=16 precision=autocast"},
        {"gpu=H200 lora=16 quantize=nf4 precision=fp16",
         "gpu=H200 lora=16 quantize=nf4 precision=autocast"},
        {"gpu=2xH200 strategy=ddp precision=fp16", "gpu=2xH200 strategy=ddp precision=autocast"},
        {"gpu=2xH200 strategy=fsdp2 precision=fp16", "gpu=2xH200 strategy=fsdp2 precision=mixed"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct prediction wide = predicted(rows[i][1]);
        uint64_t without = requests_of(8);
        struct prediction scaled = predicted(rows[i][0]);
        CHECK(scaled.allocated_bytes >= wide.allocated_bytes);
        CHECK(scaled.allocated_bytes <= wide.allocated_bytes + 4 * KIB);
        CHECK_U64(requests_of(8),
                  without + UINT64_C(2) * PREDICT_STEPS); // the scale, and its reciprocal
    }
}

// Stage 3 looks at all gradients of a rank at once, in fp16 only.
TEST(deepspeed_looks_for_overflow)
{
    predicted("gpu=2xH200 strategy=zero3 precision=mixed recipe=transformers");
    uint64_t elements = UINT64_C(151936) * 1024 + 1024 + UINT64_C(2) * (2 * 1024 + 2 * 128) +
                        UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024);
    CHECK_U64(requests_of(elements / 2), 0);
    predicted("gpu=2xH200 strategy=zero3 precision=fp16 recipe=transformers");
    CHECK_U64(requests_of(elements / 2), UINT64_C(2) * PREDICT_STEPS);
    struct prediction narrow = predicted("gpu=2xH200 strategy=zero2 precision=fp16");
    struct prediction mixed = predicted("gpu=2xH200 strategy=zero2 precision=mixed");
    CHECK_U64(narrow.allocated_bytes, mixed.allocated_bytes);
}

// Scores of all pairs in fp32, where heads of keys are shared; a fused kernel where they are not.
TEST(attention_depends_on_the_card)
{
    const uint64_t scores = UINT64_C(16) * 2048 * 2048 * 4, logs = UINT64_C(16) * 2048 * 4;
    predicted("gpu=V100-32G precision=fp16");
    CHECK(requests_of(scores) > 0);
    predicted("gpu=A100-80G precision=fp16");
    CHECK_U64(requests_of(scores), 0);
    predicted("gpu=H200 precision=fp32");
    CHECK(requests_of(scores) > 0);
    predicted("gpu=V100-32G precision=fp16 model=Llama-2-7b layers=2");
    CHECK_U64(requests_of(2 * scores), 0);
    CHECK(requests_of(2 * logs) > 0);
}

TEST(what_a_precision_cannot_do_is_refused)
{
    static const char *const rows[][2] = {
        {"gpu=V100-32G", "--precision fp16"},
        {"gpu=V100-32G recipe=trl", "--precision fp16"},
        {"gpu=V100-32G precision=fp16 attention=flash2", "needs half precision and compute"},
        {"gpu=H200 precision=fp32 attention=flash2", "needs half precision and compute"},
        {"gpu=H200 precision=fp32 recipe=llamafactory", "fp32 is modelled in the steps of hf"},
        {"gpu=2xH200 precision=fp32 strategy=zero2", "modelled in mixed precision only"},
        {"gpu=2xH200 precision=fp16 strategy=fsdp1 recipe=trl", "--optimizer adamw"},
        {"gpu=2xH200 precision=fp16 recipe=trinity", "trains in bf16"},
        {"gpu=2xV100-32G precision=fp16 sp=2", "split sequences are modelled with"},
        {"gpu=H200 precision=fp32 lora=16 quantize=nf4", "fp32 is modelled in the steps of hf"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct job p;
        struct error e;
        struct arena *a = test_arena();
        CHECK(!job_of(&p, a, with(a, rows[i][0]), &e));
        if (!strstr(e.message, rows[i][1]))
            test_failed(__FILE__, __LINE__, "%s: %s", rows[i][0], e.message);
    }
}

// No step of theirs was timed, and what they add is not counted.
TEST(what_nobody_timed_has_no_time)
{
    static const char *const rows[] = {"gpu=H200 precision=fp32", "gpu=H200 optimizer=muon",
                                       "gpu=H200 optimizer=adamw-paged-8bit"};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        CHECK(predicted(rows[i]).time.unknown);
    CHECK(!predicted("gpu=H200 precision=fp16").time.unknown);
}
