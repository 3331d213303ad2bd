// Models: the catalogue's totals against two sources that are not ours, families from
// configurations, and everything that must be refused.
#include <string.h>

#include "core/model/model.h"
#include "tests/support/t.h"

// Totals as safetensors files and model cards state them, or as computed by others from the stated
// shapes; DeepSeek-V3's leaves out the multi-token-prediction layer.
static const struct {
    const char *name;
    uint64_t total;
} published[] = {
    {"Qwen3-0.6B", UINT64_C(596049920)},
    {"Qwen3-1.7B", UINT64_C(1720574976)},
    {"Qwen3-4B", UINT64_C(4022468096)},
    {"Qwen3-8B", UINT64_C(8190735360)},
    {"Qwen3-14B", UINT64_C(14768307200)},
    {"Qwen3-32B", UINT64_C(32762123264)},
    {"Qwen3-30B-A3B", UINT64_C(30532122624)},
    {"Qwen3-235B-A22B", UINT64_C(235093634560)},
    {"Qwen3-VL-2B", UINT64_C(2127532032)},
    {"Qwen3-VL-4B", UINT64_C(4437815808)},
    {"Qwen3-VL-8B", UINT64_C(8767123696)},
    {"Qwen3-VL-30B-A3B", UINT64_C(31070754032)},
    {"Qwen3-VL-235B-A22B", UINT64_C(235670022896)},
    {"Qwen2.5-0.5B", UINT64_C(494032768)},
    {"Qwen2.5-1.5B", UINT64_C(1543714304)},
    {"Qwen2.5-3B", UINT64_C(3085938688)},
    {"Qwen2.5-7B", UINT64_C(7615616512)},
    {"Qwen2.5-14B", UINT64_C(14770033664)},
    {"Qwen2.5-32B", UINT64_C(32763876352)},
    {"Qwen2.5-72B", UINT64_C(72706203648)},
    {"Llama-3.2-1B", UINT64_C(1235814400)},
    {"Llama-3.2-3B", UINT64_C(3212749824)},
    {"Llama-3.1-8B", UINT64_C(8030261248)},
    {"Llama-3.3-70B", UINT64_C(70553706496)},
    {"Llama-3.1-405B", UINT64_C(405853388800)},
    {"Llama-2-7b", UINT64_C(6738415616)},
    {"TinyLlama-1.1B", UINT64_C(1100048384)},
    {"SmolLM2-135M", UINT64_C(134515008)},
    {"SmolLM2-360M", UINT64_C(361821120)},
    {"SmolLM2-1.7B", UINT64_C(1711376384)},
    {"SmolLM3-3B", UINT64_C(3075098624)},
    {"Mistral-7B-v0.1", UINT64_C(7241732096)},
    {"Mistral-7B-v0.3", UINT64_C(7248023552)},
    {"Mistral-Nemo-Base-2407", UINT64_C(12247782400)},
    {"Phi-3-mini-4k-instruct", UINT64_C(3821079552)},
    {"phi-4", UINT64_C(14659507200)},
    {"Phi-4-mini-instruct", UINT64_C(3836021760)},
    {"OLMo-2-0425-1B", UINT64_C(1484916736)},
    {"OLMo-2-1124-7B", UINT64_C(7298617344)},
    {"OLMo-2-1124-13B", UINT64_C(13716198400)},
    {"gemma-2b", UINT64_C(2506172416)},
    {"gemma-7b", UINT64_C(8537680896)},
    {"gemma-2-2b", UINT64_C(2614341888)},
    {"gemma-2-9b", UINT64_C(9241705984)},
    {"gemma-2-27b", UINT64_C(27227128320)},
    {"gemma-3-1b", UINT64_C(999885952)},
    {"gemma-3-4b", UINT64_C(4300079472)},
    {"gemma-3-12b", UINT64_C(12187325040)},
    {"gemma-3-27b", UINT64_C(27432406640)},
    {"granite-3.3-8b-instruct", UINT64_C(8170864640)},
    {"gpt-oss-20b", UINT64_C(20914757184)},
    {"gpt-oss-120b", UINT64_C(116829156672)},
    {"Mistral-Small-24B", UINT64_C(23572403200)},
    {"GLM-4-32B-0414", UINT64_C(32566487552)},
    {"c4ai-command-r-v01", UINT64_C(34980831232)},
    {"c4ai-command-r-plus", UINT64_C(103810674688)},
    {"phi-1_5", UINT64_C(1418270720)},
    {"phi-2", UINT64_C(2779683840)},
    {"pythia-70m", UINT64_C(70426624)},
    {"pythia-160m", UINT64_C(162322944)},
    {"pythia-410m", UINT64_C(405334016)},
    {"pythia-1b", UINT64_C(1011781632)},
    {"pythia-1.4b", UINT64_C(1414647808)},
    {"pythia-2.8b", UINT64_C(2775208960)},
    {"pythia-6.9b", UINT64_C(6857302016)},
    {"pythia-12b", UINT64_C(11846072320)},
    {"gpt-neox-20b", UINT64_C(20554567680)},
    {"gpt-j-6b", UINT64_C(6050882784)},
    {"gpt2", UINT64_C(124439808)},
    {"gpt2-medium", UINT64_C(354823168)},
    {"gpt2-large", UINT64_C(774030080)},
    {"gpt2-xl", UINT64_C(1557611200)},
    {"opt-125m", UINT64_C(125239296)},
    {"opt-1.3b", UINT64_C(1315758080)},
    {"opt-6.7b", UINT64_C(6658473984)},
    {"bloom-560m", UINT64_C(559214592)},
    {"bloom-7b1", UINT64_C(7069016064)},
    {"bloom", UINT64_C(176247271424)},
    {"falcon-7b", UINT64_C(6921720704)},
    {"mpt-7b", UINT64_C(6649286656)},
    {"DeepSeek-V3", UINT64_C(671026419200)},
    {"llama-7b", UINT64_C(6738415616)},
    {"llama-30b", UINT64_C(32528943616)},
    {"llama-65b", UINT64_C(65285660672)},
    {"Llama-2-70b", UINT64_C(68976648192)},
    {"CodeLlama-7b", UINT64_C(6738546688)},
    {"CodeLlama-34b", UINT64_C(33743970304)},
    {"Meta-Llama-3-8B", UINT64_C(8030261248)},
    {"SOLAR-10.7B-v1.0", UINT64_C(10731524096)},
    {"DeepSeek-R1-Distill-Qwen-1.5B", UINT64_C(1777088000)},
    {"deepseek-coder-1.3b-base", UINT64_C(1346471936)},
    {"deepseek-coder-6.7b-base", UINT64_C(6740512768)},
    {"deepseek-coder-33b-base", UINT64_C(33342991360)},
    {"deepseek-llm-7b-base", UINT64_C(6910365696)},
    {"Yi-6B", UINT64_C(6061035520)},
    {"Yi-9B", UINT64_C(8829407232)},
    {"Yi-34B", UINT64_C(34388917248)},
    {"Qwen1.5-0.5B", UINT64_C(463987712)},
    {"Qwen1.5-1.8B", UINT64_C(1836828672)},
    {"Qwen1.5-4B", UINT64_C(3950369280)},
    {"Qwen1.5-7B", UINT64_C(7721324544)},
    {"Qwen1.5-14B", UINT64_C(14167290880)},
    {"Qwen1.5-32B", UINT64_C(32512218112)},
    {"Qwen1.5-72B", UINT64_C(72287920128)},
    {"Qwen3-Coder-480B-A35B-Instruct", UINT64_C(480154875392)},
    {"Mistral-Small-24B-Base-2501", UINT64_C(23572403200)},
    {"Ministral-8B-Instruct-2410", UINT64_C(8019808256)},
    {"Mistral-Large-Instruct-2407", UINT64_C(122610069504)},
    {"Mixtral-8x22B-v0.1", UINT64_C(140620634112)},
    {"Qwen-7B", UINT64_C(7721324544)},
    {"Qwen-14B", UINT64_C(14167290880)},
    {"chatglm3-6b", UINT64_C(6243584000)},
    {"glm-4-9b-chat", UINT64_C(9399951360)},
    {"Baichuan2-7B-Chat", UINT64_C(7505973248)},
    {"Baichuan2-13B-Chat", UINT64_C(13896668160)},
    {"internlm2-7b", UINT64_C(7737708544)},
    {"internlm2-20b", UINT64_C(19861149696)},
    {"internlm3-8b-instruct", UINT64_C(8804241408)},
    {"DeepSeek-V2", UINT64_C(235741434880)},
    {"starcoder2-15b", UINT64_C(15957889024)},
    {"OLMoE-1B-7B-0924", UINT64_C(6919161856)},
    {"gemma-3-270m", UINT64_C(268098176)},
};

