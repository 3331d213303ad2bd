// Batches that differ in length: jobs that were measured, with the batches that their samplers
// handed out, and the orders that the range of a prediction is found with.
#include "core/predict/varied.h"

#include "tests/support/jobs.h"
#include "tests/support/t.h"

// Rows of tests/runs/real_trainers.jsonl, asked as tests/measured/real_trainers.py does. Lengths
// are those of Python's random.seed(0), in the order of torch.randperm with the Trainer's seed,
// each `world`-th batch, packed by TRL 1.16's bfd.
struct measured {
    const char *id, *job;
    uint64_t tokens[VARIED_STEPS][VARIED_BATCHES]; // 0: as the batch before
    uint64_t reserved_mib;
    unsigned even; // bits by step: its first batch is
};

#define ON_ONE   "recipe=trl@1.16 gpu=H200 "
#define ON_EIGHT "recipe=trl@1.16 gpu=8xH200 network=none "

static const struct measured rows[] = {
    {"j5",
     "recipe=transformers context=2048 model=Llama-3.2-1B gpu=2xH200 batch=4 lora=16 "
     "batching=padded checkpointing=on optimizer=adamw-fused precision=autocast network=none "
     "strategy=fsdp2 load-once=off",
     {{1289}, {2048}, {2048}},
     25660,
     0},
    {"j37",
     ON_EIGHT "context=12288 model=Qwen3-1.7B lora=16 batching=packed optimizer=adamw "
              "strategy=zero2",
     {{11530}, {11643}, {12081}},
     8724,
     0},
    {"j80",
     ON_EIGHT "context=3072 model=Qwen3-32B batch=2 batching=packed checkpointing=off layers=2 "
              "strategy=zero1",
     {{5787}, {6043}, {5638}},
     22018,
     0},
    {"p3",
     ON_EIGHT "context=8192 model=Qwen3-4B batching=packed strategy=fsdp2 load-once=off",
     {{8137}, {7022}, {8191}},
     14876,
     0},
    {"w16",
     ON_ONE "context=2048 model=Llama-3.2-1B batching=packed",
     {{2006}, {1964}, {1632}},
     21450,
     0},
    {"x7",
     ON_ONE "context=4096 model=Llama-3.1-8B batch=3 lora=16 batching=packed layers=3",
     {{11567}, {11543}, {10768}},
     12432,
     0},
    {"w37",
     ON_ONE "context=3072 model=Qwen3-8B batch=2 lora=16 batching=padded layers=4",
     {{3072}, {3072}, {1961}},
     10804,
     1 << 1},
    {"u46",
     ON_EIGHT "task=reward context=2048 model=Qwen3-4B batch=2 batching=padded layers=18 "
              "strategy=zero3",
     {{2048}, {1893}, {2048}},
     11744,
     1 << 0},
    {"c41",
     "recipe=trl@1.16 task=dpo context=1024 model=Qwen3-0.6B gpu=32xH200 batch=2 accum=3 "
     "batching=padded prompt=128 checkpointing=off network=none strategy=fsdp1",
     {{1024}, {1024}, {1024, 1024, 812}},
     12534,
     1 << 0},
};

static struct varied batches_of(const struct measured *row)
{
    struct varied v = {.count = VARIED_STEPS};
    for (int step = 0; step < VARIED_STEPS; step++) {
        uint64_t tokens = 0;
        for (int i = 0; i < VARIED_BATCHES; i++) {
            tokens = row->tokens[step][i] ? row->tokens[step][i] : tokens;
            v.batch[step][i].tokens = tokens;
        }
        v.batch[step][0].even = row->even >> step & 1;
    }
    return v;
}

