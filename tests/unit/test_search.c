// The search for the largest context: equal to trying every length, its properties, its lists.
#include <string.h>

#include "core/search/guide.h"
#include "tests/support/t.h"

static struct settings *settings_of(struct arena *a, const char *text)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct error e = {0};
    *s = settings_in(a);
    if (!settings_read(s, str_from(text), ' ', STR("test"), &e) || !settings_check(s, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", text, e.message);
    return s;
}

static struct capacity capacity_of(const char *text, struct grid grid, bool safe)
{
    struct arena *a = test_arena();
    struct capacity_request r = {settings_of(a, text), grid, safe};
    struct capacity c = {0};
    struct error e = {0};
    if (!capacity_find(&c, *a, &r, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", text, e.message);
    return c;
}

static const struct grid trinity = {.trinity = true};

TEST(the_published_lengths)
{
    static const uint64_t wanted[] = {4096,  8192,  12288, 16384, 20480, 24576, 28672,
                                      32768, 36864, 40960, 51200, 61440, 71680, 81920};
    struct grid qwen3 = {.trinity = true, .max_position = 40960};
    for (ptrdiff_t i = 0; i < COUNT_OF(wanted); i++)
        CHECK_U64(grid_length(&qwen3, i), wanted[i]);
    struct grid short_model = {.trinity = true, .max_position = 2048};
    CHECK_U64(grid_length(&short_model, 0), 4096);
    CHECK_U64(grid_length(&short_model, 1), 4608);
    struct grid unknown = {.trinity = true};
    CHECK_U64(grid_length(&unknown, 2), 12288);
}

TEST(lengths_that_images_fill_are_left_out)
{
    static const uint64_t list[] = {1024, 4096, 8192};
    struct grid multiples = {.step = 1024, .above = 1026}, exact = {.step = 1026, .above = 1026};
    struct grid published = {.trinity = true, .max_position = 40960, .above = 8208};
    struct grid given = {.lengths = list, .length_count = COUNT_OF(list), .above = 4096};
    CHECK_U64(grid_length(&multiples, 0), 2048);
    CHECK_U64(grid_length(&multiples, 3), 5120);
    CHECK_U64(grid_length(&exact, 0), 2052);
    CHECK_U64(grid_length(&published, 0), 12288);
    CHECK_U64(grid_length(&given, 0), 8192);
    CHECK_U64(grid_length(&given, 1), UINT64_MAX);
}

// Few layers, so that it is quick; the limit makes the lengths short ones.
static const char *const plans[] = {
    "model=Qwen3-0.6B gpu=A100-80G layers=3 memory-limit=24GiB",
    "model=Qwen3-4B gpu=2xA100-80G layers=3 memory-limit=24GiB",
    "model=Qwen3-4B gpu=2xA100-80G layers=3 memory-limit=24GiB strategy=fsdp1",
    "model=Qwen3-8B gpu=4xA100-80G layers=2 memory-limit=20GiB sp=2",
    "model=Qwen3-0.6B gpu=2xA100-80G layers=3 memory-limit=24GiB expandable=on",
    "model=Qwen2.5-7B gpu=2xH200 layers=2 memory-limit=24GiB offload=all",
    "model=Llama-3.2-1B gpu=H200 layers=4 memory-limit=24GiB checkpointing=off",
    "model=Qwen3-4B gpu=H200 layers=3 memory-limit=24GiB strategy=ddp",
    "model=Qwen3-4B gpu=H200 layers=3 memory-limit=1GiB",
};

TEST(the_search_finds_what_trying_every_length_finds)
{
    static const struct grid grids[] = {{.trinity = true}, {.step = 1024}, {.step = 512}};
    int failing = 0, replays = 0, tried = 0;
    for (ptrdiff_t i = 0; i < COUNT_OF(plans); i++)
        for (ptrdiff_t g = 0; g < COUNT_OF(grids); g++) {
            struct capacity found = capacity_of(plans[i], grids[g], false);
            struct arena *a = test_arena();
            struct capacity_request r = {settings_of(a, plans[i]), grids[g], false};
            struct capacity scanned;
            struct error e = {0};
            CHECK(capacity_scan(&scanned, *a, &r, &e));
            CHECK_U64(found.context, scanned.context);
            CHECK_U64(found.fails_at, scanned.fails_at);
            CHECK_U64(found.reserved_bytes, scanned.reserved_bytes);
            CHECK_U64(found.stop.oom.tried_bytes, scanned.stop.oom.tried_bytes);
            failing += !scanned.context;
            replays += found.replays;
            tried += scanned.replays;
        }
    CHECK(failing > 0 && failing < COUNT_OF(plans) * COUNT_OF(grids));
    CHECK(replays * 2 < tried);
}

// Expandable: with classic segments more memory may change where things lie.
TEST(more_memory_never_trains_less)
{
    uint64_t last = 0, first = 0;
    static const char *const limits[] = {"8GiB", "10GiB", "12GiB", "16GiB", "24GiB", "32GiB"};
    for (ptrdiff_t i = 0; i < COUNT_OF(limits); i++) {
        char text[160];
        struct buf b = buf_over(text, sizeof text);
        buf_printf(&b, "model=Qwen3-0.6B gpu=2xH200 layers=2 expandable=on memory-limit=%s%c",
                   limits[i], 0);
        struct capacity c = capacity_of(text, trinity, false);
        CHECK(c.context >= last);
        last = c.context;
        first = first ? first : last;
    }
    CHECK(last > first);
}

// How many replays fewer than all.
static int spared_replays(struct capacity *found, const char *plan, const char *margin)
{
    struct arena *a = test_arena();
    struct str text = str_format(a, "%s%s", plan, margin);
    struct capacity_request r = {settings_of(a, text.p), {.step = 1024}, true};
    struct capacity scanned = {0};
    struct error e = {0};
    if (!capacity_scan(&scanned, *a, &r, &e) || !capacity_find(found, *a, &r, &e) ||
        !capacity_same(found, &scanned))
        test_failed(__FILE__, __LINE__, "%s: %s", text.p, e.message);
    return scanned.replays - found->replays;
}

// The same for lengths that are safe, and that leave a margin; cached memory decides there.
TEST(the_search_for_safe_lengths_finds_what_trying_every_length_finds)
{
    static const char *const margins[] = {"", " margin=512MiB", " margin=0"};
    int tight = 0, spared = 0;
    for (ptrdiff_t i = 0; i < COUNT_OF(plans); i++)
        for (ptrdiff_t m = 0; m < COUNT_OF(margins); m++) {
            struct capacity found = {0};
            spared += spared_replays(&found, plans[i], margins[m]);
            CHECK(!found.context || found.verdict.grade == GRADE_SAFE);
            tight += found.context < found.fits_context;
        }
    CHECK(tight > 0 && spared > 0);
}

// A guide's cells answer what its own request asks, whatever limits them.
TEST(a_guide_finds_what_trying_every_length_finds)
{
    struct arena *a = test_arena();
    struct guide *g = NEW(a, struct guide, 1);
    struct error e = {0};
    int searches = 0, tight = 0;
    CHECK(guide_make(g, a,
                     settings_of(a, "model=Qwen3-0.6B,Qwen3-8B gpu=1,2xA100-80G recipe=trinity "
                                    "layers=2 memory-limit=20GiB"),
                     NULL, &e));
    for (ptrdiff_t i = 0; i < g->sweep.cell_count; i++) {
        struct cell *cell = &g->sweep.cells[i];
        struct capacity_request r = g->request;
        struct capacity scanned = {0};
        r.settings = &cell->settings;
        if (!cell->possible)
            continue;
        if (!capacity_scan(&scanned, *a, &r, &e) || !capacity_same(&cell->capacity, &scanned))
            test_failed(__FILE__, __LINE__, "cell %lld: %s", (long long)i, e.message);
        searches++;
        tight += scanned.context < scanned.fits_context;
    }
    CHECK(searches > 10 && tight > 0);
}

TEST(a_margin_is_left_free)
{
    const char *whole = "model=Qwen3-0.6B gpu=H200 layers=2 memory-limit=24GiB margin=8GiB";
    struct capacity c = capacity_of(whole, trinity, true);
    CHECK(c.context && c.context < c.fits_context);
    CHECK(capacity_left_bytes(&c) >= 8 * GIB);
    CHECK_U64(c.limit_bytes, 24 * GIB);
    CHECK(c.tight.free_bytes < 8 * GIB);
    struct arena *a = test_arena();
    const char *all = "model=Qwen3-0.6B gpu=H200 layers=2 memory-limit=24GiB margin=24GiB";
    struct capacity_request r = {settings_of(a, all), trinity, true};
    struct error e = {0};
    CHECK(!capacity_find(&c, *a, &r, &e));
    CHECK_STR(str_from(e.message),
              "a margin of 24.00 GiB leaves nothing of the 24.00 GiB that torch may take");
}

TEST(without_a_margin_all_that_fits_will_do)
{
    const char *text = "model=Qwen3-0.6B gpu=H200 layers=2 memory-limit=24GiB margin=0";
    struct capacity any = capacity_of(text, trinity, true);
    struct capacity fits = capacity_of(text, trinity, false);
    CHECK_U64(any.context, fits.context);
    CHECK_U64(any.fits_context, fits.context);
    CHECK_U64(any.tight_at, 0);
}

TEST(a_small_host_ends_the_lengths)
{
    const char *text =
        "model=Qwen3-0.6B gpu=2xH200 layers=2 checkpoint-offload=on loss=chunked:2048 "
        "host-memory=1GiB margin=0";
    struct capacity c = capacity_of(text, (struct grid){.step = 8192}, true);
    CHECK(c.context && c.fails_at && c.host_bytes <= GIB);
    CHECK(c.stop.verdict.host_is_short && c.stop.host.train > GIB);
}

TEST(nothing_is_left_where_a_page_reaches_past_the_limit)
{
    struct capacity c = {.limit_bytes = 10 * GIB, .reserved_bytes = 10 * GIB + 1};
    CHECK_U64(capacity_left_bytes(&c), 0);
    c.reserved_bytes = 9 * GIB;
    CHECK_U64(capacity_left_bytes(&c), GIB);
}

// What is not modelled ends the lengths; it is no failure.
TEST(lengths_end_where_the_model_of_training_does)
{
    struct capacity c = capacity_of("model=Qwen3-0.6B gpu=H200 layers=2 loss=chunked:2",
                                    (struct grid){.step = 1024}, false);
    CHECK_U64(c.context, 4096);
    CHECK_U64(c.fails_at, 0);
    CHECK_U64(c.next, 5120);
    CHECK(strstr(c.end.message, "chunks"));
}

TEST(yarn_is_for_lengths_beyond_the_trained_one)
{
    struct capacity c = {.context = 51200, .max_position = 40960};
    CHECK(capacity_needs_yarn(&c) && capacity_yarn_factor(&c) == 1.25);
    CHECK(yarn_factor(41984, 40960) == 1.025);
    CHECK(yarn_factor(40961, 40960) == 1.0001);
    CHECK(yarn_factor(50000, 30000) == 1.6667);
    CHECK(yarn_factor(1000000, 3000) == 333.334);
    c.context = 40960;
    CHECK(!capacity_needs_yarn(&c));
}

static void check_machines(const char *gpu, const char *wanted)
{
    struct arena *a = test_arena();
    struct settings s = settings_in(a);
    struct error e = {0};
    struct sweep sweep;
    struct buf got = buf_in(a);
    CHECK(settings_add(&s, (struct setting){STR("model"), STR("Qwen3-8B"), STR("test")}, &e));
    CHECK(settings_add(&s, (struct setting){STR("gpu"), str_from(gpu), STR("test")}, &e));
    if (!sweep_read(&sweep, a, &s, &e)) {
        CHECK_STR(str_from(e.message), wanted);
        return;
    }
    for (ptrdiff_t i = 0; i < sweep.machine_count; i++)
        buf_printf(&got, "%s%.*s", i ? " | " : "", STR_ARGS(sweep.machines[i].gpu.value));
    CHECK_STR(buf_str(&got), wanted);
}

TEST(lists_of_machines)
{
    check_machines("H200", "H200");
    check_machines("1,2,4xA100-80G", "1xA100-80G | 2xA100-80G | 4xA100-80G");
    check_machines("1, 2x8xH200", "1x8xH200 | 2x8xH200");
    check_machines("2xH200,H100-80G,4,8xH200", "2xH200 | H100-80G | 4xH200 | 8xH200");
    check_machines("2,4xcustom:memory=48GiB,bf16=181TFLOPS",
                   "2xcustom:memory=48GiB,bf16=181TFLOPS | 4xcustom:memory=48GiB,bf16=181TFLOPS");
    check_machines("2x{memory=48GiB,bf16=181TFLOPS},H200",
                   "2x{memory=48GiB,bf16=181TFLOPS} | H200");
    check_machines("H100-80G:memory=94GiB,2xH200", "H100-80G:memory=94GiB | 2xH200");
    check_machines("2,2xH200,2xH200,H200", "2xH200 | H200");
    check_machines("2,4", "'4' names no card; 1,2,4xA100-80G is an example");
    check_machines("2xH200,", "gpu has an empty item: '2xH200,'");
    check_machines("2xH200,2xH201", "there is no GPU 'H201'");
}

static bool run_sweep(struct sweep *s, const char *text, struct error *e)
{
    static const struct variant sizes[] = {{{"1", 1}, {"sp=1", 4}}, {{"2", 1}, {"sp=2", 4}}};
    struct arena *a = test_arena();
    struct settings *settings = settings_of(a, text);
    struct capacity_request r = {settings, trinity, false};
    *e = (struct error){0};
    if (!sweep_read(s, a, settings, e))
        return false;
    s->variants = NEW(a, struct variant, 2);
    memcpy(s->variants, sizes, sizeof sizes);
    s->variant_count = 2;
    return sweep_run(s, a, NULL, &r, e);
}

TEST(what_is_not_possible_is_left_out_of_a_sweep)
{
    struct sweep s;
    struct error e;
    CHECK(run_sweep(&s, "model=Qwen3-0.6B,Qwen3-1.7B gpu=1,2xA100-80G layers=2", &e));
    CHECK_U64((uint64_t)s.cell_count, 8);
    for (ptrdiff_t i = 0; i < s.cell_count; i++) {
        const struct cell *c = &s.cells[i];
        CHECK_U64(c->possible, c->machine == 1 || c->variant == 0);
        CHECK_U64(c->capacity.context > 0, c->possible);
    }
    CHECK(sweep_cell(&s, 1, 1, 0)->capacity.context > sweep_cell(&s, 1, 0, 0)->capacity.context);
    CHECK(!run_sweep(&s, "model=DeepSeek-V2-Lite lora=16 gpu=1,2xA100-80G", &e));
    CHECK(strstr(e.message, "LoRA over DeepSeek-V2 is not modelled"));
    CHECK(!run_sweep(&s, "model=Qwen3-0.6B,Qwen3-9B gpu=H200", &e));
    CHECK_STR(str_from(e.message), "there is no model 'Qwen3-9B'");
}

static bool make_guide(struct guide *g, const char *text, const char *order, struct error *e)
{
    struct arena *a = test_arena();
    struct settings *s = settings_of(a, text);
    *e = (struct error){0};
    CHECK(!order ||
          settings_add(s, (struct setting){STR("order"), str_from(order), STR("test")}, e));
    return guide_make(g, a, s, NULL, e);
}

static const char guided[] =
    "model=Qwen3-0.6B,Qwen3-4B gpu=1,2xA100-80G layers=2 memory-limit=16GiB ";

// Longer contexts never take less trouble.
static void check_column(const struct guide *g, ptrdiff_t machine, ptrdiff_t model)
{
    ptrdiff_t last = 0;
    for (ptrdiff_t row = 0; row < guide_rows(g, machine); row++) {
        ptrdiff_t choice = guide_choice(g, machine, model, g->lengths[row]);
        CHECK(last >= 0 ? choice < 0 || choice >= last : choice < 0);
        last = choice;
    }
}

TEST(the_guide_names_the_first_configuration_that_trains)
{
    struct guide g;
    struct error e;
    CHECK(make_guide(&g, guided, "published", &e));
    CHECK_U64((uint64_t)g.sweep.variant_count, 9);
    CHECK_STR(g.sweep.variants[6].name, "Env + Offload");
    for (ptrdiff_t column = 0; column < 4; column++)
        check_column(&g, column / 2, column % 2);
    ptrdiff_t rows = guide_rows(&g, 1);
    CHECK(guide_choice(&g, 1, 0, g.lengths[rows - 1]) < 0);
    CHECK(guide_choice(&g, 1, 0, g.lengths[rows - 2]) > 0);
    CHECK(guide_rows(&g, 0) < rows);
    CHECK_U64((uint64_t)rows, (uint64_t)g.length_count);
}

TEST(a_guide_of_given_lengths_and_order)
{
    char text[200];
    struct buf b = buf_over(text, sizeof text);
    buf_printf(&b, "%slengths=8000,1k,8000%c", guided, 0);
    struct guide g;
    struct error e;
    CHECK(make_guide(&g, text, "env + sp=2, ENV,vanilla,Env", &e));
    CHECK_U64((uint64_t)g.sweep.variant_count, 3);
    CHECK_U64((uint64_t)g.length_count, 2);
    CHECK_U64(g.lengths[1], 8000);
    CHECK_STR(g.sweep.variants[guide_choice(&g, 0, 0, 1024)].name, "Env");
    CHECK_STR(g.sweep.variants[guide_choice(&g, 1, 0, 8000)].name, "Env + SP=2");
    CHECK(!make_guide(&g, text, "vanila", &e));
    CHECK_STR(str_from(e.message), "the guide has no configuration 'vanila'");
    CHECK_STR(str_from(e.hint), "did you mean 'vanilla'?");
    CHECK(!make_guide(&g, "model=Qwen3-8B gpu=H200 lengths=4k grid=1k", NULL, &e));
    CHECK(strstr(e.message, "lengths are given"));
}

TEST(every_given_length_is_shown_and_a_refused_model_has_its_reason)
{
    struct guide g;
    struct error e;
    CHECK(
        make_guide(&g,
                   "model=Qwen3-0.6B,DeepSeek-V2-Lite gpu=1,2xA100-80G layers=2 memory-limit=16GiB "
                   "lora=16 lengths=1k,512k,600k",
                   "vanilla,SP=2,SP=8", &e));
    CHECK_U64((uint64_t)guide_rows(&g, 0), 3);
    CHECK(!guide_refusal(&g, 0, 0));
    CHECK(strstr(guide_refusal(&g, 0, 1)->message, "LoRA over DeepSeek-V2 is not modelled"));
    CHECK(guide_is_possible(&g, 1) && !guide_is_possible(&g, 2));
}

TEST(a_guide_knows_lengths_that_end_for_another_reason_than_memory)
{
    struct guide g;
    struct error e;
    CHECK(make_guide(&g, "model=Qwen3-0.6B gpu=H200 layers=2 loss=chunked:2", "vanilla", &e));
    CHECK(guide_end(&g, 0, 0) && strstr(guide_end(&g, 0, 0)->end.message, "chunks"));
    CHECK(make_guide(&g, guided, "vanilla", &e));
    CHECK(!guide_end(&g, 0, 0));
}

// Every name can be given, and what it changes are settings.
TEST(the_table_of_configurations_is_sound)
{
    for (ptrdiff_t i = 0; i < configuration_count; i++) {
        struct arena *a = test_arena();
        struct settings *s = settings_of(a, configurations[i].settings);
        CHECK(s->count > 0 || i == 0);
    }
    for (ptrdiff_t i = 0; i < GUIDE_DIALECT_COUNT; i++)
        CHECK(settings_of(test_arena(), guide_offload[i])->count > 0);
}

static void check_rungs(const char *asked)
{
    struct guide g;
    struct error e;
    CHECK(make_guide(&g, asked, NULL, &e));
    ptrdiff_t first = guide_choice(&g, 0, 0, 4096), second = guide_choice(&g, 0, 0, 32768);
    CHECK(first >= 0 && second > first);
    CHECK(str_is(g.sweep.variants[second].name, "Env + Ckpt + Shard + Liger"));
}

// Whose trainers begin with plain data parallel and no checkpoints.
TEST(trainers_are_told_to_checkpoint_and_shard)
{
#define EIGHT "model=Qwen3-8B gpu=8xA100-80G layers=4 memory-limit=24GiB lengths=4k,32k "
    static const char *const asked[] = {EIGHT "recipe=axolotl", EIGHT "for=llamafactory",
                                        EIGHT "recipe=transformers"};
    for (ptrdiff_t i = 0; i < COUNT_OF(asked); i++)
        check_rungs(asked[i]);
}

TEST(others_have_no_rungs_of_trainers)
{
    struct guide plain;
    struct error e;
    CHECK(make_guide(&plain, "model=Qwen3-0.6B gpu=2xA100-80G layers=2 lengths=1k", NULL, &e));
    for (ptrdiff_t i = 0; i < plain.sweep.variant_count; i++)
        CHECK(!str_is(plain.sweep.variants[i].name, "Env + Ckpt"));
}

TEST(under_deepspeed_offload_keeps_the_strategy_of_the_recipe)
{
    struct guide g;
    struct error e;
    CHECK(make_guide(&g,
                     "model=Qwen3-0.6B gpu=2xA100-80G layers=2 memory-limit=16GiB lengths=1k "
                     "recipe=deepspeed",
                     "vanilla,Env + Offload", &e));
    const struct cell *c = sweep_cell(&g.sweep, 0, 1, 0);
    CHECK(c->possible);
    CHECK(!settings_find_z(&c->settings, "strategy"));
    CHECK_STR(settings_find_z(&c->settings, "offload")->value, "all");
    for (ptrdiff_t i = 0; i < guide_part_count; i++)
        CHECK(!strstr(guide_parts[i].how[g.dialect], "fully_shard"));
}