// What transformers builds for every row (scripts/count_parameters.py, run with transformers 5.17).
static const struct {
    const char *name;
    uint64_t total;
} built[] = {
#include "parameters.inc"
};

// And for configurations at the defaults of its classes (scripts/count_families.py, likewise).
static const struct {
    const char *name, *settings;
    uint64_t total;
} by_class[] = {
#include "families.inc"
};

static bool build(struct model *m, struct parameters *p, const struct settings *s, struct error *e)
{
    *m = (struct model){0};
    *p = (struct parameters){0};
    return model_from_settings(m, s->arena, s, e) && parameters_of(p, s->arena, m, e);
}

static bool load_settings(struct model *m, struct parameters *p, const char *text, struct error *e)
{
    struct settings s = settings_in(test_arena());
    *e = (struct error){0};
    return settings_read(&s, str_from(text), '\n', STR("test"), e) && build(m, p, &s, e);
}

static bool load(struct model *m, struct parameters *p, const char *name, struct error *e)
{
    struct settings s = settings_in(test_arena());
    *e = (struct error){0};
    struct setting item = {STR("model"), str_from(name), STR("test")};
    return settings_add(&s, item, e) && build(m, p, &s, e);
}

TEST(published_totals)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(published); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        if (!load(&m, &p, published[i].name, &e) || p.total != published[i].total)
            test_failed(__FILE__, __LINE__, "%s has %llu, not %llu (%s)", published[i].name,
                        (unsigned long long)p.total, (unsigned long long)published[i].total,
                        e.message);
    }
}

