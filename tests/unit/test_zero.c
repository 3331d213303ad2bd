// DeepSpeed's stages: what is kept after a step, what a pass takes on the way, and what is refused.
// How close they are to real runs is tests/measured/accuracy.py's business.
#include <string.h>

#include "core/base/units.h"
#include "core/predict/predict.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

enum { ALL = 596049920 }; // parameters of Qwen3-0.6B

// Of rank 64: inputs and outputs of seven linear layers of 28 decoder layers.
#define LINEAR   (UINT64_C(28) * (2048 * 1024 * 2 + 1024 * 1024 * 2 + 3 * 3072 * 1024))
#define ADAPTERS (UINT64_C(64) * 28 * (3072 + 2048 + 2048 + 3072 + 3 * 4096))

static struct prediction predicted(const char *settings)
{
    return predicted_in(test_arena(), settings);
}

// What the unmodified libraries took on fake tensors, evaluating between steps (DeepSpeed 0.19.8,
// TRL 1.16, transformers 5.17): parameters that an evaluation leaves behind are there in its next
// batch, and in the step that follows.
TEST(an_evaluation_leaves_parameters_behind)
{
    static const struct {
        const char *settings;
        double steps, evaluation;
    } rows[] = {
        {"recipe=trl layers=2 gpu=16xH200 context=1024 batch=3 eval-batch=1", 8104951808.0,
         4808014848.0},
        {"recipe=transformers checkpointing=on layers=2 gpu=16xH200 context=1024 batch=3 "
         "eval-batch=1",
         10170818560.0, 0},
        {"recipe=transformers checkpointing=on layers=2 gpu=2xH200 context=1024 batch=3 "
         "eval-batch=3",
         21062045184.0, 0},
        {"recipe=trl layers=6 gpu=16xH200 context=1536 batch=4 accum=2 eval-batch=4", 10138734592.0,
         7832008192.0},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct prediction p = predicted_in(
            a,
            str_format(a, "model=Qwen2.5-7B strategy=zero3 network=none %s", rows[i].settings).p);
        double error = (double)p.resumed.allocated_bytes / rows[i].steps - 1;
        CHECK(error > -0.0005 && error < 0.0005);
        CHECK(p.resumed.allocated_bytes > p.steps[2].allocated_bytes);
        CHECK_U64(p.allocated_bytes, p.resumed.allocated_bytes);
        error = rows[i].evaluation > 0
                    ? (double)p.evaluation.allocated_bytes / rows[i].evaluation - 1
                    : 0;
        CHECK(error > -0.0015 && error < 0.0015);
    }
}

// After a step: bf16 parameters, and this rank's part of fp32 copies and two moments. Stage 3 has a
// part of the parameters only, and one of bf16 gradients. cuBLAS has two workspaces.
TEST(a_step_leaves_parameters_and_a_part_of_the_optimizer)
{
    static const struct {
        const char *settings;
        uint64_t bytes;
    } rows[] = {
        {"strategy=zero1 gpu=2xH200", UINT64_C(2) * ALL + UINT64_C(12) * ALL / 2},
        {"strategy=zero2 gpu=2xH200", UINT64_C(2) * ALL + UINT64_C(12) * ALL / 2},
        {"strategy=zero2 gpu=8xH200", UINT64_C(2) * ALL + UINT64_C(12) * ALL / 8},
        {"strategy=zero3 gpu=2xH200", UINT64_C(16) * ALL / 2},
        {"strategy=zero3 gpu=8xH200", UINT64_C(16) * ALL / 8},
        {"strategy=zero3 gpu=8xH200 offload=optimizer", UINT64_C(2) * ALL / 8},
        {"strategy=zero3 gpu=8xH200 offload=all", 0},
        {"strategy=zero1 gpu=2xH200 lora=64", 2 * (ALL + ADAPTERS) + UINT64_C(12) * ADAPTERS / 2},
        {"strategy=zero2 gpu=8xH200 lora=64 recipe=trl",
         2 * (ALL + ADAPTERS) + UINT64_C(12) * ADAPTERS / 8},
        {"strategy=zero2 gpu=8xH200 lora=64 recipe=trl quantize=nf4",
         2 * (ALL - LINEAR + ADAPTERS) + LINEAR / 2 + LINEAR / 64 + UINT64_C(12) * ADAPTERS / 8},
        {"strategy=zero2 gpu=8xH200 lora=64 recipe=transformers",
         2 * (ALL + ADAPTERS) + UINT64_C(12) * ADAPTERS / 8},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct str s = str_format(a, "model=Qwen3-0.6B context=2048 %s", rows[i].settings);
        uint64_t left = predicted_in(a, s.p).steps[2].end_allocated_bytes;
        if (left < rows[i].bytes || left > rows[i].bytes + 70 * MIB)
            test_failed(__FILE__, __LINE__, "%s leaves %llu bytes", rows[i].settings,
                        (unsigned long long)left);
    }
}

