// Mixtures of experts under every strategy, and what sets them apart in a step. How close they are
// to real runs is tests/measured/accuracy.py's business.
#include <string.h>

#include "core/base/units.h"
#include "core/predict/predict.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static struct trace history_of(const char *settings)
{
    return history_in(test_arena(), settings);
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
    CHECK(asked >= plain + (ptrdiff_t)4 * 3);
    struct trace loop = history_of(SMALL "recipe=transformers checkpointing=on");
    struct trace none =
        history_of(SMALL "recipe=transformers checkpointing=on config.router_aux_loss_coef=0.0");
    CHECK_U64((uint64_t)loop.count, (uint64_t)none.count);
}

#define LAYERS                                                                        \
    "config.hidden_size=256 config.num_hidden_layers=2 config.num_attention_heads=8 " \
    "config.vocab_size=1024 gpu=H200 context=1280 "
#define LATENT                                                                                  \
    "config.kv_lora_rank=64 config.qk_nope_head_dim=32 config.qk_rope_head_dim=16 "             \
    "config.v_head_dim=32 config.num_key_value_heads=8 config.intermediate_size=512 "           \
    "config.moe_intermediate_size=128 config.n_routed_experts=16 config.num_experts_per_tok=4 " \
    "config.first_k_dense_replace=1 "
#define FOUR_OF_SIXTEEN(name) \
    "config.num_key_value_heads=4 config." name "=16 config.num_experts_per_tok=4 "

// What transformers 5.17 creates on the meta device for these configurations, and its balancing
// biases. scripts/compare_operators.py laid each one's step beside torch's.
static const struct {
    const char *settings;
    uint64_t parameters;
} families_of_experts[] = {
    {"config.model_type=glm4_moe config.head_dim=32 config.intermediate_size=512 "
     "config.moe_intermediate_size=128 config.use_qk_norm=true "
     "config.attention_bias=true " FOUR_OF_SIXTEEN("n_routed_experts"),
     2988416 + 16},
    {"config.model_type=minimax_m2 config.head_dim=32 "
     "config.intermediate_size=128 " FOUR_OF_SIXTEEN("num_local_experts"),
     4073472 + 32},
    {"config.model_type=qwen2_moe config.intermediate_size=512 config.moe_intermediate_size=128 "
     "config.shared_expert_intermediate_size=256 " FOUR_OF_SIXTEEN("num_experts"),
     4467456},
    {"config.model_type=olmoe config.intermediate_size=128 " FOUR_OF_SIXTEEN("num_experts"),
     4073472},
    {"config.model_type=granitemoe config.intermediate_size=128 " FOUR_OF_SIXTEEN(
         "num_local_experts"),
     4072704},
    {"config.model_type=granitemoeshared config.intermediate_size=128 "
     "config.shared_intermediate_size=192 " FOUR_OF_SIXTEEN("num_local_experts"),
     4367616},
    {"config.model_type=deepseek_v2 config.q_lora_rank=null config.n_shared_experts=2 " LATENT,
     3126656},
    {"config.model_type=deepseek_v2 config.q_lora_rank=96 config.n_shared_experts=2 "
     "config.n_group=4 config.topk_group=2 config.topk_method=group_limited_greedy " LATENT,
     3053120},
    {"config.model_type=kimi_k2 config.q_lora_rank=96 config.n_shared_experts=1 " LATENT,
     2954816 + 16},
    {"config.model_type=llama4_text config.num_hidden_layers=4 config.head_dim=32 "
     "config.intermediate_size=128 config.intermediate_size_mlp=512 "
     "config.num_local_experts=8 config.num_experts_per_tok=1 config.num_key_value_heads=4 "
     "config.interleave_moe_layer_step=2",
     3873024},
};

TEST(families_of_experts_are_counted_and_trained)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(families_of_experts); i++) {
        struct arena *a = test_arena();
        struct job *job = NEW(a, struct job, 1);
        struct error e;
        struct str s = str_format(a, LAYERS "%s", families_of_experts[i].settings);
        if (!job_of(job, a, s.p, &e))
            test_failed(__FILE__, __LINE__, "%s: %s", s.p, e.message);
        CHECK_U64(job->parameters.total, families_of_experts[i].parameters);
        struct prediction p = predicted_in(a, s.p);
        CHECK(p.fits);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
    }
}

// Which module a parameter is in matters to stage 3 only.
TEST(early_stages_of_deepspeed_train_every_family_of_experts)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(families_of_experts); i++) {
        struct arena *a = test_arena();
        struct str s =
            str_format(a, LAYERS "%s gpu=2xH200 strategy=zero2", families_of_experts[i].settings);
        uint64_t part = 14 * families_of_experts[i].parameters;
        uint64_t left = predicted_in(a, s.p).steps[2].end_allocated_bytes;
        CHECK(left > part * 4 / 7 && left < part * 4 / 7 + 70 * MIB);
    }
}

