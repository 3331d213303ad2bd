// Adapters, packed weights and fused losses over shards, as Accelerate and DeepSpeed cut them.
#include <string.h>

#include "core/base/num.h"
#include "core/base/units.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static struct trace history; // of the last prediction

// Of Qwen3-0.6B with two layers on eight H200.
static struct prediction played_in(struct arena *a, const char *more)
{
    const char *settings =
        str_format(a, "model=Qwen3-0.6B layers=2 gpu=8xH200 context=2048 %s", more).p;
    struct prediction p = predicted_in(a, settings);
    history = history_in(a, settings);
    return p;
}

static struct prediction predicted(const char *more)
{
    return played_in(test_arena(), more);
}

static uint64_t allocated_as(enum memory_kind kind)
{
    uint64_t bytes = 0;
    for (ptrdiff_t i = 0; i < history.count; i++)
        if (history.events[i].kind == EVENT_ALLOC && history.events[i].tag == (uint32_t)kind)
            bytes += history.events[i].bytes;
    return bytes;
}

static uint64_t requests_of(uint64_t bytes)
{
    uint64_t count = 0;
    for (ptrdiff_t i = 0; i < history.count; i++)
        count += history.events[i].kind == EVENT_ALLOC && history.events[i].bytes == bytes;
    return count;
}

// hidden 1024, queries 2048, keys and values 1024, MLP 3072: inputs and outputs of seven layers,
// and their weights in two layers.
enum { ALL_WIDTHS = 3072 + 2048 + 2048 + 3072 + 4096 + 4096 + 4096, RANKS = 8 };
static const uint64_t weights = UINT64_C(2) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024);
static const uint64_t gate = UINT64_C(3072) * 1024; // the embedding's rows are 151936

// What packing saves of a rank's memory between steps, its scales not counted.
static uint64_t saved_by_packing(const char *job)
{
    struct arena *a = test_arena();
    struct str whole = str_format(a, "lora=16 optimizer=sgd %s", job);
    struct str packed = str_format(a, "%s quantize=nf4", whole.p);
    uint64_t before = played_in(a, whole.p).steps[2].end_allocated_bytes;
    struct prediction p = played_in(a, packed.p);
    CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
    CHECK(requests_of(gate / 2 / RANKS) > 0);
    CHECK(requests_of(gate / 2) > 0); // all of it, before it is cut
    return before - p.steps[2].end_allocated_bytes + weights / 64 + weights / 64 / 256 * 4;
}

static bool is_near(uint64_t a, uint64_t b, uint64_t most)
{
    return a < b + most && b < a + most;
}

// Half a byte an element, an eighth of that on each rank, and all of the scales.
TEST(packed_weights_are_shards_and_their_scales_are_not)
{
    static const char *const rows[] = {
        "recipe=transformers strategy=fsdp2",
        "recipe=trl strategy=zero3",
        "recipe=transformers strategy=zero3",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        CHECK(is_near(saved_by_packing(rows[i]), weights * 3 / 2 / RANKS, MIB));
    // TRL's shards are of fp32, the embedding's too, those of its adapters then of bf16; of what is
    // larger more is not split off.
    uint64_t wide = (UINT64_C(151936) * 1024 + UINT64_C(2) * 16 * ALL_WIDTHS) * 2;
    uint64_t saved = saved_by_packing("recipe=trl strategy=fsdp2");
    CHECK(is_near(saved, (weights * 7 / 2 + wide) / RANKS, 2 * MIB));
}

// Accelerate leaves adapters over packed weights as they are: bf16 in TRL, fp32 as peft makes them.
TEST(adapters_over_packed_shards_keep_their_type)
{
    const uint64_t adapters = UINT64_C(2) * 16 * ALL_WIDTHS / RANKS;
    predicted("lora=16 quantize=nf4 strategy=fsdp2 recipe=trl optimizer=adamw-fused");
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), adapters * 4 + UINT64_C(28) * 4);
    predicted("lora=16 quantize=nf4 strategy=fsdp2 recipe=transformers optimizer=adamw-fused");
    CHECK_U64(allocated_as(MEMORY_OPTIMIZER), adapters * 8 + UINT64_C(28) * 4);
}

