// Trials of a store beside predictions: which mean the same.
#include "core/probe/measured.h"
#include "core/probe/options.h"
#include "tests/support/t.h"

// The cell that an H200 played: fathom probe --engine torch --one-gpu --as A100-80G ...
static struct cell_record played_cell(void)
{
    struct cell_record c = {.id = 3, .gpus = 2, .sp = 2, .max_position = 40960};
    c.key = STR("model=Qwen3-0.6B\nrecipe=trinity\naccum=2\nsp=2\nsave-hf=never\ntorch=2.11\n"
                "gpus=2\nengine=torch\nas=A100-80G\none-gpu=on\n");
    c.model = STR("Qwen3-0.6B");
    c.engine = STR("torch");
    c.card = STR("A100-80G");
    return c;
}

static struct attempt_record trial_of(uint64_t context, enum outcome outcome)
{
    struct attempt_record t = {.id = 5, .context = context, .try = 1, .outcome = outcome};
    t.finished = true;
    t.gpu = STR("NVIDIA H200");
    t.versions = STR("torch 2.11.0+cu130, transformers 5.17.0");
    return t;
}

static bool finds(struct cell_record *c, struct attempt_record *t, const char *words)
{
    struct arena *a = test_arena();
    struct settings s = settings_in(a);
    struct error e = {0};
    CHECK(settings_read(&s, str_from(words), ' ', STR("a test"), &e) && settings_check(&s, &e));
    c->attempts = t;
    c->attempt_count = 1;
    struct measured m = measured_find(*a, c, 1, &s);
    CHECK(!m.cell || (m.cell == c && m.attempt == t));
    return m.cell != NULL;
}

#define ASKED "model=Qwen3-0.6B gpu=2xA100-80G recipe=trinity accum=2 sp=2 save-hf=never "

TEST(the_same_however_it_is_written)
{
    struct cell_record c = played_cell();
    struct attempt_record t = trial_of(40960, OUTCOME_FITS);
    CHECK(finds(&c, &t, ASKED "context=40960 torch=2.11"));
    CHECK(finds(&c, &t, ASKED "context=40k")); // any torch, which the answer names
    CHECK(finds(&c, &t, ASKED "context=40k reshard=on expandable=off batch=2 strategy=fsdp1"));
    CHECK(finds(&c, &t,
                "model=Qwen/Qwen3-0.6B gpu=1x2xa100-80g recipe=trinity accum=2 sp=2 "
                "save-hf=never context=40k"));
}

TEST(another_configuration_is_not_the_same)
{
    struct cell_record c = played_cell();
    struct attempt_record t = trial_of(40960, OUTCOME_FITS);
    static const char *const others[] = {
        ASKED "context=32k",
        ASKED "context=40k torch=2.8",
        ASKED "context=40k reshard=off",
        ASKED "context=40k expandable=on",
        ASKED "context=40k memory-limit=70GiB",
        ASKED "context=40k layers=8",
        ASKED "context=40k tied=off",
        "model=Qwen3-0.6B gpu=4xA100-80G recipe=trinity accum=2 sp=2 save-hf=never context=40k",
        "model=Qwen3-0.6B gpu=2xH200 recipe=trinity accum=2 sp=2 save-hf=never context=40k",
        "model=Qwen3-0.6B gpu=2xA100-80G recipe=trinity accum=2 sp=1 save-hf=never context=40k",
        "model=Qwen3-0.6B gpu=2xA100-80G recipe=trinity accum=2 sp=2 context=40k",
        "model=Qwen3-0.6B gpu=2xA100-80G recipe=trinity sp=2 save-hf=never context=40k",
        "model=Qwen3-1.7B gpu=2xA100-80G recipe=trinity accum=2 sp=2 save-hf=never context=40k",
        "model=Qwen3-0.6B gpu=2xA100-80G accum=2 sp=2 context=40k",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(others); i++)
        if (finds(&c, &t, others[i]))
            test_failed(__FILE__, __LINE__, "found for %s", others[i]);
}

TEST(adapters_are_another_configuration)
{
    struct cell_record c = played_cell();
    struct attempt_record t = trial_of(4096, OUTCOME_FITS);
    c.gpus = 1;
    c.key = STR("model=Qwen3-0.6B\nsp=1\ngpus=1\nengine=torch\n");
    CHECK(finds(&c, &t, "model=Qwen3-0.6B gpu=A100-80G context=4k"));
    CHECK(!finds(&c, &t, "model=Qwen3-0.6B gpu=A100-80G context=4k lora=8"));
}

