// Models by the names that people write, what is said of those that are not modelled, and unknown
// families by their likeness to known ones.
#include <string.h>

#include "tests/support/models.h"

struct written_name {
    const char *name;
    bool likened, packed, nf4;
};

static bool is_read_as(const struct written_name *row)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    bool own = !row->likened && !row->packed;
    return load(&m, &p, row->name, &e) && (m.likened != NULL) == row->likened &&
           (m.packing != NULL) == row->packed && (m.packing && m.packing->nf4) == row->nf4 &&
           str_is(m.name, row->name) != own;
}

TEST(names_as_people_write_them)
{
    static const struct written_name rows[] = {
        {"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"},
        {"alignment-handbook/zephyr-7b-sft-full"},
        {"Llama-3-8B"},
        {"willcb/Qwen3-8B", true},
        {"unsloth/gemma-3-27b-it-unsloth-bnb-4bit", true, true, true},
        {"Qwen/Qwen2.5-7B-Instruct-AWQ", false, true},
        {"TechxGenus/Meta-Llama-3-70B-Instruct-GPTQ", true, true},
        {"Llama 2 7B"},
        {"llama2-7b"},
        {"Qwen 2.5 32B Instruct"},
        {"Qwen-3-8B"},
        {"Qwen2.5VL-7B"},
        {"gemma3-12b"},
        {"phi4"},
        {"GPT-2 XL"},
        {"BLOOM-176B"},
        {"Llama 4 Maverick"},
        {"THUDM/chatglm3-6b"},
        {"chinese-llama-2-13b-hf"},
        {"Qwen/Qwen3.5-27B"},
        {"Qwen3.5-35B-A3B (VLM)"},
        {"NousResearch/Hermes-3-Llama-3.1-8B", true},
        {"cognitivecomputations/dolphin-2.9-llama3-8b", true},
        {"TheBloke/Llama-2-7B-fp16", true},
        {"CohereForAI/c4ai-command-r-v01-4bit", true, true, true},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (!is_read_as(&rows[i]))
            test_failed(__FILE__, __LINE__, "%s", rows[i].name);
    CHECK(!is_read_as(&(struct written_name){"Qwen/Llama-9-8B"}));
    CHECK(!is_read_as(&(struct written_name){"-AWQ"}));
    CHECK(!is_read_as(&(struct written_name){"llava-onevision-qwen2-7b", true})); // more than Qwen2
    CHECK(!is_read_as(&(struct written_name){"Llama-2-70bit", true}));
    CHECK(!is_read_as(&(struct written_name){"Llama-27b"})); // not Llama-2-7b
}

TEST(names_of_what_is_not_modelled)
{
    static const char *const names[] = {
        "google/gemma-4-26b-a4b-it",
        "gemma 4 12B it",
        "Qwen2-VL-7B-Instruct-AWQ",
        "Llama 3.2 11B Vision",
        "t5-base",
        "falcon-rw-7b",
        "mamba-2.8b-hf",
        "internvl3-8b-hf",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(names); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        if (load(&m, &p, names[i], &e) || !strstr(e.message, "million parameters") ||
            !strstr(e.hint, "--fake"))
            test_failed(__FILE__, __LINE__, "%s: %s", names[i], e.message);
    }
    CHECK(!known_model_find(STR("t5")) && !known_model_find(STR("")));
}

#define UNKNOWN                                                                                  \
    "config.model_type=acme\nconfig.hidden_size=1024\nconfig.num_hidden_layers=28\n"             \
    "config.num_attention_heads=16\nconfig.num_key_value_heads=8\nconfig.head_dim=128\n"         \
    "config.intermediate_size=3072\nconfig.vocab_size=151936\nconfig.tie_word_embeddings=true\n" \
    "config.max_position_embeddings=40960\n"

// What is said of settings that are refused; empty where they are not.
static const char *refusal_of(const char *settings, bool hint)
{
    static struct error e;
    struct model m = {0};
    struct parameters p = {0};
    if (load_settings(&m, &p, settings, &e))
        return "";
    return hint ? e.hint : e.message;
}

#define LATENT                                                                                 \
    "config.kv_lora_rank=512\nconfig.q_lora_rank=1536\nconfig.qk_nope_head_dim=128\n"          \
    "config.qk_rope_head_dim=64\nconfig.v_head_dim=128\nconfig.n_routed_experts=64\n"          \
    "config.num_experts_per_tok=6\nconfig.moe_intermediate_size=1024\nconfig.num_experts=64\n" \
    "config.n_shared_experts=2\n"

TEST(a_likeness_of_an_unknown_family)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    CHECK(load_settings(&m, &p, UNKNOWN "like=qwen3\nweights.parameters=596000000", &e));
    CHECK(m.like && str_is(str_from(m.like->model_type), "qwen3"));
    CHECK_U64(p.total, UINT64_C(596049920)); // Qwen3-0.6B's
}