// All of a packed model is on the card when its shards are cut under fsdp2, and goes with the last;
// DeepSpeed cuts one weight after another.
TEST(a_packed_model_is_whole_before_it_is_cut)
{
    struct prediction cut = predicted("layers=24 lora=16 quantize=nf4 strategy=fsdp2 recipe=trl");
    struct prediction one = predicted("layers=24 lora=16 quantize=nf4 strategy=zero3 recipe=trl");
    const uint64_t whole = UINT64_C(12) * weights / 2 + UINT64_C(151936) * 1024 * 2;
    CHECK(cut.load.allocated_bytes > whole + whole / RANKS);
    CHECK(one.load.allocated_bytes > whole);
    CHECK(one.load.allocated_bytes < cut.load.allocated_bytes);
}

// Outside of TRL, too: adapters alone have masters, and the head is a module like others.
TEST(zero3_trains_adapters_in_every_trainer)
{
    static const char *const rows[] = {
        "recipe=transformers checkpointing=on",
        "recipe=transformers checkpointing=off tied=off",
        "recipe=deepspeed",
        "strategy=zero3 recipe=hf",
        "recipe=llamafactory strategy=zero3",
    };
    const uint64_t adapters = UINT64_C(2) * 16 * ALL_WIDTHS / RANKS;
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct str text = str_format(a, "lora=16 optimizer=adamw-fused strategy=zero3 %s", rows[i]);
        struct prediction p = played_in(a, text.p);
        uint64_t state = allocated_as(MEMORY_OPTIMIZER);
        CHECK(state >= adapters * 12 && state < adapters * 20 + MIB);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
    }
}

// No logits of all tokens, the head's gradient from the forward pass on, and nothing left behind.
TEST(ligers_loss_runs_over_shards)
{
    static const char *const rows[] = {
        "recipe=transformers strategy=fsdp1",
        "recipe=transformers strategy=fsdp1 tied=off",
        "recipe=transformers strategy=fsdp2",
        "recipe=transformers strategy=fsdp2 tied=off",
        "recipe=transformers strategy=fsdp2 cp=4",
        "recipe=hf strategy=fsdp2",
        "recipe=transformers strategy=zero1",
        "recipe=transformers strategy=zero2 tied=off",
        "recipe=llamafactory strategy=fsdp2 accum=2 sync-each-batch=on",
    };
    const uint64_t head = UINT64_C(151936) * 1024 * 2;
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct str full = str_format(a, "context=16k %s", rows[i]);
        struct str fused = str_format(a, "%s loss=liger", full.p);
        struct prediction all = played_in(a, full.p);
        struct prediction p = played_in(a, fused.p);
        uint64_t tokens = strstr(rows[i], "cp=4") ? 4096 : 16384;
        CHECK(p.allocated_bytes + tokens * 151936 * 4 < all.allocated_bytes);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
        CHECK(requests_of(head) >= PREDICT_STEPS);
    }
}

// Its parts are there in both; read, its embedding is whole beside the policy's.
TEST(an_evaluation_that_compares_reads_the_reference)
{
    const char *with = "recipe=trl task=dpo strategy=zero3 eval-batch=8";
    const char *without = "recipe=trl task=dpo strategy=zero3 eval-batch=8 precompute-reference=on";
    const uint64_t embedding = UINT64_C(151936) * 1024 * 2;
    struct prediction held = predicted(without), read = predicted(with);
    uint64_t parts = (embedding + weights * 2) / RANKS;
    CHECK(read.evaluation.allocated_bytes >
          held.evaluation.allocated_bytes + parts + embedding / 2);
    CHECK_U64(read.steps[2].end_allocated_bytes, read.steps[1].end_allocated_bytes);
}

