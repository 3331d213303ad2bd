// Training less than everything: adapters, packed weights, 8-bit optimizer state, and the fused
// loss. How close they are to real runs is tests/measured/accuracy.py's business
// (tests/runs/h200_lora).
#include <string.h>

#include "core/base/units.h"
#include "core/predict/predict.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static struct trace history; // of the last prediction

// Of Qwen3-0.6B with two layers on an H200.
static struct prediction predicted_beside(struct arena *a, const char *more)
{
    struct job *job = NEW(a, struct job, 1);
    struct str text = str_format(a, "model=Qwen3-0.6B layers=2 gpu=H200 context=2048 %s", more);
    struct prediction p = {0};
    struct error e;
    if (!job_of(job, a, text.p, &e) || !predict(&p, a, job, &e) ||
        !predict_history(&history, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", more, e.message);
    return p;
}

static struct prediction predicted(const char *more)
{
    return predicted_beside(test_arena(), more);
}

static uint64_t allocated_as(enum memory_kind kind)
{
    uint64_t bytes = 0;
    for (ptrdiff_t i = 0; i < history.count; i++)
        if (history.events[i].kind == EVENT_ALLOC && history.events[i].tag == (uint32_t)kind)
            bytes += history.events[i].bytes;
    return bytes;
}

// hidden 1024, queries 2048, keys and values 1024, MLP 3072: inputs and outputs of the seven
// layers.
enum { ALL_WIDTHS = 3072 + 2048 + 2048 + 3072 + 4096 + 4096 + 4096, QV_WIDTHS = 3072 + 2048 };

TEST(adapters_alone_have_gradients_and_state)
{
    static const struct {
        const char *settings;
        uint64_t elements;
    } rows[] = {
        {"lora=16 optimizer=adamw-fused", UINT64_C(2) * 16 * ALL_WIDTHS},
        {"lora=64 optimizer=adamw-fused", UINT64_C(2) * 64 * ALL_WIDTHS},
        {"lora=16 optimizer=adamw-fused lora-targets=q,v", UINT64_C(2) * 16 * QV_WIDTHS},
        {"lora=16 optimizer=adamw-fused checkpointing=off", UINT64_C(2) * 16 * ALL_WIDTHS},
        {"lora=16 optimizer=adamw-fused precision=autocast", UINT64_C(2) * 16 * ALL_WIDTHS},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        predicted(rows[i].settings);
        uint64_t tensors = strstr(rows[i].settings, "q,v") ? 8 : 28;
        CHECK_U64(allocated_as(MEMORY_OPTIMIZER), rows[i].elements * 8 + tensors * 4);
    }
}

// Qwen3-30B-A3B: 128 experts of 768 beside a hidden width of 2048, queries 4096, keys and values
// 512. A stack of experts has the rank for each of them, gate and up twice.
TEST(adapters_of_experts_are_stacks)
{
    enum { RANK = 16, ATTENTION = 2 * (2048 + 4096) + 2 * (2048 + 512), ROUTER = 2048 + 128 };
    enum { STACKS = 128 * (2 * (2048 + 1536) + 768 + 2048) };
    static const struct {
        const char *settings;
        uint64_t widths, tensors;
    } rows[] = {
        {"lora-targets=q,k,v,o", ATTENTION, 8},
        {"lora-targets=q,k,v,o,gate,up,down", ATTENTION + STACKS, 12},
        {"lora-targets=all-linear", ATTENTION + STACKS + ROUTER, 14},
        {"recipe=axolotl", ATTENTION, 8}, // hands peft the names of linear layers
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        const char *model = "model=Qwen3-30B-A3B lora=16 optimizer=adamw-fused";
        predicted_beside(a, str_z(a, str_format(a, "%s %s", model, rows[i].settings)));
        CHECK_U64(allocated_as(MEMORY_OPTIMIZER),
                  2 * (RANK * rows[i].widths * 8 + rows[i].tensors * 4));
    }
}

TEST(packed_weights_take_a_quarter_and_their_scales)
{
    static const char adapters[] = "lora=16 optimizer=sgd";
    struct prediction whole = predicted(adapters),
                      packed = predicted("lora=16 optimizer=sgd quantize=nf4");
    uint64_t elements = UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024);
    uint64_t saved = whole.steps[2].end_allocated_bytes - packed.steps[2].end_allocated_bytes;
    uint64_t adapter_bytes = UINT64_C(2) * 16 * ALL_WIDTHS * 2; // bf16 over packed weights
    uint64_t weights = elements * 3 / 2 - elements / 64 - elements / 64 / 256 * 4;
    // Tables and offsets of 14 weights, and what rounding adds.
    CHECK(saved < weights + adapter_bytes);
    CHECK(saved > weights + adapter_bytes - UINT64_C(14) * 8192);
}

// Of axolotl and LLaMA-Factory: fp32 over whatever is frozen, and of their inputs bf16 is kept.
TEST(adapters_under_autocast_are_wide_and_keep_narrow_inputs)
{
    static const char *const rows[][2] = {
        {"recipe=axolotl attention=sdpa lora=16 quantize=nf4",
         "recipe=axolotl attention=sdpa lora=16 checkpointing=off"},
        {"recipe=llamafactory lora=16 quantize=nf4",
         "recipe=llamafactory lora=16 checkpointing=off"},
    };
    struct prediction wide =
        predicted("recipe=transformers precision=bf16 lora=16 checkpointing=off");
    uint64_t inputs = UINT64_C(2) * 2048 * (1024 * 5 + 2048 + 3072) * 2; // of seven adapters, bf16
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        predicted(rows[i][0]);
        CHECK_U64(allocated_as(MEMORY_OPTIMIZER),
                  UINT64_C(2) * 16 * ALL_WIDTHS * 8 + UINT64_C(28) * 4);
        struct prediction narrow = predicted(rows[i][1]);
        CHECK(narrow.allocated_bytes + inputs / 2 < wide.allocated_bytes);
        CHECK(narrow.allocated_bytes + 2 * inputs > wide.allocated_bytes);
    }
}

