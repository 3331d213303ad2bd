// Families from configurations: what each reads, what is refused, windows, lengths and images.
#include <string.h>

#include "tests/support/models.h"

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