// accelerate 1.15 does not cut the last norm and the head again: the second batch of an evaluation
// has the embedding beside them. TRL never calls that head, so torch does not see the pass of the
// step that follows, and its gradients wait for the embedding's (8512 MiB, 8510 on fake tensors).
TEST(an_evaluation_leaves_the_tail_whole)
{
    const char *one = "recipe=trl model=Qwen3-8B layers=3 context=1024 eval-batch=2 eval-size=16";
    const char *two = "recipe=trl model=Qwen3-8B layers=3 context=1024 eval-batch=2 eval-size=32";
    const char *called = "recipe=transformers strategy=fsdp2 model=Qwen3-8B layers=3 context=1024 "
                         "eval-batch=2 eval-size=32";
    const uint64_t head = UINT64_C(151936) * 4096 * 2;
    struct prediction first = predicted(one), second = predicted(two), plain = predicted(called);
    CHECK(second.evaluation.allocated_bytes > first.evaluation.allocated_bytes + head / 2);
    CHECK(second.resumed.allocated_bytes > second.steps[2].allocated_bytes + head / 2);
    CHECK(plain.resumed.allocated_bytes < plain.steps[2].allocated_bytes + head / 2);
}

// An evaluation that generates passes many times before the next step: torch forgets none of it
// until a backward pass ends, and nothing of it is needed by then.
TEST(an_evaluation_that_generates_leaves_training_as_it_is)
{
    const char *alone = "recipe=trl task=grpo strategy=fsdp2 layers=28 context=1024";
    const char *also = "recipe=trl task=grpo strategy=fsdp2 layers=28 context=1024 eval-batch=1";
    struct prediction p = predicted(alone), q = predicted(also);
    CHECK(q.fits && q.evaluation.allocated_bytes < q.allocated_bytes);
    CHECK_U64(q.steps[2].allocated_bytes, p.steps[2].allocated_bytes);
    CHECK(q.resumed.allocated_bytes < p.allocated_bytes + p.allocated_bytes / 10);
}

// TRL calls the head itself: no root's backward pass gathers the last layer ahead of its own.
TEST(a_layer_that_nobody_gathered_ahead_comes_in_its_turn)
{
    const char *later = "recipe=trl task=grpo strategy=fsdp1 layers=12 batch=4 accum=2";
    const char *ahead = "recipe=trl task=grpo strategy=fsdp1 layers=12 batch=4 accum=2 "
                        "backward-prefetch=on";
    const char *stay = "recipe=trl task=dpo strategy=fsdp1 layers=12 batch=8 accum=2 lora=16 "
                       "checkpointing=off reshard=off";
    struct prediction p = predicted(later), q = predicted(ahead), r = predicted(stay);
    const uint64_t layer = p.allocated_bytes / 8;
    CHECK(q.allocated_bytes >= p.allocated_bytes && q.allocated_bytes < p.allocated_bytes + layer);
    CHECK(r.steps_done > 0);
}

// Each token that is generated is a pass of the root, which lets the last layer's buffer go: the
// reference reads without it (11795.9 MiB on fake tensors, torch 2.11 and TRL 1.16).
TEST(a_reference_reads_without_a_layer_of_the_policy)
{
    struct prediction p = predicted("recipe=trl task=grpo model=Qwen3-8B layers=3 context=272 "
                                    "prompt=256 batch=4 beta=0.04 load-once=off");
    const uint64_t played = UINT64_C(12368904192), layer = UINT64_C(385892864);
    CHECK(p.allocated_bytes > played - layer / 50 && p.allocated_bytes < played + layer / 50);
}

// TRL's fused head makes no logits: for metrics the model runs once more, and all ranks' are kept.
TEST(trls_logits_come_from_a_second_pass)
{
    const char *losses = "recipe=trl gpu=H200 eval-batch=4";
    const char *logits = "recipe=trl gpu=H200 eval-batch=4 eval-size=8 eval-logits=on";
    const char *pairs = "recipe=trl gpu=H200 task=dpo eval-batch=2 eval-size=4 eval-logits=on";
    const char *scores = "recipe=trl gpu=H200 task=reward eval-batch=4 eval-size=8 eval-logits=on";
    const uint64_t batch = UINT64_C(4) * 2048 * 151936;
    struct prediction plain = predicted(losses), kept = predicted(logits);
    CHECK(plain.evaluation.allocated_bytes < batch * 4);
    CHECK(kept.evaluation.allocated_bytes > batch * 4 * 3); // two batches, and the second alone
    CHECK(requests_of(batch * 2) == 2 && requests_of(batch * 8) == 1);
    CHECK(predicted(pairs).evaluation.allocated_bytes > batch * 4 * 3);
    CHECK(predicted(scores).evaluation.allocated_bytes < batch * 4);
}