TEST(stage_one_keeps_gradients_between_micro_batches)
{
    struct prediction one =
        predicted("model=Qwen3-0.6B gpu=8xH200 context=2048 strategy=zero1 accum=2");
    struct prediction two =
        predicted("model=Qwen3-0.6B gpu=8xH200 context=2048 strategy=zero2 accum=2");
    CHECK(one.requested_bytes - two.requested_bytes > UINT64_C(2) * ALL * 7 / 10);
}

// Once the order of modules is known, parameters stay from one pass to the other: all of a small
// model's, a billion of a large one's.
TEST(stage_three_gathers_up_to_a_billion_parameters)
{
    struct prediction small = predicted("model=Qwen3-0.6B gpu=8xH200 context=2048 strategy=zero3");
    CHECK(small.steps[1].requested_bytes >
          small.steps[0].requested_bytes + UINT64_C(2) * (ALL - 155582464) * 9 / 10);
    CHECK_U64(small.steps[2].requested_bytes, small.steps[1].requested_bytes);
    struct prediction large = predicted("model=Qwen3-14B gpu=8xH200 context=8k strategy=zero3");
    CHECK(large.by_kind[MEMORY_GATHERED] < UINT64_C(2) * 2100000000);
    CHECK(large.by_kind[MEMORY_GATHERED] > UINT64_C(2) * 900000000);
}

// TRL's fused head reads the head's weight without calling it: from the second pass on the model
// itself holds it while it runs, which without tied embeddings is one more tensor of that size.
TEST(a_head_that_is_read_stays_while_the_model_runs)
{
    struct prediction p =
        predicted("model=Qwen3-8B gpu=8xH200 context=2048 strategy=zero3 recipe=trl@1.16");
    uint64_t head = UINT64_C(2) * 151936 * 4096;
    CHECK(p.by_kind[MEMORY_GATHERED] >= head);
    CHECK_U64(p.steps[2].allocated_bytes, p.steps[1].allocated_bytes);
}

// Weights that are not trained are gathered again when their layer is run again, and held until the
// backward pass is over; what is trained, and the optimizer's state, are adapters.
TEST(frozen_weights_pile_up_in_the_backward_pass)
{
    struct prediction p = predicted("model=Qwen3-4B gpu=8xH200 context=2048 strategy=zero3 "
                                    "recipe=trl@1.16 lora=16");
    uint64_t layers = UINT64_C(36) * 2 * (2 * 4096 * 2560 + 2 * 1024 * 2560 + 3 * 9728 * 2560);
    uint64_t embedding = UINT64_C(2) * 151936 * 2560, part = 16 * 57344 * 36 / 8;
    CHECK(p.by_kind[MEMORY_GATHERED] > layers + embedding);
    CHECK(p.by_kind[MEMORY_OPTIMIZER] >= 12 * part);
    CHECK(p.by_kind[MEMORY_OPTIMIZER] < 12 * part + 4096);
    CHECK(p.by_kind[MEMORY_PARAMETERS] > UINT64_C(2) * 4022468096 / 8);
    CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
}

// Without recomputation they come and go.
TEST(frozen_weights_come_and_go_without_recomputation)
{
    struct prediction p = predicted("model=Qwen3-4B gpu=8xH200 context=2048 strategy=zero3 "
                                    "recipe=trl@1.16 lora=16 checkpointing=off");
    CHECK(p.by_kind[MEMORY_GATHERED] < UINT64_C(3) << 30);
    CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
}

TEST(steps_leave_what_they_found)
{
    static const char *const rows[] = {"zero1 gpu=4xH200 accum=2",
                                       "zero2 gpu=3xH200 accum=4 loss=chunked:512",
                                       "zero2 gpu=2xH200 loss=none tied=off",
                                       "zero2 gpu=8xH200 offload=optimizer accum=2",
                                       "zero1 gpu=4xH200 accum=2 lora=16",
                                       "zero2 gpu=3xH200 accum=4 lora=16 lora-targets=q,down",
                                       "zero2 gpu=8xH200 lora=16 recipe=trl task=dpo",
                                       "zero1 gpu=2xH200 lora=16 quantize=nf4",
                                       "zero2 gpu=2xH200 lora=16 quantize=nf4 recipe=trl accum=2",
                                       "zero3 gpu=3xH200 checkpointing=off accum=2",
                                       "zero3 gpu=2xH200 tied=off offload=all",
                                       "zero3 gpu=2xH200 optimizer=adamw-fused batch=2"};
    static const char *const models[] = {"Qwen3-0.6B", "Qwen2.5-0.5B", "Llama-3.2-1B"};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows) * COUNT_OF(models); i++) {
        struct arena *a = test_arena();
        struct str s = str_format(a, "model=%s layers=3 context=1024 strategy=%s",
                                  models[i % COUNT_OF(models)], rows[i / COUNT_OF(models)]);
        struct prediction p = predicted_in(a, s.p);
        CHECK_U64((uint64_t)p.steps_done, PREDICT_STEPS);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
    }
}