static ptrdiff_t catalogue_rows(void)
{
    ptrdiff_t rows = 0;
    while (catalog_model_at(rows))
        rows++;
    return rows;
}

// Without those whose code comes with their weights.
static ptrdiff_t rows_of_transformers(void)
{
    ptrdiff_t rows = 0;
    for (ptrdiff_t i = 0; i < catalogue_rows(); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        rows += load(&m, &p, catalog_model_at(i)->name, &e) && !m.family->counted_only;
    }
    return rows;
}

TEST(totals_that_transformers_builds)
{
    CHECK_U64((uint64_t)COUNT_OF(built), (uint64_t)rows_of_transformers());
    for (ptrdiff_t i = 0; i < COUNT_OF(built); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        if (!load(&m, &p, built[i].name, &e) || p.total != built[i].total)
            test_failed(__FILE__, __LINE__, "%s has %llu, not %llu", built[i].name,
                        (unsigned long long)p.total, (unsigned long long)built[i].total);
    }
}

TEST(totals_of_configuration_classes)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(by_class); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        if (!load_settings(&m, &p, by_class[i].settings, &e) || p.total != by_class[i].total)
            test_failed(__FILE__, __LINE__, "%s has %llu, not %llu %s", by_class[i].name,
                        (unsigned long long)p.total, (unsigned long long)by_class[i].total,
                        e.message);
    }
}

// Training fills one member of struct layer_parameters from each row: none is left out, none twice.
static ptrdiff_t rows_without_a_role_of_their_own(const struct parameters *p,
                                                  const struct layer_kind *layer)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < p->tensor_count; i++) {
        const struct tensor *row = &p->tensors[i];
        bool trained = tensor_is_in(row, layer) && !row->buffer;
        count += trained && !row->role;
        for (ptrdiff_t j = 0; trained && j < i; j++)
            count += tensor_is_in(&p->tensors[j], layer) && p->tensors[j].role == row->role;
    }
    return count;
}

