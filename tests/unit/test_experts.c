// Mixtures of experts under every strategy, and what sets them apart in a step. How close they are
// to real runs is tests/accuracy.py's business.
#include <string.h>

#include "core/base/units.h"
#include "core/predict/predict.h"
#include "tests/t.h"

static bool job_of(struct job *p, struct arena *a, const char *settings, struct error *e)
{
    struct settings s = settings_in(a);
    *e = (struct error){0};
    return settings_read(&s, str_from(settings), ' ', STR("test"), e) && settings_check(&s, e) &&
           job_from_settings(p, a, &s, e);
}

static struct prediction predicted_in(struct arena *a, const char *settings)
{
    struct job *job = NEW(a, struct job, 1);
    struct prediction p = {0};
    struct error e;
    if (!job_of(job, a, settings, &e) || !predict(&p, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return p;
}

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

static ptrdiff_t allocations_of(const struct trace *t, uint64_t bytes)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < t->count; i++)
        count += t->events[i].kind == EVENT_ALLOC && t->events[i].bytes == bytes;
    return count;
}

// Two layers of Qwen3-30B-A3B: in each 128 experts of three matrices, and their router.
#define TWO_LAYERS "model=Qwen3-30B-A3B layers=2 context=2048 "
enum { GATE_UP = 128 * 1536 * 2048, DOWN = 128 * 768 * 2048, ROUTER = 128 * 2048 };
#define ALL_OF_IT UINT64_C(1868828160) // the embedding and the head too

// What a step leaves: fp32 shards, copies and moments, or bf16 parameters and parts of the rest.
TEST(experts_are_cut_like_any_parameter)
{
    static const struct {
        const char *settings;
        uint64_t bytes;
    } rows[] = {
        {"strategy=fsdp1 gpu=8xH200", UINT64_C(12) * ALL_OF_IT / 8},
        {"strategy=fsdp2 gpu=8xH200", UINT64_C(12) * ALL_OF_IT / 8},
        {"strategy=zero1 gpu=8xH200", UINT64_C(2) * ALL_OF_IT + UINT64_C(12) * ALL_OF_IT / 8},
        {"strategy=zero2 gpu=8xH200", UINT64_C(2) * ALL_OF_IT + UINT64_C(12) * ALL_OF_IT / 8},
        {"strategy=zero3 gpu=8xH200", UINT64_C(16) * ALL_OF_IT / 8},
        {"strategy=zero3 gpu=8xH200 recipe=trl", UINT64_C(16) * ALL_OF_IT / 8},
        {"strategy=zero2 gpu=8xH200 recipe=transformers",
         UINT64_C(2) * ALL_OF_IT + UINT64_C(12) * ALL_OF_IT / 8},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct str s = str_format(a, TWO_LAYERS "%s", rows[i].settings);
        uint64_t left = predicted_in(a, s.p).steps[2].end_allocated_bytes;
        if (left < rows[i].bytes || left > rows[i].bytes + 80 * MIB)
            test_failed(__FILE__, __LINE__, "%s leaves %llu bytes", rows[i].settings,
                        (unsigned long long)left);
    }
}

// deepspeed/runtime/zero/leaf_module_config.py: router and experts of a block come together.
TEST(a_block_of_experts_is_gathered_as_a_whole)
{
    struct trace t = history_of(TWO_LAYERS "strategy=zero3 gpu=8xH200 checkpointing=off");
    CHECK(allocations_of(&t, UINT64_C(2) * (GATE_UP + DOWN + ROUTER)) >= 2);
    CHECK_U64((uint64_t)allocations_of(&t, UINT64_C(2) * (GATE_UP + DOWN)), 0);
}

// One layer after another, be they of one kind or not.
TEST(mixed_layers_fill_the_units_of_fsdp1)
{
    static const char shape[] =
        "config.model_type=qwen3_moe config.hidden_size=512 config.num_hidden_layers=4 "
        "config.num_attention_heads=8 config.num_key_value_heads=4 config.head_dim=64 "
        "config.intermediate_size=1024 config.moe_intermediate_size=256 config.num_experts=16 "
        "config.num_experts_per_tok=4 config.vocab_size=4096 context=2048 "
        "config.decoder_sparse_step=2 gpu=4xH200 ";
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct error e;
    CHECK(job_of(job, a, shape, &e));
    uint64_t all = 12 * job->parameters.total / 4;
    static const char *const strategies[] = {"fsdp1", "fsdp2"};
    for (int i = 0; i < COUNT_OF(strategies); i++) {
        struct str s = str_format(a, "%sstrategy=%s", shape, strategies[i]);
        uint64_t left = predicted_in(a, s.p).steps[2].end_allocated_bytes;
        CHECK(left >= all && left < all + 70 * MIB);
    }
}

TEST(trinity_trains_experts_since_it_has_transformers_five)
{
    static const char shape[] = TWO_LAYERS "gpu=8xH100-80G strategy=fsdp1 ";
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct error e;
    struct str newer = str_format(a, "%srecipe=trinity@0.6", shape);
    CHECK(predicted_in(a, newer.p).fits);
    struct str older = str_format(a, "%srecipe=trinity@0.4", shape);
    CHECK(!job_of(job, a, older.p, &e));
    CHECK(strstr(e.message, "as transformers 5 runs them") != NULL);
}

// s22 of tests/runs/real_trainers.jsonl. Not counted are six numbers that the trainer logs.
TEST(trl_adds_the_loss_of_the_routers)
{
    struct prediction p = predicted_in(
        test_arena(), "model=Qwen3-30B-A3B layers=4 gpu=H200 context=8192 recipe=trl@1.16");
    CHECK_U64(p.steps[0].requested_bytes, UINT64_C(49904337616) - 20);
    CHECK_U64(p.steps[1].requested_bytes, UINT64_C(50964136172) - 24);
}

#define SMALL                                                                              \
    "config.hidden_size=512 config.num_hidden_layers=4 config.num_attention_heads=8 "      \
    "config.num_key_value_heads=4 config.head_dim=64 config.intermediate_size=1024 "       \
    "config.moe_intermediate_size=256 config.num_experts=16 config.num_experts_per_tok=4 " \
    "config.vocab_size=4096 config.model_type=qwen3_moe gpu=H200 context=8192 precision=bf16 "

// The routers' logits of all layers wait for it, in two bytes, and so do chances; a recipe that
// does not ask for them has nothing of it, nor has a coefficient of zero.
TEST(logits_of_all_routers_wait_for_their_loss)
{
    enum { LOGITS = 8192 * 16 * 2 };
    struct trace with = history_of(SMALL "recipe=trl@1.16 task=dpo checkpointing=on");
    ptrdiff_t asked = allocations_of(&with, LOGITS);
    struct trace without = history_of(
        SMALL "recipe=trl@1.16 task=dpo checkpointing=on config.router_aux_loss_coef=0.0");
    ptrdiff_t plain = allocations_of(&without, LOGITS);
    CHECK(asked >= plain + 4 * 3);
    struct trace loop = history_of(SMALL "recipe=transformers checkpointing=on");
    struct trace none =
        history_of(SMALL "recipe=transformers checkpointing=on config.router_aux_loss_coef=0.0");
    CHECK_U64((uint64_t)loop.count, (uint64_t)none.count);
}