static uint64_t needed_at(int context, const char *strategy)
{
    struct arena *a = test_arena();
    struct str s =
        str_format(a, "model=Qwen3-1.7B gpu=4xH200 context=%d strategy=%s", context, strategy);
    return predicted_in(a, s.p).requested_bytes;
}

TEST(more_context_never_needs_less)
{
    static const char *const rows[] = {"zero1", "zero2", "zero3", "zero3 checkpointing=off"};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        for (int context = 1024; context < 16384; context *= 2)
            CHECK(needed_at(2 * context, rows[i]) >= needed_at(context, rows[i]));
}

TEST(an_optimizer_in_host_memory_takes_room_there)
{
    struct prediction here = predicted("model=Qwen3-8B gpu=8xH200 context=4k strategy=zero3");
    struct prediction some =
        predicted("model=Qwen3-8B gpu=8xH200 context=4k strategy=zero3 offload=optimizer");
    struct prediction all =
        predicted("model=Qwen3-8B gpu=8xH200 context=4k strategy=zero3 offload=all");
    CHECK_U64(here.host_bytes, 0);
    CHECK(some.host_bytes > UINT64_C(18) * 8190735360);
    CHECK(all.host_bytes >= some.host_bytes + UINT64_C(2) * 8190735360);
}

// bf16 parameters, reduced gradients, fp32 copies and two moments of all; nothing is gathered.
TEST(one_rank_holds_all_and_gathers_nothing)
{
    uint64_t all = 596049920;
    struct prediction two = predicted("model=Qwen3-0.6B gpu=H200 context=4k strategy=zero2");
    struct prediction three = predicted("model=Qwen3-0.6B gpu=H200 context=4k strategy=zero3");
    CHECK(two.steps[2].end_allocated_bytes >= 14 * all);
    CHECK(three.steps[2].end_allocated_bytes >= 16 * all);
    CHECK(three.steps[2].end_allocated_bytes < 16 * all + (128 << 20));
    CHECK_U64(three.by_kind[MEMORY_GATHERED], 0);
}

#define LONG \
    "model=Qwen3-0.6B context=64k strategy=zero3 recipe=deepspeed loss=liger attention=flash2 "
enum { LONG_TOKENS = 65536, HIDDEN = 1024, MLP = 3072, LAYERS = 28 };

// Of a layer that is run again, the MLP keeps gate, its activation, up and their product; over
// pieces it keeps its input, which attention's output is needed for anyway.
TEST(a_tiled_mlp_keeps_its_input_only)
{
    struct prediction whole = predicted(LONG "gpu=8xH200 layer-kernels=torch");
    struct prediction tiled = predicted(LONG "gpu=8xH200 layer-kernels=torch tiled-mlp=on "
                                             "zero-buckets=auto");
    CHECK(whole.by_kind[MEMORY_SAVED] >
          tiled.by_kind[MEMORY_SAVED] + UINT64_C(2) * LONG_TOKENS * 3 * MLP);
    CHECK(whole.allocated_bytes > tiled.allocated_bytes);
    CHECK_U64(tiled.steps[2].end_allocated_bytes, whole.steps[2].end_allocated_bytes);
    CHECK_U64(tiled.steps[2].allocated_bytes, tiled.steps[1].allocated_bytes);
}

