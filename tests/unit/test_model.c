// Models: the catalogue's totals against two sources that are not ours, and every tensor in its
// place.
#include "tests/support/models.h"

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