// transformers 5.17, configuration_qwen2_moe.py: without a window its size is zero, not none.
TEST(qwen2_with_experts_makes_a_mask_that_it_does_not_use)
{
    struct arena *a = test_arena();
    struct trace t = history_in(a, str_format(a, LAYERS "%s", families_of_experts[2].settings).p);
    CHECK(allocations_of(&t, UINT64_C(1280) * 1280) >= PREDICT_STEPS);
}

// A router of groups copies which experts are allowed; one without has a view.
TEST(groups_of_experts_cost_a_copy)
{
    enum { SCORES = 1280 * 16 * 4 };
    struct arena *a = test_arena();
    const char *kimi = families_of_experts[8].settings;
    struct trace one = history_in(a, str_format(a, LAYERS "%s", kimi).p);
    ptrdiff_t without = allocations_of(&one, SCORES);
    struct trace four = history_in(a, str_format(a, LAYERS "%sconfig.n_group=4", kimi).p);
    CHECK(allocations_of(&four, SCORES) >= without + PREDICT_STEPS);
}

// modeling_llama4.py repeats all tokens for each expert, weighs them, and keeps both.
TEST(llama4_runs_every_expert_over_every_token)
{
    enum { ALL_TOKENS = 8 * 1280 * 256 * 2 };
    struct arena *a = test_arena();
    struct str s = str_format(a, LAYERS "%s checkpointing=off", families_of_experts[9].settings);
    struct trace t = history_in(a, s.p);
    CHECK(allocations_of(&t, ALL_TOKENS) >= (ptrdiff_t)2 * 2 * PREDICT_STEPS);
}

// Gated delta nets; the counts are transformers', and so are the peaks of a forward and backward
// pass on a CPU, to the byte (scripts/compare_operators.py notes every storage).
#define HYBRID                                                                        \
    "config.hidden_size=256 config.num_hidden_layers=4 config.num_attention_heads=4 " \
    "config.num_key_value_heads=2 config.head_dim=64 config.vocab_size=1024 "         \
    "config.intermediate_size=512 config.linear_num_key_heads=2 "                     \
    "config.linear_num_value_heads=4 config.linear_key_head_dim=32 "                  \
    "config.linear_value_head_dim=48 gpu=H200 context=1280 "
#define HYBRID_EXPERTS                                                                     \
    "config.num_experts=16 config.num_experts_per_tok=4 config.moe_intermediate_size=128 " \
    "config.shared_expert_intermediate_size=192 "

static const struct {
    const char *settings;
    uint64_t parameters;
} hybrids[] = {
    {"config.model_type=qwen3_5_text ", 2912552},
    {"config.model_type=qwen3_next " HYBRID_EXPERTS, 8238376},
    {"config.model_type=qwen3_5_moe_text " HYBRID_EXPERTS, 8238376},
};

TEST(hybrids_are_counted_and_trained)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(hybrids); i++) {
        struct arena *a = test_arena();
        struct job *job = NEW(a, struct job, 1);
        struct error e;
        struct str s = str_format(a, HYBRID "%s", hybrids[i].settings);
        if (!job_of(job, a, s.p, &e))
            test_failed(__FILE__, __LINE__, "%s: %s", s.p, e.message);
        CHECK_U64(job->parameters.total, hybrids[i].parameters);
        struct prediction p = predicted_in(a, s.p);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
        CHECK_U64(p.steps[1].end_allocated_bytes, p.steps[0].end_allocated_bytes);
    }
}

// Three layers of four scan 20 chunks of 64 tokens, whose states are kept, and the fourth attends.
TEST(a_delta_net_keeps_the_state_of_every_chunk)
{
    enum { STATE = 4 * 32 * 48 * 4, SCORES = 1280 * 4 * 64 * 4 };
    struct arena *a = test_arena();
    struct str s = str_format(a, HYBRID "%scheckpointing=off", hybrids[0].settings);
    struct trace t = history_in(a, s.p);
    CHECK(allocations_of(&t, STATE) >= (ptrdiff_t)3 * 3 * 20 * PREDICT_STEPS);
    CHECK(allocations_of(&t, SCORES) >= (ptrdiff_t)3 * 7 * PREDICT_STEPS);
}

TEST(hybrids_are_refused_where_they_are_not_modelled)
{
    static const char *const rows[][2] = {
        {"gpu=8xH200 cp=2 strategy=fsdp2", "is not modelled under context parallel"},
        {"gpu=8xH200 sp=2 strategy=fsdp2", "is not modelled under sequence parallel"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct job *job = NEW(a, struct job, 1);
        struct error e;
        struct str s = str_format(a, HYBRID "%s%s", hybrids[0].settings, rows[i][0]);
        CHECK(!job_of(job, a, s.p, &e));
        if (!strstr(e.message, rows[i][1]))
            test_failed(__FILE__, __LINE__, "%s gives '%s'", rows[i][0], e.message);
    }
}