// Each rank of Ulysses has its part of the tokens in all but attention, and there its part of the
// heads: eight times the length on eight ranks needs what one length on one rank does, but for
// copies in other layouts and heads of keys that are repeated.
TEST(ulysses_spreads_a_sequence)
{
    struct prediction one = predicted(LONG "gpu=8xH200 tiled-mlp=on checkpoint-offload=on");
    struct prediction all = predicted("model=Qwen3-0.6B context=512k strategy=zero3 loss=liger "
                                      "recipe=deepspeed attention=flash2 gpu=8xH200 tiled-mlp=on "
                                      "checkpoint-offload=on sp=8");
    uint64_t heads = UINT64_C(2) * LONG_TOKENS * 16 * 128;
    CHECK(all.allocated_bytes >= one.allocated_bytes);
    CHECK(all.allocated_bytes < one.allocated_bytes + 6 * heads);
    CHECK_U64(all.host_bytes, one.host_bytes);
    CHECK(all.outside.nccl_bytes > one.outside.nccl_bytes);
    struct prediction wide = predicted("model=Qwen3-0.6B context=1024k strategy=zero3 loss=liger "
                                       "recipe=deepspeed attention=flash2 gpu=2x8xH200 "
                                       "tiled-mlp=on checkpoint-offload=on sp=16");
    CHECK_U64(wide.outside.nccl_bytes, all.outside.nccl_bytes); // other nodes' share their buffers
}

// 128 rows more for each sample, of q's gradient in fp32 and of the row sums.
TEST(flash_attention_pads_samples_of_a_sequence)
{
    struct prediction whole = predicted(LONG "gpu=8xH200 tiled-mlp=on checkpoint-offload=on");
    struct prediction packed = predicted(LONG "gpu=8xH200 tiled-mlp=on checkpoint-offload=on "
                                              "sample-tokens=1024");
    uint64_t rows = UINT64_C(128) * LONG_TOKENS / 1024;
    CHECK_U64(packed.allocated_bytes - whole.allocated_bytes, rows * 16 * (4 * 128 + 4));
}

// One layer's input is on the card, those of all ranks' layers in host memory.
TEST(checkpoints_wait_in_host_memory)
{
    struct prediction here = predicted(LONG "gpu=8xH200"),
                      away = predicted(LONG "gpu=8xH200 "
                                            "checkpoint-offload=on");
    uint64_t input = UINT64_C(2) * LONG_TOKENS * HIDDEN;
    CHECK(here.by_kind[MEMORY_CHECKPOINTS] >= (LAYERS - 1) * input); // the first is no layer's
    CHECK(away.by_kind[MEMORY_CHECKPOINTS] <= 2 * input);
    CHECK_U64(away.host_bytes - here.host_bytes, UINT64_C(8) * LAYERS * input);
}

// Liger's loss reads the head's weight as TRL's does, and brings its norms, positions and MLPs.
TEST(ligers_loss_reads_the_head)
{
    struct prediction p = predicted("model=Qwen3-8B gpu=8xH200 context=32k recipe=deepspeed "
                                    "loss=liger offload=optimizer");
    struct prediction torchs = predicted(LONG "gpu=8xH200 layer-kernels=torch");
    CHECK(p.by_kind[MEMORY_GATHERED] >= UINT64_C(2) * 151936 * 4096);
    CHECK_U64(p.steps[2].allocated_bytes, p.steps[1].allocated_bytes);
    CHECK(torchs.allocated_bytes > predicted(LONG "gpu=8xH200").allocated_bytes);
}

// A gigabyte of gradients, where transformers' sizes are two megabytes.
TEST(deepspeeds_own_buckets_are_larger)
{
    struct prediction small = predicted("model=Qwen3-0.6B gpu=8xH200 context=2048 strategy=zero3");
    struct prediction large = predicted("model=Qwen3-0.6B gpu=8xH200 context=2048 strategy=zero3 "
                                        "zero-buckets=deepspeed");
    uint64_t more = large.steps[2].end_allocated_bytes - small.steps[2].end_allocated_bytes;
    CHECK(more > UINT64_C(2) * (500000000 - HIDDEN * HIDDEN));
    CHECK(more < UINT64_C(2) * 500000000);
}