TEST(narrow_state_takes_two_bytes_an_element)
{
    predicted("optimizer=adamw-8bit");
    uint64_t wide = UINT64_C(2) * (2 * 1024 + 2 * 128) + 1024; // norms keep fp32
    uint64_t narrow = UINT64_C(151936) * 1024 +
                      UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024);
    uint64_t state = narrow * 2 + narrow / 256 * 8 + wide * 8 + 2048;
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), state);
    predicted("optimizer=adamw-8bit-hf");
    uint64_t embedding = UINT64_C(151936) * 1024;
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), state + embedding * 6 - embedding / 256 * 8);
}

// transformers' Trainer has the embedding's in 32 bits, without being asked.
TEST(a_trainers_narrow_state_is_wide_for_the_embedding)
{
    predicted("optimizer=adamw-8bit-hf");
    uint64_t state = allocated_as(MEMORY_OPTIMIZER);
    predicted("optimizer=adamw-8bit recipe=transformers");
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), state);
    predicted("optimizer=adamw-8bit recipe=trl");
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), state);
}

// What torch allocates of it is scales, maps and tensors below 100000 elements.
TEST(paged_state_is_unified_memory)
{
    uint64_t wide = UINT64_C(2) * (2 * 1024 + 2 * 128) + 1024;
    uint64_t layers = UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024);
    uint64_t embedding = UINT64_C(151936) * 1024;
    struct prediction narrow = predicted("optimizer=adamw-paged-8bit recipe=trl");
    CHECK_U64(narrow.managed_bytes, layers * 2 + embedding * 8);
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), layers / 256 * 8 + wide * 8 + 2048);
    struct prediction paged = predicted("optimizer=adamw-paged recipe=trl");
    CHECK_U64(paged.managed_bytes, (layers + embedding) * 8);
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), wide * 8);
    CHECK(paged.verdict.driver_high_bytes >= paged.reserved_bytes + paged.managed_bytes);
    CHECK_U64(paged.host_bytes, 0);
}

// A card without room for it sends it to the host, and trains on.
TEST(paged_state_goes_to_the_host)
{
    struct prediction large =
        predicted("gpu=custom:memory=3GiB optimizer=adamw-fused context=512 recipe=trl");
    CHECK(!large.fits);
    struct prediction paged =
        predicted("gpu=custom:memory=3GiB optimizer=adamw-paged context=512 recipe=trl");
    CHECK(paged.fits);
    CHECK(paged.host_bytes > 0);
    CHECK(paged.host_bytes < paged.managed_bytes);
}

// DeepSpeed hands flat fp32 parts over: nothing of them is the embedding's. Maps are made once.
TEST(narrow_state_under_deepspeed_is_of_flat_parts)
{
    static const char *const stages[] = {"zero1", "zero2", "zero3"};
    uint64_t elements = UINT64_C(151936) * 1024 + 1024 + UINT64_C(2) * (2 * 1024 + 2 * 128) +
                        UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024);
    for (ptrdiff_t i = 0; i < COUNT_OF(stages); i++) {
        struct arena *a = test_arena();
        struct str narrow = str_format(
            a, "gpu=2xH200 recipe=transformers optimizer=adamw-8bit strategy=%s", stages[i]);
        struct str wide = str_format(
            a, "gpu=2xH200 recipe=transformers optimizer=adamw-fused strategy=%s", stages[i]);
        predicted_beside(a, narrow.p);
        uint64_t less = allocated_as(MEMORY_OPTIMIZER);
        predicted_beside(a, wide.p);
        uint64_t saved = allocated_as(MEMORY_OPTIMIZER) - less;
        uint64_t six_bytes_less_scales = elements / 2 * 6 - elements / 2 / 256 * 8;
        CHECK(saved < six_bytes_less_scales);
        CHECK(saved + 32 * KIB > six_bytes_less_scales);
    }
}