TEST(every_tensor_of_a_layer_has_its_role)
{
    for (ptrdiff_t i = 0; i < catalogue_rows(); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        CHECK(load(&m, &p, catalog_model_at(i)->name, &e));
        for (uint64_t j = 0; j < m.layers; j++)
            if (rows_without_a_role_of_their_own(&p, &m.layer[j]))
                test_failed(__FILE__, __LINE__, "%s, layer %llu", catalog_model_at(i)->name,
                            (unsigned long long)j);
    }
}

TEST(every_tensor_of_a_class_has_its_role)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(by_class); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        CHECK(load_settings(&m, &p, by_class[i].settings, &e));
        for (uint64_t j = 0; j < m.layers; j++)
            if (rows_without_a_role_of_their_own(&p, &m.layer[j]))
                test_failed(__FILE__, __LINE__, "%s, layer %llu", by_class[i].name,
                            (unsigned long long)j);
    }
}

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
                 "Granite 4 with num_local_experts is not modelled"));
    CHECK(strstr(refusal_of("config.model_type=mpt\nconfig.d_model=256\nconfig.n_layers=2\n"
                            "config.n_heads=4\nconfig.attn_config.clip_qkv=6",
                            false),
                 "attn_config.clip_qkv is not modelled"));
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

TEST(every_row_of_the_catalogue_loads)
{
    for (ptrdiff_t i = 0; i < catalogue_rows(); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        if (!load(&m, &p, catalog_model_at(i)->name, &e))
            test_failed(__FILE__, __LINE__, "%s: %s", catalog_model_at(i)->name, e.message);
        uint64_t sum = 0;
        for (int part = 0; part < PART_COUNT; part++)
            sum += p.by_part[part];
        CHECK_U64(sum, p.total);
        CHECK(p.active <= p.total);
    }
}

TEST(parts_and_active_parameters)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    CHECK(load(&m, &p, "Qwen3-30B-A3B", &e));
    CHECK_U64(p.total, UINT64_C(30532122624));
    CHECK_U64(p.by_part[PART_EXPERTS], UINT64_C(28991029248));
    CHECK_U64(p.active, UINT64_C(3353032704));
    CHECK(load(&m, &p, "Qwen3-235B-A22B", &e));
    CHECK_U64(p.by_part[PART_EXPERTS], UINT64_C(227096395776));
    CHECK_U64(p.active, UINT64_C(22190763520));
    CHECK(load(&m, &p, "Qwen3-VL-4B", &e));
    CHECK_U64(p.by_part[PART_VISION], UINT64_C(415347712));
    CHECK(load(&m, &p, "DeepSeek-V3", &e));
    CHECK_U64(p.by_part[PART_EXPERTS], UINT64_C(653908770816));
    CHECK_U64(p.active, UINT64_C(37552297472));
    CHECK_U64(model_expert_layers(&m), 58);
}

