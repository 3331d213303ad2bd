// What adapters reach beside a model's layers, and what is trained whole beside them. How close
// that is to the libraries is tests/measured/fake_trainers.py's business.
#include <stdio.h>
#include <string.h>

#include "core/predict/predict.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static struct trace history; // of the last prediction

// Of Qwen3-0.6B with two layers on an H200, unless more is said.
static void predicted(const char *more)
{
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct str text = str_format(a, "model=Qwen3-0.6B layers=2 gpu=H200 context=2048 %s", more);
    struct error e;
    if (!job_of(job, a, text.p, &e) || !predict_history(&history, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", more, e.message);
}

static uint64_t allocated_as(enum memory_kind kind)
{
    uint64_t bytes = 0;
    for (ptrdiff_t i = 0; i < history.count; i++)
        if (history.events[i].kind == EVENT_ALLOC && history.events[i].tag == (uint32_t)kind)
            bytes += history.events[i].bytes;
    return bytes;
}

// Without images what a tower has of them is there and never trained. SigLIP's queries, keys and
// values have the text's names; its blocks are 27 of width 1152, with an MLP of 4304.
TEST(adapters_of_an_idle_tower_have_no_state)
{
#define GEMMA_WIDTH UINT64_C(1152)
#define GEMMA_INNER UINT64_C(4304)
#define GEMMA       "model=gemma-3-4b precision=autocast recipe=trl lora=16 "
    static const uint64_t blocks = 27, bytes = 4, rank = 16;
    static const struct {
        const char *targets;
        uint64_t widths; // of inputs and outputs, two a layer, in a block
    } rows[] = {{"", 8 * GEMMA_WIDTH + 2 * (GEMMA_WIDTH + GEMMA_INNER)},
                {"lora-targets=q,k,v,o,gate,up,down", 6 * GEMMA_WIDTH},
                {"lora-targets=q,down", 2 * GEMMA_WIDTH},
                {"lora-targets=o,gate,up,down", 0}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        char without[256], with[256];
        (void)snprintf(without, sizeof without, GEMMA "freeze=vision %s", rows[i].targets);
        (void)snprintf(with, sizeof with, GEMMA "%s", rows[i].targets);
        predicted(without);
        uint64_t weights = allocated_as(MEMORY_PARAMETERS), state = allocated_as(MEMORY_OPTIMIZER);
        predicted(with);
        CHECK_U64(allocated_as(MEMORY_PARAMETERS) - weights,
                  bytes * rank * blocks * rows[i].widths);
        CHECK_U64(allocated_as(MEMORY_OPTIMIZER), state);
    }
}

// Of tied modules each has a copy.
TEST(modules_trained_whole_are_copies)
{
#define WHOLE "precision=autocast lora=16 checkpointing=off optimizer=adamw-fused "
    static const struct {
        const char *without, *with;
        uint64_t copies;
    } rows[] = {{WHOLE, WHOLE "lora-whole=embed", 1},
                {WHOLE, WHOLE "lora-whole=head", 1},
                {WHOLE, WHOLE "lora-whole=embed,head", 2},
                {WHOLE "tied=off", WHOLE "tied=off lora-whole=head", 1},
                {WHOLE "tied=off", WHOLE "tied=off lora-whole=embed,head", 2}};
    const uint64_t elements = UINT64_C(151936) * 1024;
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        predicted(rows[i].without);
        uint64_t weights = allocated_as(MEMORY_PARAMETERS), state = allocated_as(MEMORY_OPTIMIZER);
        predicted(rows[i].with);
        CHECK_U64(allocated_as(MEMORY_PARAMETERS) - weights, rows[i].copies * elements * 4);
        CHECK_U64(allocated_as(MEMORY_OPTIMIZER) - state, rows[i].copies * (elements * 8 + 4));
    }
}

static const char *const bad[][2] = {
    {"recipe=llamafactory task=dpo", "llamafactory's reward and dpo with adapters"},
    {"recipe=llamafactory task=reward lora=8 checkpointing=off", "reward with checkpointing"},
    {"recipe=llamafactory task=dpo lora=8 gpu=2xH200 strategy=fsdp2", "under ddp and DeepSpeed"},
    {"recipe=llamafactory task=dpo lora=8 eval-batch=1", "without evaluation"},
    {"recipe=llamafactory@0.9.1 task=dpo lora=8", "modelled in 0.9.5"},
    {"lora=16 lora-whole=embed,norm", "lora-whole must be embed, head or embed,head, not 'norm'"},
    {"lora-whole=embed", "which need a rank"},
    {"lora=16 lora-whole=head recipe=trl task=reward", "a reward model's head is trained whole"},
    {"lora=16 lora-whole=head recipe=trl gpu=2xH200 strategy=fsdp2", "ties it anew under fsdp2"},
    {"lora=16 lora-whole=embed recipe=trl gpu=2xH200 strategy=fsdp2", "a copy of a tied embedding"},
    {"lora=16 lora-whole=head recipe=trl gpu=2xH200 strategy=fsdp1", "where fsdp1 has it in parts"},
    {"lora=16 lora-whole=embed recipe=trl gpu=2xH200 strategy=fsdp1", "not modelled under fsdp1"},
    {"lora=16 lora-whole=head recipe=transformers gpu=2xH200 strategy=zero3",
     "cannot join copies in bf16"},
    {"lora=16 lora-whole=head recipe=trl gpu=2xH200 strategy=zero3 quantize=nf4",
     "beside packed weights are modelled on one GPU"},
    {"lora=16 lora-whole=head recipe=trl gpu=2xH200 strategy=zero3 task=dpo prompt=64",
     "where a reference is read"},
    {"lora=16 lora-whole=head recipe=trl gpu=2xH200 strategy=zero2 offload=optimizer",
     "not modelled with offload"},
    {"lora=16 model=gemma-3-4b images=1 image-size=896x896", "for texts, without images"},
    {"lora=16 model=gemma-3-4b gpu=2xH200 strategy=zero3 recipe=trl", "not modelled under zero3"},
    {"lora=16 model=Qwen3-VL-4B-Instruct gpu=2xH200 strategy=zero3 recipe=trl",
     "an idle vision tower"},
    {"lora=16 model=gemma-3-4b gpu=2xH200 strategy=fsdp2 quantize=nf4 recipe=trl",
     "a vision tower in four bits is modelled on one GPU"},
    {"lora=16 model=gemma-3-4b recipe=axolotl", "for texts, with --freeze vision"},
};

TEST(what_is_not_reached_is_refused_in_one_sentence)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(bad); i++) {
        struct arena *a = test_arena();
        struct str text =
            str_format(a, "model=Qwen3-0.6B layers=2 gpu=H200 context=2k %s", bad[i][0]);
        struct job p;
        struct error e;
        if (job_of(&p, a, text.p, &e) || !strstr(e.message, bad[i][1]))
            test_failed(__FILE__, __LINE__, "%s gives '%s'", bad[i][0], e.message);
        CHECK_U64((uint64_t)error_exit_status(e.code), 2);
    }
}
