// Layers that are played from another's notes, against all of them made: every figure of a
// prediction must be the same to the byte and to the last bit of a second, over jobs that are drawn
// at random, with and without time.
#include <string.h>

#include "tests/support/jobs.h"
#include "tests/support/t.h"

enum { MOST_TEXT = 512, DRAWN = 600 };

static uint64_t below(uint64_t *state, uint64_t count)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*state >> 33) % count;
}

// A setting is left out three times out of four.
static const char *const bases[] = {
    "model=Qwen3-0.6B layers=7 gpu=H200 context=1000",
    "model=Llama-3.2-1B layers=5 gpu=8xH100-80G context=2048",
    "model=gemma-3-1b-it layers=14 gpu=2xH100-80G context=3000",
    "model=Mistral-7B-v0.3 layers=4 gpu=4xA100-80G context=4096",
    "model=Qwen2.5-1.5B layers=6 gpu=8xH200 context=8192",
    "model=Qwen3-30B-A3B layers=4 gpu=8xH200 context=2048",
    "model=Qwen3-8B layers=6 gpu=A100-40G context=16384", // mostly too large
};
static const char *const choices[][7] = {
    {"strategy=single", "strategy=ddp", "strategy=fsdp1", "strategy=fsdp2", "strategy=zero1",
     "strategy=zero2", "strategy=zero3"},
    {"precision=bf16", "precision=autocast", "precision=mixed", "precision=fp16"},
    {"batch=1", "batch=3"},
    {"accum=2", "accum=5"},
    {"checkpointing=on", "checkpointing=off"},
    {"optimizer=adamw-fused", "optimizer=sgd", "optimizer=adamw-8bit"},
    {"lora=8", "lora=16", "lora=8 lora-targets=q,v", "lora=8 dora=on"},
    {"quantize=nf4"},
    {"loss=chunked:256", "loss=liger"},
    {"attention=eager", "attention=flash2"},
    {"recipe=trl", "recipe=trinity", "recipe=verl", "recipe=transformers"},
    {"task=reward", "task=dpo", "task=grpo", "task=kto", "task=rloo"},
    {"activation-offload=on"},
    {"expandable=on"},
    {"layer-kernels=liger"},
    {"reshard=off"},
    {"cp=2", "cp=4", "cp=8"},
    {"eval-batch=2"},
    {"backward-prefetch=on"},
    {"batching=padded", "batching=packed"},
};

static void add(char text[MOST_TEXT], const char *setting)
{
    (void)strncat(text, " ", MOST_TEXT - strlen(text) - 1);
    (void)strncat(text, setting, MOST_TEXT - strlen(text) - 1);
}

static void draw(char text[MOST_TEXT], uint64_t *state)
{
    text[0] = 0;
    add(text, bases[below(state, COUNT_OF(bases))]);
    for (ptrdiff_t i = 0; i < COUNT_OF(choices); i++) {
        uint64_t count = 0;
        while (count < COUNT_OF(choices[i]) && choices[i][count])
            count++;
        if (below(state, 4) == 0)
            add(text, choices[i][below(state, count)]);
    }
}

static bool same_seconds(double a, double b)
{
    return !(a < b) && !(a > b);
}

static bool same_memory(const struct prediction *a, const struct prediction *b)
{
    return a->fits == b->fits && a->steps_done == b->steps_done &&
           memcmp(a->steps, b->steps, sizeof a->steps) == 0 &&
           memcmp(&a->save, &b->save, sizeof a->save) == 0 &&
           memcmp(a->by_kind, b->by_kind, sizeof a->by_kind) == 0 &&
           a->allocated_bytes == b->allocated_bytes && a->requested_bytes == b->requested_bytes &&
           a->reserved_bytes == b->reserved_bytes &&
           a->reserved_there_bytes == b->reserved_there_bytes &&
           a->allocated_there_bytes == b->allocated_there_bytes && a->phase == b->phase &&
           a->step == b->step && a->oom_kind == b->oom_kind &&
           a->oom.requested_bytes == b->oom.requested_bytes;
}

static bool same_time(const struct prediction *a, const struct prediction *b)
{
    return same_seconds(a->time.seconds, b->time.seconds) &&
           same_seconds(a->time.mfu, b->time.mfu) && same_seconds(a->time.reading, b->time.reading);
}

// Where blocks are kept decides what TRL takes for a tensor that it has copied already.
static bool floor_is_exact(const struct job *job, const struct prediction *p)
{
    return p->fits && (!job->activation_offload || job->checkpointing);
}

// Whether any layer was played from notes.
static bool compare(struct arena a, const char *settings)
{
    struct job job;
    struct error e = {0};
    struct prediction all, some, memory, floor;
    if (!job_of(&job, &a, settings, &e)) // a framework may refuse what is drawn
        return false;
    bool ok = predict_each_layer(&all, &a, &job, &e) && predict_fit(&some, &a, &job, &e) &&
              predict_memory(&memory, &a, &job, &e) && predict_floor(&floor, &a, &job, &e);
    CHECK(ok && !all.layers_noted);
    bool same = ok && same_memory(&all, &some) && same_memory(&all, &memory) &&
                same_time(&all, &some) && all.floor_bytes == some.floor_bytes &&
                (!floor_is_exact(&job, &all) || all.floor_bytes == floor.floor_bytes);
    if (!same)
        test_failed(__FILE__, __LINE__, "not the same with notes of layers: %s", settings);
    return ok && some.layers_noted;
}

TEST(layers_from_notes_are_as_if_made)
{
    struct arena *a = test_arena();
    uint64_t state = 17;
    int noted = 0;
    for (int i = 0; i < DRAWN; i++) {
        char settings[MOST_TEXT];
        draw(settings, &state);
        noted += compare(*a, settings);
    }
    CHECK(noted > DRAWN / 6); // or nothing was compared
}

// Where frees wait for another stream, it counts in which order time passes and blocks are asked
// for.
TEST(frees_that_wait_come_in_their_time)
{
    CHECK(compare(*test_arena(),
                  "recipe=trl@1.16 context=2048 model=Qwen3-1.7B gpu=8xH200 batch=2 task=reward"
                  " lora=16 network=none strategy=fsdp1 load-once=off"));
}

// Of twenty layers, forward and backward in three steps; loading kernels spoils the first notes.
TEST(most_layers_are_played_from_notes)
{
    struct arena *a = test_arena();
    static const char *const jobs[] = {
        "model=Qwen3-8B layers=20 gpu=H200 context=4096",
        "model=Qwen3-8B layers=20 gpu=8xH200 context=4096 strategy=fsdp2",
        "model=Qwen3-8B layers=20 gpu=8xH200 context=4096 strategy=zero2",
        "model=Qwen3-8B layers=20 gpu=8xH200 context=4096 strategy=fsdp2 cp=4",
        "recipe=trl model=Qwen3-8B layers=20 gpu=8xH200 context=4096 activation-offload=on",
        "model=Qwen3-8B layers=20 gpu=8xH200 context=4096 strategy=zero3",
        "recipe=trl model=Qwen3-8B layers=20 gpu=8xH200 context=4096 lora=16 strategy=fsdp2",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(jobs); i++) {
        struct prediction p = predicted_in(a, jobs[i]);
        CHECK(p.layers_noted > (uint64_t)3 * 2 * 16);
    }
}