// As torch 2.11's own step was seen to do on a matrix in fp32 and one in bf16.
TEST(muon_has_one_momentum_and_rounds_in_bf16)
{
    predicted("optimizer=muon precision=bf16");
    uint64_t rest = UINT64_C(2) * (2 * 1024 + 2 * 128) + 1024 + UINT64_C(151936) * 1024;
    uint64_t layers = UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024);
    uint64_t grams = UINT64_C(2) * 7 * 5 * 2 * 1024 * 1024 * 2; // each side is at least 1024
    uint64_t state = 2 * layers + 4 * rest;
    uint64_t step = 12 * layers + grams + 2 * rest; // mixed, rounds, AdamW's roots
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), state + PREDICT_STEPS * step);
    predicted("optimizer=muon precision=autocast");
    state = 4 * layers + 8 * rest;
    step = 16 * layers + grams + 4 * rest;
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), state + PREDICT_STEPS * step);
}

// DeepSpeed's flat parts are vectors: all means are kept, and nothing of rows and columns.
TEST(adafactor_under_deepspeed_keeps_all_means)
{
    struct prediction p =
        predicted("gpu=2xH200 recipe=transformers strategy=zero1 optimizer=adafactor");
    struct prediction less =
        predicted("gpu=2xH200 recipe=transformers strategy=zero1 optimizer=adamw-fused");
    uint64_t part = (UINT64_C(151936) * 1024 +
                     UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024)) /
                    2;
    CHECK(p.steps[2].end_allocated_bytes + 4 * part > less.steps[2].end_allocated_bytes - MIB);
    CHECK(p.steps[2].end_allocated_bytes + 4 * part < less.steps[2].end_allocated_bytes + MIB);
}

// 2048 tokens of 151936 logits by 149: chunks of 16.
TEST(the_fused_loss_has_one_chunk_of_logits)
{
    struct prediction full = predicted("loss=full"), fused = predicted("loss=liger");
    CHECK(fused.requested_bytes < full.requested_bytes);
    uint64_t largest = 0;
    for (ptrdiff_t i = 0; i < history.count; i++)
        if (history.events[i].kind == EVENT_ALLOC &&
            history.events[i].bytes == UINT64_C(16) * 151936 * 2)
            largest++;
    CHECK_U64(largest, PREDICT_STEPS);
}

static void check_growth(const char *settings)
{
    uint64_t last = 0;
    for (int k = 2; k <= 8; k *= 2) {
        struct arena *a = test_arena();
        struct str more = str_format(a, "%s context=%dk", settings, k);
        struct prediction p = predicted_beside(a, more.p);
        CHECK(p.requested_bytes > last);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
        last = p.requested_bytes;
    }
}

TEST(more_context_never_needs_less)
{
    static const char *const settings[] = {"lora=16",
                                           "lora=16 checkpointing=off",
                                           "lora=16 quantize=nf4",
                                           "lora=16 quantize=nf4 checkpointing=off",
                                           "lora=16 precision=autocast checkpointing=off",
                                           "lora=16 lora-targets=down checkpointing=off",
                                           "lora=16 lora-targets=o loss=chunked:512",
                                           "lora=16 strategy=ddp",
                                           "lora=16 loss=liger optimizer=adamw-8bit",
                                           "lora=16 model=SmolLM3-3B",
                                           "lora=16 model=Mistral-7B-v0.3 checkpointing=off",
                                           "lora=16 gpu=A100-80G checkpointing=off",
                                           "lora=16 model=Mistral-7B-v0.1",
                                           "lora=16 checkpoint-offload=on",
                                           "lora=16 quantize=nf4 strategy=ddp gpu=2xH200",
                                           "lora=16 recipe=transformers",
                                           "lora=16 quantize=nf4 recipe=transformers",
                                           "lora=16 quantize=nf4 recipe=trl",
                                           "lora=16 quantize=nf4 recipe=trl model=Qwen2.5-0.5B",
                                           "lora=16 quantize=nf4 recipe=trl checkpointing=off",
                                           "lora=16 quantize=nf4 recipe=trl gpu=2xH200",
                                           "lora=16 quantize=nf4 recipe=trl task=dpo",
                                           "lora=16 dora=on checkpointing=off",
                                           "lora=16 dora=on recipe=trl model=Qwen2.5-0.5B",
                                           "lora=16 dora=on quantize=nf4 recipe=trl",
                                           "lora=16 dora=on recipe=transformers gpu=2xH200",
                                           "lora=16 dora=on recipe=trl gpu=2xH200",
                                           "lora=16 dora=on recipe=trl gpu=2xH200 strategy=zero2",
                                           "lora=16 layer-kernels=liger checkpointing=off",
                                           "layer-kernels=liger precision=autocast",
                                           "lora=16 recipe=trl strategy=ddp gpu=2xH200",
                                           "loss=liger precision=autocast"};
    for (ptrdiff_t i = 0; i < COUNT_OF(settings); i++)
        check_growth(settings[i]);
}