static struct prediction played(const char *text, const struct varied *batches)
{
    struct arena *a = test_arena();
    struct job *job = job_in(a, text);
    struct prediction p = {0};
    struct error e = {0};
    job->varied = batches;
    if (!predict_fit(&p, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", text, e.message);
    return p;
}

// Within 0.5 %; with the longest batch in every step they are up to 25 % off.
TEST(what_is_reserved_follows_from_the_batches_that_came)
{
    enum { THOUSANDTHS = 5 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct varied batches = batches_of(&rows[i]);
        struct prediction p = played(rows[i].job, &batches);
        uint64_t measured = rows[i].reserved_mib * MIB;
        uint64_t off =
            p.reserved_bytes > measured ? p.reserved_bytes - measured : measured - p.reserved_bytes;
        if (off > measured / 1000 * THOUSANDTHS)
            test_failed(__FILE__, __LINE__, "%s reserves %llu", rows[i].id,
                        (unsigned long long)p.reserved_bytes);
    }
}

// What is padded has no label, and TRL's head leaves it out: with half of the tokens it takes less.
TEST(padding_takes_no_place_behind_the_head)
{
    const char *job = ON_ONE "model=Qwen3-0.6B layers=2 context=2048 batch=4 batching=padded "
                             "lora=16 checkpointing=off";
    struct varied full = {.count = 1}, half = {.count = 1};
    for (int i = 0; i < VARIED_BATCHES; i++) {
        full.batch[0][i] = (struct varied_batch){.tokens = 2048, .filled = 8192};
        half.batch[0][i] = (struct varied_batch){.tokens = 2048, .filled = 4096};
    }
    struct prediction usual = played(job, NULL), all = played(job, &full),
                      some = played(job, &half);
    CHECK_U64(all.requested_bytes, usual.requested_bytes);
    CHECK(some.requested_bytes < all.requested_bytes);
}

// Gemma 2 has a mask for each of its kinds of layer once rows differ, and none where they do not
// and the window is longer.
TEST(rows_that_differ_have_a_mask_for_windows_too)
{
    enum { TOKENS = 1000, ROWS = 2 };
    const char *job = "recipe=trl@1.16 gpu=H200 model=gemma-2-2b layers=2 context=1000 batch=2 "
                      "batching=padded lora=16";
    struct varied even = {.count = 1}, uneven = {.count = 1};
    for (int i = 0; i < VARIED_BATCHES; i++) {
        even.batch[0][i] = (struct varied_batch){.tokens = TOKENS, .even = true};
        uneven.batch[0][i] = (struct varied_batch){.tokens = TOKENS};
    }
    uint64_t more =
        played(job, &uneven).steps[0].requested_bytes - played(job, &even).steps[0].requested_bytes;
    CHECK(more >= UINT64_C(2) * ROWS * TOKENS * TOKENS);
}

#define PADDED                                                                                     \
    "recipe=transformers model=Qwen3-0.6B gpu=H200 layers=4 context=2048 batch=3 batching=padded " \
    "checkpointing=on"

// Batches that are all the longest are what is predicted without a word about them.
TEST(batches_that_do_not_vary_are_the_usual_ones)
{
    struct measured longest = {.tokens = {{2048}, {2048}, {2048}}};
    struct varied batches = batches_of(&longest);
    struct prediction usual = played(PADDED, NULL), same = played(PADDED, &batches);
    for (int i = 0; i < usual.steps_asked; i++) {
        CHECK_U64(same.steps[i].allocated_bytes, usual.steps[i].allocated_bytes);
        CHECK_U64(same.steps[i].reserved_bytes, usual.steps[i].reserved_bytes);
    }
}

// Every order ends with the longest batch, so that what is asked for at most stays what it is; and
// there is none where rows are full.
TEST(orders_have_the_longest_batch)
{
    struct varied orders[VARIED_ORDERS];
    struct arena *a = test_arena();
    CHECK(varied_orders(orders, job_in(a, "model=Qwen3-0.6B gpu=H200 context=2048")) == 0);
    CHECK(varied_orders(orders, job_in(a, ON_ONE "model=Qwen3-0.6B context=1000 batch=2 "
                                                 "batching=packed")) == VARIED_ORDERS);
    CHECK_U64(orders[0].batch[0][0].tokens, 1000); // of both rows
    CHECK(varied_orders(orders, job_in(a, PADDED)) == VARIED_ORDERS);
    uint64_t usual = played(PADDED, NULL).requested_bytes;
    for (int i = 0; i < VARIED_ORDERS; i++) {
        CHECK_U64(orders[i].batch[orders[i].count - 1][0].tokens, 2048);
        CHECK_U64(played(PADDED, &orders[i]).requested_bytes, usual);
    }
}

TEST(the_range_has_what_other_batches_reserve)
{
    struct arena *a = test_arena();
    struct prediction p = {0};
    struct error e = {0};
    struct varied orders[VARIED_ORDERS];
    struct job *job = job_in(a, PADDED);
    CHECK(predict_with_range(&p, a, job, &e));
    CHECK(varied_orders(orders, job) == VARIED_ORDERS);
    for (int i = 0; i < VARIED_ORDERS; i++) {
        uint64_t reserved = played(PADDED, &orders[i]).reserved_bytes;
        CHECK(p.reserved_low_bytes <= reserved && reserved <= p.reserved_high_bytes);
    }
    CHECK(p.reserved_high_bytes > p.reserved_bytes);
}