// fully_shard of all of it: whole in bf16 while it reads, copied from a buffer of the same size;
// its shards are fp32 and stay. An adapter's reference is the model itself.
TEST(under_fsdp2_a_reference_is_one_unit)
{
    static const char *const tasks[] = {"dpo", "kto batch=2"};
    const uint64_t all =
        UINT64_C(151936) * 1024 + weights + UINT64_C(2) * (2 * 1024 + 2 * 128) + 1024;
    for (ptrdiff_t i = 0; i < COUNT_OF(tasks); i++) {
        struct arena *a = test_arena();
        struct str job = str_format(a, "strategy=fsdp2 recipe=trl task=%s", tasks[i]);
        struct str alone = str_format(a, "%s precompute-reference=on", job.p);
        struct str adapted = str_format(a, "%s lora=16", job.p);
        struct prediction held = played_in(a, job.p);
        CHECK_U64(requests_of(all * 2), UINT64_C(1) * (i ? 2 : 1) * PREDICT_STEPS);
        uint64_t with = held.steps[2].end_allocated_bytes;
        CHECK_U64(with, held.steps[1].end_allocated_bytes);
        uint64_t more = with - played_in(a, alone.p).steps[2].end_allocated_bytes;
        CHECK(more + 3 * MIB > all * 4 / RANKS && more < all * 4 / RANKS + 3 * MIB);
        struct prediction p = played_in(a, adapted.p);
        CHECK_U64(requests_of(all * 2), 0);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
    }
}

// Within 0.3 %.
static bool is_as_found(uint64_t bytes, uint64_t found)
{
    return bytes > found - found / 333 && bytes < found + found / 333;
}

// The engine that a reference is precomputed with under ZeRO-3 gathers and lets go beside the one
// that trains, and what was left over in a backward pass stays until the step. Largest step and
// evaluation on fake tensors (torch 2.11, TRL 1.16, DeepSpeed 0.19.8, peft 0.21).
TEST(a_precomputed_reference_leaves_its_engine_behind)
{
    static const struct {
        const char *job;
        uint64_t step, evaluation;
    } rows[] = {
        {"task=dpo model=Qwen3-1.7B layers=4 context=512 prompt=128 batch=2", UINT64_C(3888061952),
         0},
        {"task=dpo model=Qwen3-1.7B layers=4 context=512 prompt=128 batch=2 accum=2 lora=16",
         UINT64_C(1541755392), 0},
        {"task=kto model=Qwen3-1.7B layers=4 context=512 prompt=128 batch=2", UINT64_C(3682549248),
         0},
        {"task=kto model=Qwen3-1.7B layers=4 context=512 prompt=128 batch=2 lora=16",
         UINT64_C(1376776704), 0},
        {"task=dpo model=Llama-3.2-1B layers=6 context=1024 prompt=256 accum=3",
         UINT64_C(3633940480), 0},
        {"task=dpo model=Llama-3.2-1B layers=6 context=1024 prompt=256 lora=16 eval-batch=2",
         UINT64_C(1836371456), UINT64_C(1946752000)},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        const char *job = str_format(a,
                                     "recipe=trl@1.16 strategy=zero3 gpu=8xH200 %s "
                                     "precompute-reference=on save=never",
                                     rows[i].job)
                              .p;
        struct prediction p = predicted_in(a, job);
        uint64_t largest = u64_most(p.steps[1].allocated_bytes, p.steps[2].allocated_bytes);
        CHECK(is_as_found(largest, rows[i].step));
        CHECK(!rows[i].evaluation || is_as_found(p.evaluation.allocated_bytes, rows[i].evaluation));
    }
}