// Requests of this size: under fsdp2 two while the weights are cut, the rest in steps.
static int requests_of(const char *settings, uint64_t bytes)
{
    predicted(settings);
    int count = 0;
    for (ptrdiff_t i = 0; i < history.count; i++)
        count += history.events[i].kind == EVENT_ALLOC && history.events[i].bytes == bytes;
    return count;
}

// Its square, the square with a number added, what it is divided by, its negative.
TEST(adafactor_makes_four_copies_of_a_gradient)
{
    const uint64_t embedding = UINT64_C(151936) * 1024 * 4;
    int without = requests_of("optimizer=sgd precision=autocast", embedding);
    int with = requests_of("optimizer=adafactor precision=autocast", embedding);
    CHECK_U64((uint64_t)(with - without), UINT64_C(4) * PREDICT_STEPS);
    struct prediction sgd = predicted("optimizer=sgd"), factored = predicted("optimizer=adafactor");
    uint64_t state = factored.steps[2].end_allocated_bytes - sgd.steps[2].end_allocated_bytes;
    CHECK(state > UINT64_C(4) * 151936 && state < UINT64_C(8) * 151936);
    CHECK_U64(factored.steps[0].end_allocated_bytes, factored.steps[2].end_allocated_bytes);
}

// The MLP keeps gate and up, not what comes of them, and writes their gradients over them.
TEST(ligers_layers_keep_less)
{
    const uint64_t mlp = UINT64_C(2048) * 3072 * 2;
    const char *plain = "checkpointing=off", *liger = "checkpointing=off layer-kernels=liger";
    int less = requests_of(plain, mlp) - requests_of(liger, mlp);
    CHECK_U64((uint64_t)less, UINT64_C(2) * PREDICT_STEPS * 4); // of a layer: silu, three gradients
    CHECK(predicted(liger).requested_bytes < predicted(plain).requested_bytes);
}

// Inputs of layers come back one by one, on a stream of their own; three are there at a time while
// they go.
TEST(offloaded_activations_leave_the_card)
{
    const char *plain = "recipe=trl layers=16 context=8k";
    struct prediction stays = predicted(plain);
    struct prediction goes = predicted("recipe=trl layers=16 context=8k activation-offload=on");
    CHECK(goes.steps[0].end_allocated_bytes == stays.steps[0].end_allocated_bytes);
    CHECK(goes.host_bytes == UINT64_C(8192) * 1024 * 4 * 16);
    int brought = 0;
    for (ptrdiff_t i = 0; i < history.count; i++)
        brought += history.events[i].kind == EVENT_ALLOC && history.events[i].stream > 0 &&
                   history.events[i].bytes == UINT64_C(8192) * 1024 * 4;
    CHECK_U64((uint64_t)brought, UINT64_C(18) * PREDICT_STEPS); // and two of norm and head
}

// Without recomputation all goes but what is kept twice within five: of a layer's residuals,
// queries and keys in fp32 and what attention gives. Weights, which autocast has cast, go as
// copies, which lie in another order.
TEST(what_is_kept_twice_stays_on_the_card)
{
    const char *plain = "recipe=trl context=8k checkpointing=off";
    const char *sent = "recipe=trl context=8k checkpointing=off activation-offload=on";
    const uint64_t twice = UINT64_C(8192) * (2 * 1024 * 4 + (2048 + 1024) * 4 + 2048 * 2);
    struct prediction stays = predicted(plain), goes = predicted(sent);
    CHECK(goes.steps[0].end_allocated_bytes == stays.steps[0].end_allocated_bytes);
    CHECK(goes.by_kind[MEMORY_SAVED] >= 2 * twice && goes.by_kind[MEMORY_SAVED] < 4 * twice);
    CHECK(goes.host_bytes + goes.by_kind[MEMORY_SAVED] > stays.by_kind[MEMORY_SAVED]);
}

// A head of its own is gathered by TRL, in the shards' type; one that is the embedding is there.
TEST(behind_adapters_trl_reads_the_head)
{
    const char *own = "lora=16 recipe=trl gpu=8xH200 tied=off";
    const char *shared = "lora=16 recipe=trl gpu=8xH200";
    const uint64_t whole = UINT64_C(151936) * 1024 * 4;
    CHECK_U64((uint64_t)requests_of(own, whole), 2 + PREDICT_STEPS);
    CHECK_U64((uint64_t)requests_of(shared, whole), 2); // a tied head comes, and goes, too
}

