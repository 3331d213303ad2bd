// Hardware: the catalogue and every way of writing a machine.
#include <string.h>

#include "core/hardware/hardware.h"
#include "tests/support/t.h"

static bool read_spec(struct hardware *h, const char *text, struct error *e)
{
    struct setting spec = {STR("gpu"), str_from(text), STR("--gpu")};
    *e = (struct error){0};
    return hardware_from_spec(h, test_arena(), &spec, e);
}

TEST(specs)
{
    static const struct {
        const char *text, *name;
        uint64_t nodes, gpus;
    } rows[] = {
        {"H200", "H200", 1, 1},
        {"8xH100-80G", "H100-80G", 1, 8},
        {"8xh100", "H100-80G", 1, 8},
        {"4x8xA100-80G", "A100-80G", 4, 8},
        {"4 x 8 x A100_80g", "A100-80G", 4, 8},
        {"RTX-4090", "RTX4090", 1, 1},
        {"2x4090", "RTX4090", 1, 2},
        {"1024xL4", "L4", 128, 8},
        {"16xH100-80G", "H100-80G", 2, 8},
        {"1x16xH100-80G", "H100-80G", 1, 16},
        {"12xH100-80G", "H100-80G", 1, 12}, // no whole nodes of eight
        {"16xGB200", "GB200", 4, 4},
        {"16x{memory=48GiB}", "custom", 2, 8},
        {"A100", "A100-80G", 1, 1}, // as people write them
        {"A100-80GB", "A100-80G", 1, 1},
        {"NVIDIA A100-SXM4-80GB", "A100-80G", 1, 1},
        {"8x H100", "H100-80G", 1, 8},
        {"H100x8", "H100-80G", 1, 8},
        {"H100-80GB x 16", "H100-80G", 2, 8},
        {"H200-141GB", "H200", 1, 1},
        {"H20-96GB", "H20-96G", 1, 1},
        {"MI300X-192GB", "MI300X", 1, 1},
        {"TitanRTX-24GB", "TITAN-RTX", 1, 1},
        {"RTX 4060 Ti 16GB", "RTX4060Ti-16G", 1, 1},
        {"NVIDIA GeForce RTX 4090", "RTX4090", 1, 1},
        {"Tesla T4", "T4", 1, 1},
        {"A10-20GB", "A10-20G", 1, 1},
        {"4xA10-20GB", "A10-20G", 1, 4},
        {"24GB", "24G", 1, 1},
        {"2x24 GB", "24G", 1, 2},
        {"80GB GPU", "80G", 1, 1},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct hardware h;
        struct error e;
        if (!read_spec(&h, rows[i].text, &e))
            test_failed(__FILE__, __LINE__, "%s: %s", rows[i].text, e.message);
        CHECK_STR(str_from(h.card.name), rows[i].name);
        CHECK_U64(h.nodes, rows[i].nodes);
        CHECK_U64(h.gpus_per_node, rows[i].gpus);
    }
}

// As sold, less what torch does not see; a part has the rest of its card's figures.
TEST(cards_by_their_size)
{
    struct hardware h;
    struct error e;
    CHECK(read_spec(&h, "24GB", &e));
    CHECK(h.custom);
    CHECK(h.card.memory.value > 23 * GIB && h.card.memory.value < 24 * GIB);
    CHECK(read_spec(&h, "A10-20GB", &e));
    CHECK(!h.custom);
    CHECK(h.card.memory.value > 19 * GIB && h.card.memory.value < 20 * GIB);
    CHECK_U64((uint64_t)h.card.capability, 86);
}

TEST(custom_cards)
{
    struct hardware h;
    struct error e;
    CHECK(read_spec(&h, "8x{memory=48GiB,bf16=181TFLOPS}", &e));
    CHECK(h.custom);
    CHECK_U64(h.card.memory.value, 48 * GIB);
    CHECK_U64(h.card.bf16.value, UINT64_C(181000000000000));
    CHECK_U64(h.card.bandwidth.value, 0);
    CHECK(read_spec(&h, "2x8xcustom:memory=48GiB, bandwidth=864GB/s", &e));
    CHECK_U64(h.card.bandwidth.value, UINT64_C(864000000000));
    CHECK_U64(hardware_gpus(&h), 16);
    CHECK(read_spec(&h, "H100-80G:memory=94GiB", &e));
    CHECK(!h.custom);
    CHECK_U64(h.card.memory.value, 94 * GIB);
    CHECK_STR(str_from(h.card.memory.source), "given by --gpu");
    CHECK_U64(h.card.bf16.value, UINT64_C(989000000000000));
}