// Under FSDP a reference is loaded to precompute with, whole while it reads, and gone before the
// policy comes (2455390208 bytes on fake tensors); with adapters TRL cannot.
TEST(under_fsdp2_a_reference_is_precomputed_by_itself)
{
    const char *job = "recipe=trl@1.16 task=dpo strategy=fsdp2 model=Qwen3-1.7B layers=4 "
                      "gpu=8xH200 context=512 prompt=128 batch=2 load-once=off";
    struct arena *a = test_arena();
    struct str precomputed = str_format(a, "%s precompute-reference=on", job);
    struct prediction p = predicted_in(a, precomputed.p), held = predicted_in(a, job);
    CHECK(is_as_found(p.load.allocated_bytes, UINT64_C(2455390208)));
    CHECK(is_as_found(p.steps[2].allocated_bytes, UINT64_C(3510197760)));
    CHECK(p.steps[2].end_allocated_bytes < held.steps[2].end_allocated_bytes);
}

// As on one rank: the whole product of an adapter over a unit matrix, and its norms.
TEST(zero3_runs_dora)
{
    const char *job = "recipe=trl strategy=zero3 lora=16 dora=on optimizer=adamw-fused";
    struct prediction p = predicted(job);
    const uint64_t trained = UINT64_C(2) * (16 * ALL_WIDTHS + 12288) / RANKS;
    uint64_t units = requests_of(UINT64_C(3072) * 3072 * 2), state = allocated_as(MEMORY_OPTIMIZER);
    CHECK_U64(units, UINT64_C(2) * 2 * PREDICT_STEPS); // of the MLP's last layer, run again
    CHECK(state >= trained * 12 && state < trained * 20 + MIB);
    CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
}

// Keys and values of four rows, eight heads of 128, joined in fp32: all tokens but the last, of two
// layers in each step that is played. The head is cast for each pass, whether autocast's cache has
// it or not.
TEST(answers_join_keys_and_values)
{
    static const char *const jobs[] = {
        "recipe=trl task=grpo batch=4 prompt=256 context=320 strategy=fsdp1",
        "recipe=trl task=grpo batch=4 prompt=256 context=320 gpu=H200",
    };
    const uint64_t token = UINT64_C(4) * 8 * 128 * 4, head = UINT64_C(151936) * 1024 * 2;
    const uint64_t layers = 2, passes = 1 + 4, steps = 2;
    for (int i = 0; i < COUNT_OF(jobs); i++) {
        struct prediction p = predicted(jobs[i]);
        CHECK(requests_of(token * 319) >= layers * 2 * steps);
        CHECK(requests_of(head) >= passes * steps);
        CHECK(p.steps[1].reserved_bytes >= p.steps[1].allocated_bytes);
    }
}

// All parameters are whole while answers are generated; DeepSpeed then knows no pass by heart, and
// nothing is gathered ahead: a later step needs the optimizer's state more than the first.
TEST(zero3_generates_with_all_parameters)
{
    const char *job =
        "layers=24 recipe=trl task=grpo strategy=zero3 batch=4 context=512 prompt=256";
    struct prediction p = predicted(job);
    const uint64_t all = UINT64_C(151936) * 1024 + UINT64_C(12) * weights;
    const uint64_t state = all * 8 / RANKS;
    CHECK(p.steps[0].allocated_bytes > all * 2 + all * 6 / RANKS);
    CHECK(p.steps[1].allocated_bytes < p.steps[0].allocated_bytes + state + 32 * MIB);
    CHECK_U64(p.steps[2].allocated_bytes, p.steps[1].allocated_bytes);
    CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
}

// The card holds a bucket's gradients in fp32 until all go to files; the host holds buffers only.
TEST(files_take_the_place_of_host_memory)
{
    const char *to_host = "strategy=zero3 recipe=deepspeed offload=all layers=24";
    const char *to_files = "strategy=zero3 recipe=deepspeed offload=all layers=24 nvme=/disk";
    const uint64_t part = (UINT64_C(151936) * 1024 + UINT64_C(12) * weights + 55296 + 1024) / RANKS;
    struct prediction host = predicted(to_host), files = predicted(to_files);
    uint64_t buffers = RANKS * (part * 4 * 4 + UINT64_C(5) * 2 * 100000000);
    CHECK(files.host_bytes > buffers && files.host_bytes < buffers + RANKS * part * 16);
    CHECK(host.host_bytes > RANKS * part * 20);
    CHECK(files.allocated_bytes >= host.allocated_bytes);
    CHECK_U64(files.steps[2].end_allocated_bytes, files.steps[1].end_allocated_bytes);
    CHECK(files.time.unknown && !host.time.unknown);
}