// Each rank updates its part of the adapters, two moments of fp32 and a count for each tensor.
TEST(fsdp2_shards_adapters_with_their_layers)
{
    static const char *const settings[] = {
        "lora=16 recipe=trl gpu=8xH200",
        "lora=16 recipe=trl gpu=8xH200 accum=2",
        "lora=16 recipe=trl gpu=8xH200 checkpointing=off",
        "lora=16 recipe=transformers strategy=fsdp2 gpu=8xH200",
        "lora=16 recipe=transformers strategy=fsdp2 gpu=8xH200 tied=off checkpointing=on",
        "lora=16 recipe=trl gpu=8xH200 tied=off",
        "lora=16 gpu=8xH200 optimizer=adamw-fused",
        "lora=16 gpu=8xH200 optimizer=adamw-fused tied=off checkpointing=off",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(settings); i++) {
        struct prediction p = predicted(settings[i]);
        CHECK_U64(allocated_as(MEMORY_OPTIMIZER),
                  UINT64_C(16) * ALL_WIDTHS * 2 * 8 / 8 + UINT64_C(28) * 4);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[0].end_allocated_bytes);
    }
}

TEST(frozen_layers_below_the_first_adapter_keep_nothing)
{
    struct prediction all = predicted("lora=16 checkpointing=off lora-targets=q,down");
    struct prediction late = predicted("lora=16 checkpointing=off lora-targets=down");
    CHECK(late.requested_bytes < all.requested_bytes);
}

static const char *const bad_adapters[][2] = {
    {"quantize=nf4", "weights in four bits cannot be trained"},
    {"quantize=nf4 lora=16 gpu=2xH200 strategy=fsdp2",
     "nf4 is modelled on one GPU, under ddp, zero1"},
    {"quantize=nf4 lora=16 gpu=2xH200 strategy=zero3", "under zero2: --strategy zero2"},
    {"quantize=nf4 lora=16 gpu=2xH200 strategy=fsdp2 recipe=trl offload=all",
     "packed weights are not modelled in host memory"},
    {"quantize=nf4 lora=16 gpu=2xH200 strategy=fsdp2 recipe=axolotl",
     "packed weights that axolotl shards"},
    {"quantize=nf4 lora=16 for=trl precision=autocast", "--precision bf16"},
    {"quantize=nf4 lora=16 for=trl precision=fp16", "--precision bf16"},
    {"quantize=nf4 lora=16 for=trl gpu=T4", "--recipe transformers trains them in fp16"},
    {"quantize=nf4 lora=16 for=trl gpu=T4 precision=fp16", "--recipe transformers trains"},
    {"quantize=nf4 lora=16 for=llamafactory gpu=T4", "for trl and transformers they are"},
    {"quantize=nf4 lora=16 for=trl gpu=2xH200 strategy=fsdp1", "fsdp2 they are"},
    {"lora-targets=q", "lora-targets needs a rank"},
    {"dora=on", "dora needs a rank"},
    {"lora=16 dora=on gpu=2xH200 strategy=fsdp1 recipe=transformers", "DoRA does not run under"},
    {"quantize=nf4 lora=16 gpu=2xH200 strategy=zero3 recipe=trl offload=all",
     "packed weights are not modelled in host memory"},
    {"lora=16 dora=on quantize=nf4 gpu=2xH200 strategy=fsdp2 recipe=trl", "fsdp2 wants one type"},
    {"lora=16 lora-targets=q,w", "a list out of q,k,v,o,gate,up,down, not 'w'"},
    {"lora=16 lora-targets=q,", "a list out of q,k,v,o,gate,up,down, not ''"},
    {"lora=0", "lora must be between 1 and 4096"},
    {"lora=16 gpu=2xH200 strategy=fsdp1", "under fsdp1 as transformers' Trainer runs it"},
    {"lora=16 gpu=2xH200 recipe=trl@1.13", "LoRA is modelled on one GPU, under ddp, fsdp2"},
    {"lora=16 gpu=2xH200 recipe=trl strategy=zero3 loss=full", "never makes all logits at once"},
};

