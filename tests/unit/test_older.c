// What transformers 4 and peft do beside today's step: experts that are called one after another,
// and a dropout before adapters. How close both are to real runs is tests/measured/public_jobs.py's
// business.
#include <string.h>

#include "core/predict/predict.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static struct trace history_of(const char *settings)
{
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct trace t = {0};
    struct error e;
    if (!job_of(job, a, settings, &e) || !predict_history(&t, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return t;
}

static uint64_t requests_of(const char *settings, uint64_t bytes)
{
    struct trace t = history_of(settings);
    uint64_t count = 0;
    for (ptrdiff_t i = 0; i < t.count; i++)
        count += t.events[i].kind == EVENT_ALLOC && t.events[i].bytes == bytes;
    return count;
}

#define LORA "model=Qwen3-0.6B layers=2 gpu=H200 context=2048 lora=16 "

// A byte a value: for q, k, v, gate and up of the hidden states, in two layers and three steps; for
// o of twice as many, for down of three times as many. Recomputed they are made again.
TEST(dropout_makes_a_mask_for_every_adapter)
{
    const uint64_t hidden = UINT64_C(2048) * 1024;
    CHECK_U64(requests_of(LORA "checkpointing=off lora-dropout=on", 3 * hidden) -
                  requests_of(LORA "checkpointing=off", 3 * hidden),
              UINT64_C(2) * 3);
    CHECK_U64(requests_of(LORA "checkpointing=on lora-dropout=on", 3 * hidden) -
                  requests_of(LORA "checkpointing=on", 3 * hidden),
              UINT64_C(2) * 3 * 2);
    CHECK_U64(requests_of(LORA "checkpointing=off lora-dropout=on lora-targets=q,k,v", hidden) -
                  requests_of(LORA "checkpointing=off lora-targets=q,k,v", hidden),
              UINT64_C(3) * 2 * 3);
}

// Evaluation drops nothing.
TEST(dropout_is_off_where_nothing_is_trained)
{
    const uint64_t wide = UINT64_C(3) * 5 * 2048 * 1024; // of down, in a batch of five
    CHECK_U64(requests_of(LORA "recipe=trl eval-batch=5 lora-dropout=on", wide),
              requests_of(LORA "recipe=trl eval-batch=5", wide));
}

#define WITH_AND_WITHOUT(task) \
    LORA "recipe=trl batch=4 task=" task " lora-dropout=on", LORA "recipe=trl batch=4 task=" task

// TRL's reward, dpo and kto set every dropout to 0 (disable_dropout); the others leave it.
TEST(dropout_is_off_where_trl_turns_it_off)
{
    static const struct {
        const char *on, *off;
        bool drops;
    } rows[] = {{WITH_AND_WITHOUT("sft"), true},  {WITH_AND_WITHOUT("reward"), false},
                {WITH_AND_WITHOUT("dpo"), false}, {WITH_AND_WITHOUT("kto"), false},
                {WITH_AND_WITHOUT("grpo"), true}, {WITH_AND_WITHOUT("rloo"), true}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        ptrdiff_t without = history_of(rows[i].off).count;
        CHECK((history_of(rows[i].on).count > without) == rows[i].drops);
    }
}

#define MIXTRAL                                                                           \
    "model=Mixtral-8x7B-v0.1 layers=2 gpu=H200 context=768 lora=16 lora-targets=q,k,v,o " \
    "precision=bf16 optimizer=adamw "

// Eight experts of two layers and three steps, 192 rows of 14336 values for each: gate, its
// activation, up and their product in each pass, and a gradient of each but of what silu is given.
TEST(experts_are_called_one_after_another)
{
    const uint64_t inner = UINT64_C(192) * 14336 * 2;
    const uint64_t calls = UINT64_C(8) * 2 * 3;
    CHECK_U64(requests_of(MIXTRAL "recipe=transformers checkpointing=on", inner), 0);
    uint64_t off = requests_of(MIXTRAL "recipe=transformers@4.48 checkpointing=off", inner);
    uint64_t on = requests_of(MIXTRAL "recipe=transformers@4.48 checkpointing=on", inner);
    CHECK_U64(off, calls * (4 + 4));
    CHECK_U64(on - off, calls * 4);
}

// As linear layers they are packed, and unpacked one by one: w1 and w3, and w2 as large, in each
// pass and in the backward pass.
TEST(experts_of_transformers_4_are_packed)
{
    const uint64_t whole = UINT64_C(4096) * 14336 * 2;
    const char *now = MIXTRAL "recipe=transformers quantize=nf4 checkpointing=off";
    const char *before = MIXTRAL "recipe=transformers@4.48 quantize=nf4 checkpointing=off";
    CHECK_U64(requests_of(now, whole), 0);
    CHECK_U64(requests_of(before, whole), UINT64_C(8) * 2 * 3 * 3 * 2);
}

static const char *const refused[][2] = {
    {"model=Qwen3-0.6B gpu=H200 context=2k lora-dropout=on", "needs a rank"},
    {"model=Qwen3-0.6B gpu=H200 context=2k lora=8 dora=on lora-dropout=on",
     "is not modelled with DoRA"},
    {"model=Qwen3-30B-A3B gpu=H200 context=2k lora=8 lora-dropout=on recipe=trl",
     "no dropout for adapters over experts"},
    {"model=Mixtral-8x7B-v0.1 gpu=H200 context=2k lora=8 recipe=transformers@4.48",
     "calls each by itself"},
    {"model=Mixtral-8x7B-v0.1 gpu=8xH200 context=2k recipe=transformers@4.48 strategy=fsdp1",
     "calls each by itself"},
};

TEST(what_is_not_modelled_is_refused)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(refused); i++) {
        struct job job;
        struct error e;
        if (job_of(&job, test_arena(), refused[i][0], &e) || !strstr(e.message, refused[i][1]))
            test_failed(__FILE__, __LINE__, "%s gives '%s'", refused[i][0], e.message);
    }
}