static uint64_t total_of(const char *settings)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    if (!load_settings(&m, &p, settings, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return p.total;
}

// Families that transformers 5.17 lacks, as their published files have them.
TEST(totals_of_code_that_comes_with_the_weights)
{
    CHECK_U64(total_of("config.model_type=internlm2\nconfig.hidden_size=4096\n"
                       "config.num_hidden_layers=32\nconfig.num_attention_heads=32\n"
                       "config.num_key_value_heads=8\nconfig.intermediate_size=14336\n"
                       "config.vocab_size=92544\nconfig.bias=false"),
              UINT64_C(7737708544)); // internlm2-7b
    CHECK_U64(total_of("config.model_type=qwen\nconfig.hidden_size=4096\n"
                       "config.num_hidden_layers=32\nconfig.num_attention_heads=32\n"
                       "config.intermediate_size=22016\nconfig.vocab_size=151936\n"
                       "config.kv_channels=128"),
              UINT64_C(7721324544)); // Qwen-7B
    CHECK_U64(total_of("config.model_type=baichuan\nconfig.hidden_size=4096\n"
                       "config.num_hidden_layers=32\nconfig.num_attention_heads=32\n"
                       "config.intermediate_size=11008\nconfig.vocab_size=125696"),
              UINT64_C(7505973248)); // Baichuan2-7B-Base
    CHECK_U64(total_of("config.model_type=chatglm\nconfig.hidden_size=4096\n"
                       "config.num_layers=28\nconfig.num_attention_heads=32\n"
                       "config.multi_query_group_num=2\nconfig.ffn_hidden_size=13696\n"
                       "config.padded_vocab_size=65024\nconfig.kv_channels=128"),
              UINT64_C(6243584000)); // chatglm3-6b
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

TEST(layers_and_tied_override)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    CHECK(load_settings(&m, &p, "model=Qwen3-0.6B\ntied=off", &e));
    CHECK_U64(p.total, 751632384); // what the measured runs with a separate head hold
    CHECK(load_settings(&m, &p, "model=DeepSeek-V3\nlayers=4", &e));
    CHECK_U64(model_expert_layers(&m), 1);
    CHECK(!load_settings(&m, &p, "model=Qwen3-0.6B\nlayers=29", &e));
    CHECK(strstr(e.message, "between 1 and 28"));
}

TEST(windows)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    CHECK(load(&m, &p, "gemma-3-4b", &e));
    CHECK_U64(model_sliding_layers(&m), 34 - 34 / 6);
    CHECK(m.layer && m.layer[4].sliding && !m.layer[5].sliding);
    CHECK(load(&m, &p, "gpt-oss-20b", &e));
    CHECK_U64(model_sliding_layers(&m), 12);
    CHECK(load(&m, &p, "Mistral-7B-v0.1", &e));
    CHECK_U64(model_sliding_layers(&m), 32);
    CHECK(load(&m, &p, "Mistral-7B-v0.3", &e));
    CHECK_U64(m.sliding_window, 0);
    CHECK(load(&m, &p, "Qwen3-8B", &e));
    CHECK_U64(m.sliding_window, 0);
}

#define SMALL                                                                                    \
    "model=x\nconfig.hidden_size=64\nconfig.num_hidden_layers=2\nconfig.num_attention_heads=4\n" \
    "config.intermediate_size=128\nconfig.vocab_size=1000\n"

TEST(configurations_by_hand)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    CHECK(load_settings(&m, &p, SMALL "config.model_type=llama", &e));
    // 2 (4 64^2 + 3 64 128 + 2 64) + 2 1000 64 + 64
    CHECK_U64(p.total, UINT64_C(2) * (4 * 4096 + 3 * 8192 + 128) + 128000 + 64);
    CHECK(load_settings(&m, &p, SMALL "config.model_type=llama\nconfig.mlp_bias=true", &e));
    CHECK_U64(p.total, 2 * (4 * 4096 + 3 * 8192 + 128 + 128 + 128 + 64) + 128000 + 64);
    CHECK(load_settings(&m, &p,
                        SMALL "config.model_type=qwen2\nconfig.num_key_value_heads=2\n"
                              "config.tie_word_embeddings=true",
                        &e));
    CHECK_U64(p.total, 2 * (2 * 4096 + 2 * 2048 + 3 * 8192 + 128 + 64 + 32 + 32) + 64000 + 64);
    CHECK(load_settings(&m, &p,
                        SMALL "config.model_type=qwen3_moe\nconfig.head_dim=16\n"
                              "config.num_key_value_heads=4\nconfig.num_experts=8\n"
                              "config.num_experts_per_tok=2\nconfig.moe_intermediate_size=32\n"
                              "config.mlp_only_layers.0=1\nconfig.decoder_sparse_step=1",
                        &e));
    CHECK_U64(model_expert_layers(&m), 1);
    CHECK_U64(p.by_part[PART_EXPERTS], UINT64_C(8) * 3 * 64 * 32);
    CHECK_U64(p.by_part[PART_MLP], UINT64_C(3) * 64 * 128);
    CHECK(load_settings(&m, &p,
                        SMALL "config.model_type=gemma2\nconfig.head_dim=16\n"
                              "config.layer_types.0=full_attention\n"
                              "config.layer_types.1=sliding_attention",
                        &e));
    CHECK(m.layer && !m.layer[0].sliding && m.layer[1].sliding);
}