static const char *const bad_steps[][2] = {
    {"optimizer=adamw-8bit gpu=2xH200", "cannot step over fsdp2's shards"},
    {"optimizer=adamw-paged gpu=2xH200", "cannot step over fsdp2's shards"},
    {"optimizer=adamw-8bit gpu=2xH200 strategy=zero2 offload=optimizer",
     "DeepSpeed's own Adam in the place of this one"},
    {"optimizer=adamw-8bit gpu=2xH200 strategy=zero2 model=Qwen3-8B layers=36",
     "counts a tensor's elements in 32 bits"},
    {"optimizer=adafactor gpu=2xH200", "adafactor cannot step over fsdp2's shards"},
    {"precision=fp16 optimizer=adamw-fused gpu=2xH200 strategy=fsdp1", "--optimizer adamw"},
    {"optimizer=adafactor gpu=2xH200 strategy=zero2 offload=optimizer",
     "DeepSpeed's own Adam in the place of this one"},
    {"optimizer=muon recipe=trl", "transformers 5.17's Trainer knows no such name"},
    {"optimizer=muon recipe=llamafactory", "the Muon of LLaMA-Factory is one of its own"},
    {"optimizer=muon gpu=2xH200", "muon is modelled in hf's step"},
    {"optimizer=muon lora=16", "muon is modelled in hf's step"},
    {"optimizer=muon torch=2.8", "torch has muon since 2.9"},
    {"optimizer=adafactor model=gpt-oss-20b", "not modelled over the experts of gpt-oss"},
    {"layer-kernels=liger model=gemma-3-1b", "layer kernels are not modelled over Gemma 3"},
    {"activation-offload=on recipe=trl gpu=2xH200 strategy=zero3", "does not run under zero3"},
    {"lora=16 gpu=2xH200 strategy=fsdp2 precision=autocast", "weights in fp32"},
    {"activation-offload=on", "a setting of TRL"},
    {"activation-offload=on recipe=trl@1.13", "TRL 1.16's own loss only"},
    {"loss=liger gpu=2xH200 tied=off", "transformers' Trainer without adapters has it whole"},
    {"loss=liger gpu=2xH200 recipe=transformers strategy=fsdp2 lora=16 tied=off",
     "has it whole there"},
    {"lora=16 model=DeepSeek-V2-Lite", "LoRA over DeepSeek-V2 is not modelled"},
    {"lora=16 model=Phi-4-mini lora-targets=q,v", "a layer of Phi-3 and Phi-4 computes several"},
    {"lora=16 model=gpt-oss-20b lora-targets=q,gate,up", "LoRA over gpt-oss is not modelled"},
    {"lora=16 model=gpt-oss-20b quantize=nf4", "gpt-oss is saved in MXFP4"},
    {"lora=16 model=Mixtral-8x7B-v0.1 lora-targets=q,gate,up,down", "w1, w2 and w3 to peft"},
    {"lora=16 model=Qwen3-30B-A3B lora-targets=q,gate", "name both or neither"},
    {"lora=16 model=Qwen3-30B-A3B dora=on", "peft has no DoRA for experts"},
    {"lora=16 model=Qwen3-30B-A3B gpu=8xH200 strategy=fsdp1 recipe=trl",
     "adapters of experts do not run under fsdp1"},
    {"lora=16 model=Qwen3-30B-A3B recipe=axolotl lora-targets=q,gate,up,down",
     "the older peft of axolotl"},
    {"lora=16 model=OLMoE-1B-7B-0924 gpu=8xH200 strategy=zero3 recipe=trl",
     "modelled under zero3 over Qwen3 and Mixtral"},
    {"lora=16 gpu=8xH200 recipe=trl tied=off offload=all", "a head in host memory"},
    {"lora=16 recipe=trinity", "LoRA is modelled in the steps of hf, trl, transformers, "},
    {"loss=liger recipe=trl", "TRL 1.16 keeps its own fused loss"},
    {"loss=liger model=gemma-2-2b", "liger's loss over soft-capped logits or multiplied ones"},
    {"loss=liger model=granite-3.3-2b-instruct", "or multiplied ones is not modelled"},
};

static void check_refused(const char *const row[2])
{
    struct arena *a = test_arena();
    struct str text = str_format(a, "model=Qwen3-0.6B layers=2 gpu=H200 context=2k %s", row[0]);
    struct job p;
    struct error e;
    if (job_of(&p, a, text.p, &e) || !strstr(e.message, row[1]))
        test_failed(__FILE__, __LINE__, "%s gives '%s'", row[0], e.message);
    CHECK_U64((uint64_t)error_exit_status(e.code), 2);
}

TEST(bad_combinations_are_refused_in_one_sentence)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(bad_adapters); i++)
        check_refused(bad_adapters[i]);
    for (ptrdiff_t i = 0; i < COUNT_OF(bad_steps); i++)
        check_refused(bad_steps[i]);
}

// Loaded in fp32 they are packed from that, and unpacked to it in each backward pass, then cast.
// Where peft prepares the model, it was loaded in bf16.
TEST(packed_weights_are_unpacked_to_what_they_were)
{
    const uint64_t gate = UINT64_C(3072) * 1024;
    const char *trl = "context=3000 lora=16 quantize=nf4 recipe=trl precision=autocast";
    const char *prepared = "context=3000 lora=16 quantize=nf4 recipe=transformers";
    CHECK_U64((uint64_t)requests_of(trl, gate * 4), UINT64_C(6) * (1 + PREDICT_STEPS));
    CHECK_U64((uint64_t)requests_of(prepared, gate * 4), 0);
}