TEST(no_likeness_where_there_is_none)
{
    CHECK(strstr(refusal_of(UNKNOWN "like=qwen3\nweights.parameters=500000000", false),
                 "its files have 500000000"));
    CHECK(strstr(refusal_of(UNKNOWN "like=nobody", false), "'nobody' is not known"));
    CHECK(strstr(refusal_of(UNKNOWN "like=qwen3_moe", false), "has experts, and"));
    CHECK(strstr(refusal_of("model=Qwen3-8B\nlike=llama", false), "needs no likeness"));
    CHECK(strstr(refusal_of(UNKNOWN LATENT "like=qwen3_moe", false), "names a kv_lora_rank"));
}

#define GRANITE_4                                                  \
    "config.model_type=granitemoehybrid\nconfig.hidden_size=256\n" \
    "config.num_hidden_layers=2\nconfig.num_attention_heads=4\nconfig.vocab_size=100\n"

TEST(layers_that_are_not_modelled_are_refused)
{
    CHECK(strstr(refusal_of(GRANITE_4 "config.num_local_experts=0\nconfig.layer_types.0=mamba\n"
                                      "config.layer_types.1=attention",
                            false),
                 "layers of Granite 4 that are no attention"));
    CHECK(strstr(refusal_of(GRANITE_4 "config.num_local_experts=62", false),
                 "num_local_experts of Granite 4 is not modelled"));
    CHECK(strstr(refusal_of("config.model_type=mpt\nconfig.d_model=256\nconfig.n_layers=2\n"
                            "config.n_heads=4\nconfig.attn_config.clip_qkv=6",
                            false),
                 "attn_config.clip_qkv of MPT is not modelled"));
}

TEST(an_unknown_family_is_told_its_nearest)
{
    static const char *const rows[][2] = {
        {UNKNOWN "weights.parameters=596049920", "--like qwen3 "},
        {UNKNOWN, "--like llama "},
        {UNKNOWN "config.num_experts=16\nconfig.num_experts_per_tok=4\n"
                 "config.moe_intermediate_size=512",
         "--like qwen3_moe "},
        {UNKNOWN LATENT, "--like deepseek_v3 "},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        CHECK(strstr(refusal_of(rows[i][0], true), rows[i][1]));
}

TEST(names_are_forgiving)
{
    static const char *const same[] = {"Qwen3-8B", "qwen3-8b", "Qwen/Qwen3-8B", "qwen/QWEN3-8b"};
    for (ptrdiff_t i = 0; i < COUNT_OF(same); i++)
        CHECK(catalog_model_find(str_from(same[i])) == catalog_model_find(STR("Qwen3-8B")));
    CHECK(catalog_model_find(STR("Qwen3-8B")) != NULL);
    CHECK(catalog_model_find(STR("someone/Qwen3-8B")) == NULL);
    CHECK(catalog_model_find(STR("./Qwen3-8B")) == NULL);
    CHECK(catalog_model_find(STR("meta-llama/Llama-3.1-8B-Instruct")) != NULL);
}

TEST(a_near_miss_suggests_the_right_name)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    CHECK(!load(&m, &p, "Qwen3-8BB", &e));
    CHECK_STR(str_from(e.message), "there is no model 'Qwen3-8BB'");
    CHECK_STR(str_from(e.hint), "did you mean 'Qwen3-8B'?");
}

// The names that go on from it are nearer than one of another size.
TEST(a_beginning_suggests_the_names_that_go_on)
{
    static const char *const rows[][2] = {
        {"Qwen3-VL-235B", "did you mean 'Qwen3-VL-235B-A22B'?"},
        {"gpt-oss", "names that begin so are gpt-oss-20b and gpt-oss-120b"},
        {"Qwen3-8B,Qwen3-4B",
         "one model is wanted here; 'fathom max' and 'fathom guide' compare several"},
        {"qwen2.5-vl", "names that begin so are Qwen2.5-VL-3B, Qwen2.5-VL-7B, Qwen2.5-VL-32B; "
                       "'fathom models' lists them all"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        CHECK(!load(&m, &p, rows[i][0], &e));
        CHECK_STR(str_from(e.hint), rows[i][1]);
    }
}