TEST(what_decided_nothing_is_not_mentioned)
{
    struct cell_record c = played_cell();
    struct attempt_record t = trial_of(40960, OUTCOME_TIMEOUT);
    CHECK(!finds(&c, &t, ASKED "context=40k"));
    t.outcome = OUTCOME_GPU_MEMORY;
    CHECK(finds(&c, &t, ASKED "context=40k"));
    t.finished = false;
    CHECK(!finds(&c, &t, ASKED "context=40k"));
}

TEST(a_trial_on_the_cpu_measured_nothing)
{
    struct cell_record c = played_cell();
    struct attempt_record t = trial_of(40960, OUTCOME_FITS);
    struct arena *a = test_arena();
    c.key = str_join(a, c.key, STR("device=cpu\n"));
    c.attempts = &t;
    c.attempt_count = 1;
    struct settings s = settings_in(a);
    struct error e = {0};
    CHECK(!measured_settings(&s, &c, &t, &e));
    CHECK_STR(str_from(e.message), "it ran on the cpu");
}

// The hash in a key of a configuration that was read from a file.
static struct str hash_of(struct arena *a, const char *config)
{
    struct settings s = settings_in(a);
    struct error e = {0};
    CHECK(settings_read(&s, str_from(config), ' ', STR("a test"), &e));
    struct cell_record c = {.key = probe_cell_key(a, &s, STR_NONE)};
    return measured_setting(&c, "config");
}

#define CONFIG                                                                      \
    "config.model_type=qwen3 config.hidden_size=256 config.num_hidden_layers=2 "    \
    "config.num_attention_heads=4 config.num_key_value_heads=2 config.head_dim=64 " \
    "config.intermediate_size=512 config.max_position_embeddings=4096 config.vocab_size="

TEST(a_configuration_file_goes_by_its_content)
{
    static char bytes[1 << 16];
    struct arena a = arena_over(bytes, sizeof bytes, NULL);
    struct cell_record c = played_cell();
    struct attempt_record t = trial_of(4096, OUTCOME_FITS);
    struct str hash = hash_of(&a, CONFIG "1000");
    CHECK_U64((uint64_t)hash.n, 16);
    c.key = str_format(&a, "model=here/config.json\nsp=1\ngpus=2\nengine=torch\nconfig=%.*s\n",
                       STR_ARGS(hash));
    CHECK(finds(&c, &t, CONFIG "1000 model=elsewhere/config.json gpu=2xA100-80G context=4k"));
    CHECK(!finds(&c, &t, CONFIG "2000 model=here/config.json gpu=2xA100-80G context=4k"));
    CHECK(!finds(&c, &t, "model=Qwen3-0.6B gpu=2xA100-80G context=4k"));
}

static struct str text_of(const struct settings *s, const char *key)
{
    const struct setting *item = settings_find_z(s, key);
    return item ? item->value : STR_NONE;
}

TEST(the_settings_of_a_trial)
{
    struct cell_record c = played_cell();
    struct attempt_record t = trial_of(40960, OUTCOME_FITS);
    struct arena *a = test_arena();
    struct settings s = settings_in(a), limited = settings_in(a);
    struct error e = {0};
    c.key = STR("model=Qwen3-0.6B\nsp=2\ngpus=2\nengine=trinity\n");
    c.engine = STR("trinity");
    t.limit_bytes = UINT64_C(83360609280);
    CHECK(measured_settings(&s, &c, &t, &e) && settings_check(&s, &e));
    CHECK_STR(text_of(&s, "recipe"), "trinity"); // the only one of its engine
    CHECK_STR(text_of(&s, "torch"), "2.11");     // as the trainer said
    CHECK_STR(text_of(&s, "gpu"), "2xA100-80G");
    CHECK_STR(text_of(&s, "context"), "40960");
    CHECK_STR(text_of(&s, "memory-limit"), "");
    c.engine = STR("torch"); // whose worker keeps to its limit
    CHECK(measured_trial_settings(&limited, &c, &t, &e) && settings_check(&limited, &e));
    CHECK_STR(text_of(&limited, "memory-limit"), "83360609280B");
}