// Adapters in bf16 with TRL, in fp32 where peft prepares the model; the embedding is fp32 in both.
TEST(what_is_not_packed_is_wide)
{
    static const struct {
        const char *settings;
        uint64_t width; // of adapters
    } rows[] = {{"lora=16 quantize=nf4 recipe=trl precision=autocast optimizer=adamw-fused", 2},
                {"lora=16 quantize=nf4 recipe=transformers optimizer=adamw-fused", 4}};
    const uint64_t adapters = UINT64_C(2) * 16 * ALL_WIDTHS, wide = UINT64_C(151936) * 1024 * 2;
    struct prediction narrow =
        predicted("lora=16 quantize=nf4 recipe=trl precision=bf16 optimizer=adamw-fused");
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct prediction p = predicted(rows[i].settings);
        CHECK_U64(allocated_as(MEMORY_OPTIMIZER), adapters * 2 * rows[i].width + UINT64_C(28) * 4);
        uint64_t more = p.steps[2].end_allocated_bytes - narrow.steps[2].end_allocated_bytes;
        more -= adapters * 3 * (rows[i].width - 2);
        CHECK(more > wide && more < wide + 2 * MIB); // norms, and what is not split off
    }
}

// Shards of each adapter's own unit, in fp32; nothing of the frozen layers.
TEST(fsdp1_shards_adapters_by_themselves)
{
    static const char *const settings[] = {
        "lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200",
        "lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200 precision=bf16 tied=off",
        "lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200 accum=2 sync-each-batch=on",
        "lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200 checkpointing=on",
        "lora=16 recipe=transformers@4.48 strategy=fsdp1 gpu=8xH200 optimizer=adamw-fused",
        "lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200 quantize=nf4",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(settings); i++) {
        struct prediction p = predicted(settings[i]);
        CHECK_U64(allocated_as(MEMORY_OPTIMIZER),
                  UINT64_C(16) * ALL_WIDTHS * 2 * 8 / 8 + UINT64_C(28) * 4);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
    }
}

// Of so many bytes, that are there at once.
static int most_of(const char *settings, uint64_t bytes)
{
    predicted(settings);
    int now = 0, most = 0;
    for (ptrdiff_t i = 0; i < history.count; i++) {
        const struct event *e = &history.events[i];
        if (e->bytes != bytes)
            continue;
        now +=
            (e->kind == EVENT_ALLOC) - (e->kind == EVENT_FREE || e->kind == EVENT_FREE_REQUESTED);
        most = now > most ? now : most;
    }
    return most;
}

// TRL loads all of it in fp32; peft casts an adapter's input to what its shards are, autocast back.
TEST(fsdp1_shards_what_trl_froze_in_fp32)
{
    const char *trl = "lora=16 recipe=trl strategy=fsdp1 gpu=8xH200 optimizer=adamw-fused";
    const char *loaded = "lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200 "
                         "optimizer=adamw-fused checkpointing=on";
    const uint64_t part = UINT64_C(187045376) / 8, inner = UINT64_C(2048) * 3072;
    struct prediction narrow = predicted(loaded), wide = predicted(trl);
    uint64_t more = wide.steps[2].end_allocated_bytes - narrow.steps[2].end_allocated_bytes;
    CHECK(more + 2 * MIB > 2 * part && more < 2 * part + 2 * MIB);
    CHECK_U64((uint64_t)most_of(trl, inner * 4), 1);
}

// An embedding whose output requires a gradient is gathered for its backward pass too; once that is
// known, it stays, as so few others are between.
TEST(zero3_gathers_a_frozen_embedding_again)
{
    const uint64_t whole = UINT64_C(151936) * 1024 * 2;
    const char *on = "lora=16 recipe=trl strategy=zero3 gpu=8xH200 tied=off";
    const char *off = "lora=16 recipe=trl strategy=zero3 gpu=8xH200 tied=off checkpointing=off";
    CHECK_U64((uint64_t)(requests_of(on, whole) - requests_of(off, whole)), 1);
}

// Where a script makes its model before TrainingArguments, all of it comes to each card and is cut
// there: the embedding and two layers, whose parts are left as if each had been cut when made,
// where a tied head is cut too. Adapters are cast with the rest then; else they stay in fp32.
TEST(zero3_cuts_what_was_there_before_it)
{
    const uint64_t layer = UINT64_C(1024) * (2 * 2048 + 2 * 1024 + 3 * 3072);
    const uint64_t head = 2 * UINT64_C(151936) * 1024;
    const char *made = "lora=16 recipe=transformers strategy=zero3 gpu=8xH200";
    const char *there = "lora=16 recipe=transformers strategy=zero3 gpu=8xH200 load-once=off";
    struct prediction one = predicted(made);
    uint64_t parts = allocated_as(MEMORY_PARAMETERS);
    struct prediction other = predicted(there);
    CHECK(allocated_as(MEMORY_PARAMETERS) + head / 8 > parts + head + 4 * layer);
    const uint64_t thin = 2 * UINT64_C(16) * (3072 + 2 * 2048 + 3072 + 3 * 4096);
    CHECK_U64(other.steps[2].end_allocated_bytes + 2 * thin / 8, one.steps[2].end_allocated_bytes);
}