TEST(families_read_only_their_own_switches)
{
    // Mistral has no biases and Qwen2 none on its output, whatever the configuration says.
    CHECK_U64(total_of(SMALL "config.model_type=mistral\nconfig.num_key_value_heads=4\n"
                             "config.attention_bias=true\nconfig.mlp_bias=true"),
              total_of(SMALL "config.model_type=mistral\nconfig.num_key_value_heads=4"));
    CHECK_U64(total_of(SMALL "config.model_type=qwen2\nconfig.num_key_value_heads=4\n"
                             "config.attention_bias=true"),
              total_of(SMALL "config.model_type=qwen2\nconfig.num_key_value_heads=4"));
    CHECK_U64(total_of(SMALL "config.model_type=llama\nconfig.attention_bias=true"),
              total_of(SMALL "config.model_type=llama") + UINT64_C(2) * 4 * 64);
}

#define SMALL_TEXT                                                                         \
    "model=x\nconfig.text_config.hidden_size=64\nconfig.text_config.num_hidden_layers=2\n" \
    "config.text_config.num_attention_heads=4\nconfig.text_config.num_key_value_heads=4\n" \
    "config.text_config.head_dim=16\nconfig.text_config.intermediate_size=128\n"           \
    "config.text_config.vocab_size=1000\nconfig.model_type=qwen3_vl\n"                     \
    "config.vision_config.depth=1\nconfig.vision_config.hidden_size=32\n"                  \
    "config.vision_config.num_heads=2\nconfig.vision_config.intermediate_size=64\n"        \
    "config.vision_config.out_hidden_size=64\n"

TEST(what_a_configuration_turns_off_is_off)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    uint64_t merger = 2 * 128 + 128 * 128 + 128 + 64 * 128 + 64;
    CHECK_U64(total_of(SMALL_TEXT "config.vision_config.deepstack_visual_indexes.0=0"),
              total_of(SMALL_TEXT "config.vision_config.deepstack_visual_indexes=[]") + merger);
    CHECK_U64(total_of(SMALL_TEXT), // transformers assumes three
              total_of(SMALL_TEXT "config.vision_config.deepstack_visual_indexes=[]") + 3 * merger);
    CHECK(load_settings(&m, &p,
                        SMALL "config.model_type=gemma2\nconfig.head_dim=16\n"
                              "config.attn_logit_softcapping=null",
                        &e));
    CHECK(!model_has(&m, FEATURE_ATTENTION_CAP) && model_has(&m, FEATURE_LOGIT_CAP));
    CHECK(load_settings(&m, &p,
                        SMALL "config.model_type=qwen3_moe\nconfig.head_dim=16\n"
                              "config.num_key_value_heads=4\nconfig.num_experts=0",
                        &e));
    CHECK_U64(p.by_part[PART_MLP], UINT64_C(2) * 3 * 64 * 128);
}