// Numbers are those that a word stands for, or what they say: a bucket of twice the elements takes
// as much more, and the optimizer steps no more at once than its sub-group.
TEST(deepspeeds_sizes_can_be_said)
{
#define SHORT_ZERO3 "model=Qwen3-0.6B gpu=8xH200 context=512 strategy=zero3 "
#define SMALL_ZERO3 "model=Qwen3-0.6B gpu=8xH200 context=2048 strategy=zero3 "
    struct prediction automatic = predicted(SMALL_ZERO3);
    struct prediction said = predicted(SMALL_ZERO3 "reduce-bucket-size=1048576 "
                                                   "prefetch-bucket-size=943718 "
                                                   "persistence-threshold=10240");
    struct prediction own = predicted(SMALL_ZERO3 "zero-buckets=deepspeed");
    struct prediction as_own = predicted(SMALL_ZERO3 "reduce-bucket-size=5e8 "
                                                     "prefetch-bucket-size=5e7 "
                                                     "persistence-threshold=1e5");
    struct prediction larger = predicted(SMALL_ZERO3 "reduce-bucket-size=2e7");
    struct prediction whole = predicted(SHORT_ZERO3),
                      parts = predicted(SHORT_ZERO3 "sub-group-size=1e7");
    CHECK_U64(said.allocated_bytes, automatic.allocated_bytes);
    CHECK_U64(as_own.allocated_bytes, own.allocated_bytes);
    uint64_t more = larger.steps[2].end_allocated_bytes - automatic.steps[2].end_allocated_bytes;
    CHECK(more >= UINT64_C(2) * (20000000 - HIDDEN * HIDDEN) - 512);
    CHECK(more <= UINT64_C(2) * (20000000 - HIDDEN * HIDDEN) + 512);
    CHECK(parts.steps[0].allocated_bytes < whole.steps[0].allocated_bytes);
}

// deepspeed/runtime/constants.py, SEQ_PARALLEL_COMMUNICATION_DATA_TYPE_DEFAULT.
TEST(sequence_parallel_reduces_gradients_in_fp32)
{
    struct prediction whole = predicted("model=Qwen3-0.6B gpu=8xH200 context=2048 strategy=zero3 "
                                        "recipe=trl");
    struct prediction split = predicted("model=Qwen3-0.6B gpu=8xH200 context=4096 strategy=zero3 "
                                        "recipe=trl sp=2");
    uint64_t more = split.steps[2].end_allocated_bytes - whole.steps[2].end_allocated_bytes;
    CHECK(more >= UINT64_C(2) * HIDDEN * HIDDEN); // the bucket
    CHECK(more < UINT64_C(2) * HIDDEN * HIDDEN + 131072);
}

TEST(what_is_not_modelled_is_refused_in_one_sentence)
{
    static const char *const rows[][2] = {
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 precision=bf16",
         "DeepSpeed is modelled in mixed precision only"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero1 precision=autocast",
         "DeepSpeed is modelled in mixed precision only"},
        {"model=gpt-oss-20b gpu=8xH200 strategy=zero3", "not modelled under DeepSpeed"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 loss=chunked:2048",
         "zero3 is modelled with the full loss, Liger's and"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 recipe=trl@1.13",
         "zero3 is modelled with the full loss, Liger's and"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero2 reshard=off", "reshard off is a policy of"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 sp=2 recipe=axolotl",
         "in the steps of trl, transformers, hf"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 sp=2 recipe=trl@1.13", "as TRL 1.16 trains"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 sp=2 recipe=trl task=dpo", "for sft only"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 sp=2 recipe=trl batching=packed",
         "cannot cut TRL's packed rows"},
        {"model=Qwen3-8B gpu=2xH200 strategy=fsdp2 tiled-mlp=on", "is modelled under zero3"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 tiled-mlp=on recipe=trl",
         "a tiled MLP is modelled in the step of deepspeed"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 sample-tokens=1k",
         "samples within a sequence are modelled in the step of deepspeed"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 recipe=deepspeed sample-tokens=1k",
         "with the package flash-attn: --recipe deepspeed --attention flash2"},
        {"model=Qwen3-8B gpu=2xH200 strategy=fsdp2 zero-buckets=deepspeed",
         "buckets are a setting of DeepSpeed"},
        {"model=Qwen3-8B gpu=2xH200 strategy=fsdp2 sub-group-size=1e8",
         "buckets are a setting of DeepSpeed"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero2 sub-group-size=1e8",
         "only reduce-bucket-size is there before stage 3"},
        {"model=Qwen3-8B gpu=2xH200 strategy=fsdp2 offload=optimizer",
         "modelled under DeepSpeed only"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero2 offload=all",
         "is modelled under fsdp and zero3"},
        {"model=Qwen3-8B gpu=8xH200 strategy=zero2 offload=optimizer nvme=/x", "in stage 3"},
        {"model=Qwen3-8B gpu=8xH200 strategy=zero3 nvme=/x", "nothing goes to nvme without"},
        {"model=Qwen3-8B gpu=2xH200 strategy=zero3 offload=all nvme=/x", "holds 1e8 elements"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct job p;
        struct error e;
        struct str s = str_format(a, "%s context=4k", rows[i][0]);
        if (job_of(&p, a, s.p, &e) || !strstr(e.message, rows[i][1]))
            test_failed(__FILE__, __LINE__, "%s gives '%s'", rows[i][0], e.message);
        CHECK_U64((uint64_t)error_exit_status(e.code), 2);
    }
}