// transformers 4's checkpoints are reentrant, and FSDP1's hook on a frozen layer holds its input.
TEST(fsdp1_holds_the_inputs_of_frozen_layers)
{
    const uint64_t hidden = UINT64_C(2048) * 1024 * 2;
    const char *now = "layers=24 lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200 "
                      "checkpointing=on precision=bf16 lora-targets=down";
    const char *before = "layers=24 lora=16 recipe=transformers@4.48 strategy=fsdp1 gpu=8xH200 "
                         "checkpointing=on precision=bf16 lora-targets=down";
    CHECK(most_of(before, hidden) >= most_of(now, hidden) + 20);
}

// A magnitude for each of 12288 outputs of a layer; a unit matrix of the MLP's width in each
// forward pass and each recomputation, in fp32, and under autocast in bf16 too.
TEST(dora_makes_the_whole_change_of_a_weight)
{
    const uint64_t unit = UINT64_C(3072) * 3072;
    const char *plain = "lora=16 dora=on optimizer=adamw-fused";
    const char *autocast = "lora=16 dora=on optimizer=adamw-fused precision=autocast";
    const char *packed = "lora=16 dora=on recipe=trl quantize=nf4 precision=bf16";
    predicted(plain);
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER),
              UINT64_C(2) * (16 * ALL_WIDTHS + 12288) * 8 + UINT64_C(42) * 4);
    predicted(packed);
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER),
              UINT64_C(2) * (16 * ALL_WIDTHS * 4 + 12288 * 8) + UINT64_C(42) * 4);
    CHECK_U64((uint64_t)requests_of(plain, unit * 4), UINT64_C(4) * PREDICT_STEPS);
    CHECK_U64((uint64_t)requests_of(plain, unit * 2), 0);
    CHECK_U64((uint64_t)requests_of(autocast, unit * 4), UINT64_C(4) * PREDICT_STEPS);
    CHECK_U64((uint64_t)requests_of(autocast, unit * 2), UINT64_C(4) * PREDICT_STEPS);
    CHECK(predicted(plain).requested_bytes > predicted("lora=16").requested_bytes);
    predicted("lora=16 dora=on recipe=trl gpu=8xH200");
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER),
              UINT64_C(2) * (16 * ALL_WIDTHS + 12288) + UINT64_C(42) * 4);
    predicted("lora=16 dora=on recipe=trl gpu=8xH200 strategy=zero1");
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), UINT64_C(2) * (16 * ALL_WIDTHS + 12288) * 12 / 8 + 4);
}

// Bytes that were asked for and not let go.
static uint64_t left_by(const char *settings)
{
    predicted(settings);
    uint64_t now = 0;
    for (ptrdiff_t i = 0; i < history.count; i++) {
        const struct event *e = &history.events[i];
        if (e->kind == EVENT_ALLOC)
            now += e->bytes;
        else if (e->kind == EVENT_FREE || e->kind == EVENT_FREE_REQUESTED)
            now -= e->bytes;
    }
    return now;
}

// Half a byte an element, an eighth of that on each rank, and all of the scales.
TEST(fsdp1_shards_packed_weights_and_no_scales)
{
    const char *whole = "lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200 optimizer=sgd";
    const char *packed =
        "lora=16 recipe=transformers strategy=fsdp1 gpu=8xH200 optimizer=sgd quantize=nf4";
    const uint64_t elements = UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024);
    const uint64_t scales = elements / 64 + elements / 64 / 256 * 4;
    uint64_t less = left_by(whole) - left_by(packed);
    const uint64_t saved = elements * 3 / 2 / 8;
    CHECK(less + scales < saved + MIB / 8 && less + scales + MIB / 8 > saved);
}

// Every rank has all of them before they are cut; transformers 4 brought what it had packed back to
// host memory.
TEST(fsdp1_finds_packed_weights_on_the_card)
{
    static const char *const settings[][2] = {
        {"lora=16 quantize=nf4 strategy=fsdp1 gpu=8xH200 recipe=transformers",
         "layers=22 lora=16 quantize=nf4 strategy=fsdp1 gpu=8xH200 recipe=transformers"},
        {"lora=16 quantize=nf4 strategy=fsdp1 gpu=8xH200 recipe=transformers@4.48",
         "layers=22 lora=16 quantize=nf4 strategy=fsdp1 gpu=8xH200 recipe=transformers@4.48"}};
    const uint64_t layer = UINT64_C(1024) * (2 * 2048 + 2 * 1024 + 3 * 3072);
    uint64_t more[2];
    for (int i = 0; i < 2; i++)
        more[i] = predicted(settings[i][1]).load.reserved_bytes -
                  predicted(settings[i][0]).load.reserved_bytes;
    CHECK(more[0] > 20 * layer / 2);
    CHECK(more[1] < 20 * layer / 2 / 4);
}