TEST(bad_configurations_are_refused_in_one_sentence)
{
    static const struct {
        const char *settings, *message;
    } bad[] = {
        {"config.hidden_size=3", "the configuration has no model_type"},
        {"config.model_type=rwkv", "the model family 'rwkv' is not known"},
        {"config.model_type=llama", "the configuration has no hidden_size"},
        {SMALL "config.model_type=llama\nconfig.num_attention_heads=5",
         "hidden_size 64 is not a multiple of num_attention_heads 5, and there is no head_dim"},
        {SMALL "config.model_type=llama\nconfig.num_key_value_heads=3",
         "num_attention_heads 4 is not a multiple of num_key_value_heads 3"},
        {SMALL "config.model_type=llama\nconfig.hidden_size=0",
         "config.hidden_size must be between 1 and 1048576, not '0'"},
        {SMALL "config.model_type=llama\nconfig.hidden_size=-64",
         "config.hidden_size must be between 1 and 1048576, not '-64'"},
        {SMALL "config.model_type=llama\nconfig.num_hidden_layers=9223372036854775808",
         "config.num_hidden_layers must be between 1 and 1024"},
        {SMALL "config.model_type=llama\nconfig.vocab_size=1e+30", "config.vocab_size must be"},
        {SMALL "config.model_type=llama\nconfig.tie_word_embeddings=5",
         "config.tie_word_embeddings must be on or off, not '5'"},
        {SMALL "config.model_type=qwen3_moe\nconfig.head_dim=16\nconfig.num_experts=4\n"
               "config.num_experts_per_tok=8",
         "num_experts_per_tok 8 exceeds the 4 experts there are"},
        {SMALL "config.model_type=gemma2\nconfig.head_dim=16\nconfig.layer_types.0=full_attention",
         "layer_types names only 1 of the layers"},
        {SMALL "config.model_type=gemma2\nconfig.head_dim=16\nconfig.layer_types.0=sideways",
         "config.layer_types.0 must be one of full_attention|sliding_attention, not 'sideways'"},
        {SMALL "config.model_type=qwen3_moe\nconfig.head_dim=16\nconfig.num_key_value_heads=4\n"
               "config.mlp_only_layers.0=2",
         "config.mlp_only_layers.0 must be between 0 and 1, not '2'"},
        {SMALL "config.model_type=llama\nconfig.hidden_size=4k",
         "config.hidden_size must be a whole number, not '4k'"},
        {"layers=3", "no model is given"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(bad); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        if (load_settings(&m, &p, bad[i].settings, &e) || !strstr(e.message, bad[i].message))
            test_failed(__FILE__, __LINE__, "wanted '%s', got '%s'", bad[i].message, e.message);
        CHECK_U64((uint64_t)error_exit_status(e.code), 2);
    }
}

TEST(the_largest_configuration_is_counted_or_refused)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    bool ok = load_settings(&m, &p,
                            "model=x\nconfig.model_type=qwen3_moe\nconfig.hidden_size=1048576\n"
                            "config.num_hidden_layers=1024\nconfig.num_attention_heads=16384\n"
                            "config.num_key_value_heads=16384\nconfig.head_dim=1048576\n"
                            "config.intermediate_size=1048576\nconfig.vocab_size=16777216\n"
                            "config.num_experts=16384\nconfig.num_experts_per_tok=1\n"
                            "config.moe_intermediate_size=1048576",
                            &e);
    CHECK(!ok && e.code == ERROR_OVERFLOW);
}

// Lengths that a card vouches for, and factors that nobody does.
TEST(lengths_beyond_what_is_vouched_for)
{
    static const struct {
        const char *model;
        uint64_t native, length;
        const char *warning;
    } rows[] = {
        {"Qwen3-8B", 32768, 131072, ""},
        {"Qwen/Qwen3-8B", 32768, 131073,
         "Qwen3-8B has 40960 positions, was trained for 32768; its card vouches for YaRN up to "
         "131072 tokens, not for 131073"},
        {"Qwen3-0.6B", 32768, 163840, ""},
        {"Qwen3-0.6B", 32768, 163841,
         "Qwen3-0.6B has 40960 positions, was trained for 32768; nothing vouches for YaRN by more "
         "than 4, as 163841 tokens need"},
        {"Qwen3-8B-Base", 32768, 131073,
         "Qwen3-8B-Base has 32768 positions; nothing vouches for YaRN by more than 4, as 131073 "
         "tokens need"},
        {"Qwen3-4B-Instruct-2507", 262144, 262144, ""},
        {"Qwen2.5-7B-Instruct", 32768, 131073,
         "Qwen2.5-7B-Instruct has 32768 positions; its card vouches for YaRN up to 131072 tokens, "
         "not for 131073"},
        {"Llama-3.1-8B", 131072, 524288, ""},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct settings s = settings_in(a);
        struct model m = {0};
        struct error e = {0};
        struct setting model = {STR("model"), str_from(rows[i].model), STR("--model")};
        CHECK(settings_add(&s, model, &e) && model_from_settings(&m, a, &s, &e));
        CHECK_U64(native_length(&m.native, m.max_position), rows[i].native);
        struct str warning = native_warning(a, m.name, m.max_position, &m.native, rows[i].length);
        CHECK_STR(warning, rows[i].warning);
    }
}