TEST(bad_specs_are_refused_in_one_sentence)
{
    static const struct {
        const char *text, *message, *hint;
    } rows[] = {
        {"", "gpu names no card", ""},
        {"8x", "gpu names no card", ""},
        {"H1000", "there is no GPU 'H1000'", "did you mean 'H100'?"},
        {"V100", "there is no GPU 'V100'", "did you mean V100-32G or V100-16G"},
        {"Tesla V100", "there is no GPU 'Tesla V100'", "did you mean V100-32G or V100-16G"},
        {"A10-48GB", "there is no GPU 'A10-48GB'", "did you mean 'A40-48G'?"}, // more than it has
        {"H100x0", "must be between 1 and 65536, not '0'", ""},
        {"x8", "there is no GPU 'x8'", ""},
        {"8xH200,H200", "there is no GPU 'H200,H200'", "'fathom max' and 'fathom guide' compare"},
        {"RTX 6000", "there is no GPU", "did you mean RTX6000-Ada or RTX6000-Turing?"},
        {"Ascend 910B", "there is no GPU", "CUDA and ROCm"},
        {"0xH200", "must be between 1 and 65536, not '0'", ""},
        {"-8xH200", "must be between 1 and 65536, not '-8'", ""},
        {"18446744073709551616xH200", "must be between 1 and 65536", ""},
        {"2001xH200", "a node has at most 1024 GPUs, not 2001", ""},
        {"65536x1024xH200", "a machine has at most 1048576 GPUs", ""},
        {"2x2x2xH200", "there is no GPU '2xH200'", ""},
        {"custom", "a card's figures are of the form memory=48GiB, not ''", ""},
        {"{bf16=181TFLOPS}", "a custom card needs its memory", ""},
        {"{memory=48Gi}", "memory must be a size such as 79.15GiB or 80GB, not '48Gi'", ""},
        {"{memory=0GiB}", "memory must be between", ""},
        {"{memory=1e30}", "memory must be between 1.00 GiB", ""},
        {"{memory=48GiB,colour=red}", "a card has no 'colour'", "a card's figures are memory"},
        {"{memory=48GiB", "there is no GPU", ""},
        {"auto", "auto needs the machine itself", ""},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct hardware h;
        struct error e;
        bool ok = read_spec(&h, rows[i].text, &e);
        if (ok || !strstr(e.message, rows[i].message) || !strstr(e.hint, rows[i].hint))
            test_failed(__FILE__, __LINE__, "'%s' gives '%s'; '%s'", rows[i].text, e.message,
                        e.hint);
        CHECK_U64((uint64_t)error_exit_status(e.code), 2);
    }
}

TEST(every_known_figure_names_its_source)
{
    const struct gpu *g;
    for (ptrdiff_t i = 0; (g = gpu_at(i)); i++) {
        CHECK(g->memory.value > GIB && g->per_node > 0 && g->title && g->link_kind);
        for (ptrdiff_t f = 0; f < gpu_field_count; f++) {
            struct figure figure = gpu_figure(g, &gpu_fields[f]);
            if (figure.value && !(figure.source && *figure.source))
                test_failed(__FILE__, __LINE__, "%s has a %s from nowhere", g->name,
                            gpu_fields[f].key);
        }
        CHECK(gpu_find(str_from(g->name)) == g);
    }
}

TEST(cards_as_people_write_them)
{
    static const struct {
        const char *text, *card;
        uint64_t gpus;
    } rows[] = {
        {"A100 40GB", "A100-40G", 1},
        {"4x A6000", "A6000", 4},
        {"8*A100", "A100-80G", 8},
        {"A100\xc3\x97"
         "8",
         "A100-80G", 8},
        {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX-PRO-6000", 1},
        {"DGX Spark", "DGX-Spark", 1},
        {"GH200 480GB", "GH200", 1},
        {"2x MI250X", "MI250X", 2},
        {"B200-192GB", "B200", 1},
        {"RTX 3060 12GB", "RTX3060", 1},
        {"2x3090ti", "RTX3090Ti", 2},
        {"RTX 4090 48GB", "RTX4090-48G", 1},
        {"RTX 4060 Ti 8GB", "RTX4060Ti-16G-8G", 1},
        {"Quadro RTX 8000", "RTX8000", 1},
        {"Tesla P100-PCIE-16GB", "P100", 1},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct hardware h = {0};
        struct error e = {0};
        if (!read_spec(&h, rows[i].text, &e) || !str_is(str_from(h.card.name), rows[i].card) ||
            hardware_gpus(&h) != rows[i].gpus)
            test_failed(__FILE__, __LINE__, "'%s' is %s, %s", rows[i].text, h.card.name, e.message);
    }
}

TEST(nvml_names_lead_to_cards)
{
    CHECK(gpu_find_nvml(STR("NVIDIA H200")) == gpu_find(STR("H200")));
    CHECK(gpu_find_nvml(STR("NVIDIA H100 80GB HBM3")) == gpu_find(STR("H100-80G")));
    CHECK(gpu_find_nvml(STR("Matrox Millennium")) == NULL);
}