// What transformers 5.17's smart_resize makes of images, for each processor.
TEST(images_become_patches)
{
    static const struct {
        const char *model;
        uint64_t width, height;
        struct image_grid grid;
        uint64_t tokens;
    } rows[] = {
        {"Qwen3-VL-2B", 1024, 1024, {64, 64}, 1024},
        {"Qwen3-VL-2B", 1920, 1080, {68, 120}, 2040},
        {"Qwen3-VL-2B", 640, 480, {30, 40}, 300},
        {"Qwen3-VL-8B", 48, 80, {22, 14}, 77}, // halves go to the even side, then it is too small
        {"Qwen3-VL-8B", 100, 3, {4, 94}, 94},
        {"Qwen3-VL-8B", 8000, 6000, {220, 294}, 16170},
        {"Qwen3-VL-8B", 5000, 5000, {256, 256}, 16384},
        {"Qwen3-VL-8B", 65536, 400, {20, 3276}, 16380},
        {"Qwen2.5-VL-3B", 1024, 1024, {74, 74}, 1369},
        {"Qwen2.5-VL-3B", 100, 3, {2, 24}, 12},
        {"Qwen2.5-VL-7B", 4032, 3024, {216, 288}, 15552},
        {"Qwen2.5-VL-7B", 333, 777, {56, 24}, 336},
        {"Qwen2.5-VL-7B", 65536, 400, {20, 3276}, 16380},
        {"gemma-3-4b", 640, 480, {64, 64}, 256},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct model m;
        struct parameters p;
        struct error e;
        struct image_grid grid;
        CHECK(load(&m, &p, rows[i].model, &e));
        CHECK(image_grid_of(&grid, &m, rows[i].width, rows[i].height));
        CHECK_U64(grid.height, rows[i].grid.height);
        CHECK_U64(grid.width, rows[i].grid.width);
        CHECK_U64(image_tokens(&m, grid), rows[i].tokens);
    }
}

TEST(images_that_the_processor_refuses)
{
    struct model m;
    struct parameters p;
    struct error e;
    struct image_grid grid;
    CHECK(load(&m, &p, "Qwen3-VL-2B", &e));
    CHECK(image_grid_of(&grid, &m, 2000, 10));
    CHECK(!image_grid_of(&grid, &m, 2001, 10));
}

// Which blocks' features the text is given.
TEST(deepstack)
{
    static const struct {
        const char *model;
        uint64_t after[3];
    } rows[] = {{"Qwen3-VL-4B", {5, 11, 17}}, {"Qwen3-VL-30B-A3B", {8, 16, 24}}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e;
        CHECK(load(&m, &p, rows[i].model, &e));
        CHECK_U64(m.vision.deepstack, 3);
        for (int j = 0; j < 3; j++)
            CHECK_U64(m.vision.deepstack_after[j], rows[i].after[j]);
    }
}

// Its published config.json has the text's values beside vision_config, what transformers writes
// has them in text_config.
TEST(values_of_qwen2_5_vl_are_in_two_places)
{
    static const char *const texts[] = {"config.", "config.text_config."};
    for (ptrdiff_t i = 0; i < COUNT_OF(texts); i++) {
        struct model m = {0};
        struct parameters p = {0};
        struct error e = {0};
        struct arena *a = test_arena();
        struct str text = str_format(
            a,
            "model=x\nconfig.model_type=qwen2_5_vl\n%shidden_size=2048\n%snum_hidden_layers=36\n"
            "%snum_attention_heads=16\n%snum_key_value_heads=2\n%sintermediate_size=11008\n"
            "%svocab_size=151936\nconfig.tie_word_embeddings=true\n"
            "config.vision_config.hidden_size=1280\nconfig.vision_config.out_hidden_size=2048\n"
            "config.vision_config.fullatt_block_indexes.0=3\n",
            texts[i], texts[i], texts[i], texts[i], texts[i], texts[i]);
        struct settings s = settings_in(a);
        CHECK(settings_read(&s, text, '\n', STR("test"), &e) && build(&m, &p, &s, &e));
        CHECK_U64(p.total, UINT64_C(3754622976));
        CHECK_U64(m.vision.full, 1);
        CHECK_U64(m.vision.full_at[0], 3);
    }
}
