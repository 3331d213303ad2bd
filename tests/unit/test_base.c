// Base: arena, text, checked numbers, units, JSON, settings, tables.
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/json_out.h"
#include "core/base/num.h"
#include "core/base/view.h"
#include "core/settings/settings.h"
#include "tests/support/t.h"

TEST(what_is_counted_agrees_with_its_number)
{
    struct buf b = buf_in(test_arena());
    buf_count(&b, 1, "step");
    buf_put_z(&b, ", ");
    buf_count(&b, 0, "GPU");
    buf_put_z(&b, ", ");
    buf_count(&b, 2, "micro-batch");
    CHECK_STR(buf_str(&b), "1 step, 0 GPUs, 2 micro-batches");
}

TEST(arena_gives_zeroed_aligned_memory)
{
    struct arena *a = test_arena();
    NEW(a, char, 3);
    uint64_t *numbers = NEW(a, uint64_t, 100);
    CHECK_U64((uintptr_t)numbers % _Alignof(uint64_t), 0);
    for (int i = 0; i < 100; i++)
        CHECK_U64(numbers[i], 0);
}

TEST(a_growing_array_is_zeroed_behind_its_items)
{
    struct arena *a = test_arena(), before = *a;
    ptrdiff_t capacity = 2;
    memset(ROOM(&before, char, 1000), 1, 1000);
    int *items = ROOM(a, int, 2);
    items[0] = items[1] = 7;
    items = arena_grow(a, items, sizeof *items, 2, &capacity);
    CHECK(capacity == 4);
    CHECK(items[0] == 7 && items[1] == 7 && items[2] == 0 && items[3] == 0);
}

TEST(arena_by_value_is_scratch)
{
    struct arena *a = test_arena();
    char *before = a->begin;
    struct arena scratch = *a;
    NEW(&scratch, char, 1000);
    CHECK(a->begin == before);
}

TEST(arena_extends_its_last_block_only)
{
    struct arena *a = test_arena();
    char *first = NEW(a, char, 10);
    CHECK(arena_extend(a, first, 10, 5));
    NEW(a, char, 1);
    CHECK(!arena_extend(a, first, 15, 5));
}

TEST(str_cuts)
{
    struct str_cut c = str_cut(STR("a=b=c"), '=');
    CHECK(c.found);
    CHECK_STR(c.head, "a");
    CHECK_STR(c.tail, "b=c");
    c = str_cut_last(STR("a/b/c"), '/');
    CHECK_STR(c.head, "a/b");
    CHECK_STR(c.tail, "c");
    c = str_cut(STR("abc"), '=');
    CHECK(!c.found);
    CHECK_STR(c.head, "abc");
    CHECK_STR(str_trim(STR(" \t x y \r\n")), "x y");
    CHECK_STR(str_trim(STR("   ")), "");
}

TEST(str_distance_counts_edits)
{
    CHECK_U64((uint64_t)str_distance(STR("kitten"), STR("sitting"), 9), 3);
    CHECK_U64((uint64_t)str_distance(STR("ab"), STR("ba"), 9), 1);
    CHECK_U64((uint64_t)str_distance(STR("QWEN"), STR("qwen"), 9), 0);
    CHECK_U64((uint64_t)str_distance(STR(""), STR("abc"), 9), 3);
    CHECK_U64((uint64_t)str_distance(STR("abcdef"), STR("uvwxyz"), 2), 3);
}

TEST(str_nearest_suggests_near_misses_only)
{
    struct str_nearest n = str_nearest_to(STR("Qwen3-8b-"));
    str_nearest_offer(&n, STR("Llama-3.1-8B"));
    str_nearest_offer(&n, STR("Qwen3-8B"));
    CHECK_STR(n.best, "Qwen3-8B");
    n = str_nearest_to(STR("xyz"));
    str_nearest_offer(&n, STR("Qwen3-8B"));
    CHECK_STR(n.best, "");
}

TEST(str_short_path_keeps_the_end)
{
    const struct str file =
        STR("/mnt/data1/someone/projects/LLaMA-Factory/examples/deepspeed/ds_z3_config.json");
    CHECK_STR(str_short_path(file), "projects/LLaMA-Factory/examples/deepspeed/ds_z3_config.json");
    CHECK_STR(str_short_path(STR("deepspeed/ds_z3_config.json")), "deepspeed/ds_z3_config.json");
    const struct str word =
        STR("a-name-without-folders-that-is-as-long-as-anybody-ever-gave-to-a-file.json");
    CHECK_STR(str_short_path(word), "a-name-without-folders-that-is-as-long-as-anybody-ever-gave-");
}

TEST(str_short_cuts_between_characters)
{
    char long_text[121] = {0};
    for (int i = 0; i < 120; i += 2) {
        long_text[i] = '\xC3';
        long_text[i + 1] = '\xA9';
    }
    struct str cut = str_short((struct str){long_text, 120});
    CHECK_U64((uint64_t)cut.n, 60);
    long_text[0] = 'x';
    cut = str_short((struct str){long_text + 1, 119});
    CHECK(cut.n <= 60);
}

TEST(numbers_do_not_wrap)
{
    struct error e = {0};
    uint64_t r = 7;
    CHECK(u64_add(&r, UINT64_MAX - 1, 1, &e));
    CHECK(!u64_add(&r, UINT64_MAX, 1, &e));
    CHECK_U64(r, UINT64_MAX);
    CHECK(e.code == ERROR_OVERFLOW);
    e = (struct error){0};
    CHECK(!u64_mul(&r, UINT64_C(1) << 32, UINT64_C(1) << 32, &e));
    CHECK_U64(sat_mul(UINT64_C(1) << 40, UINT64_C(1) << 40), U64_SATURATED);
    CHECK_U64(sat_add(U64_SATURATED, 5), U64_SATURATED);
    CHECK_U64(u64_divide_up(7, 2), 4);
    CHECK_U64(u64_divide_up(UINT64_MAX, 2), UINT64_C(1) << 63);
    CHECK_U64(u64_align_up(513, 512), 1024);
    CHECK_U64(u64_align_up(UINT64_MAX, 512), U64_SATURATED);
}

static const struct {
    enum unit_kind kind;
    const char *text;
    enum unit_result result;
    uint64_t value;
} unit_rows[] = {
    {UNIT_COUNT, "32768", UNIT_OK, 32768},
    {UNIT_COUNT, "32k", UNIT_OK, 32768},
    {UNIT_COUNT, "32K", UNIT_OK, 32768},
    {UNIT_COUNT, "1.5k", UNIT_OK, 1536},
    {UNIT_COUNT, " 2M ", UNIT_OK, 2 * MIB},
    {UNIT_COUNT, "0", UNIT_OK, 0},
    {UNIT_COUNT, "1.5", UNIT_NOT_A_NUMBER, 0},
    {UNIT_COUNT, "", UNIT_NOT_A_NUMBER, 0},
    {UNIT_COUNT, "k", UNIT_NOT_A_NUMBER, 0},
    {UNIT_COUNT, "-5", UNIT_NEGATIVE, 0},
    {UNIT_COUNT, "5e8", UNIT_OK, 500000000},
    {UNIT_COUNT, "2.5E3", UNIT_OK, 2500},
    {UNIT_COUNT, "2.5e0", UNIT_NOT_A_NUMBER, 0},
    {UNIT_COUNT, "5e", UNIT_UNKNOWN_SUFFIX, 0},
    {UNIT_COUNT, "0e99999999999999999999", UNIT_OK, 0},
    {UNIT_COUNT, "1e30", UNIT_TOO_LARGE, 0},
    {UNIT_COUNT, "9223372036854775808", UNIT_OK, UINT64_C(1) << 63},
    {UNIT_COUNT, "18446744073709551616", UNIT_TOO_LARGE, 0},
    {UNIT_COUNT, "99999999999999999999G", UNIT_TOO_LARGE, 0},
    {UNIT_BYTES, "79.15GiB", UNIT_OK, UINT64_C(84986665369)},
    {UNIT_BYTES, "80GB", UNIT_OK, UINT64_C(80000000000)},
    {UNIT_BYTES, "80 GB", UNIT_OK, UINT64_C(80000000000)},
    {UNIT_BYTES, "512", UNIT_OK, 512},
    {UNIT_BYTES, "512B", UNIT_OK, 512},
    {UNIT_BYTES, "80G", UNIT_OK, UINT64_C(80000000000)},
    {UNIT_BYTES, "80Gi", UNIT_UNKNOWN_SUFFIX, 0},
    {UNIT_BYTES, "17179869184GiB", UNIT_TOO_LARGE, 0},
    {UNIT_FLOPS, "989TFLOPS", UNIT_OK, UINT64_C(989000000000000)},
    {UNIT_FLOPS, "2.25PFLOPS", UNIT_OK, UINT64_C(2250000000000000)},
    {UNIT_FLOPS, "989", UNIT_UNKNOWN_SUFFIX, 0},
    {UNIT_SPEED, "4.8TB/s", UNIT_OK, UINT64_C(4800000000000)},
    {UNIT_SPEED, "450GB/s", UNIT_OK, UINT64_C(450000000000)},
};

TEST(units_are_read)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(unit_rows); i++) {
        uint64_t value = 0;
        enum unit_result r = unit_parse(&value, unit_rows[i].kind, str_from(unit_rows[i].text));
        if (r != unit_rows[i].result || value != unit_rows[i].value)
            test_failed(__FILE__, __LINE__, "'%s' gives %d and %llu", unit_rows[i].text, (int)r,
                        (unsigned long long)value);
    }
}

TEST(units_are_printed)
{
    struct buf b = buf_in(test_arena());
    put_bytes(&b, UINT64_C(8190735360) * 2);
    buf_char(&b, '|');
    put_bytes(&b, 414 * MIB);
    buf_char(&b, '|');
    put_bytes(&b, 17);
    buf_char(&b, '|');
    put_grouped(&b, UINT64_C(8190735360));
    buf_char(&b, '|');
    put_grouped(&b, 0);
    buf_char(&b, '|');
    put_grouped(&b, UINT64_MAX);
    buf_char(&b, '|');
    put_tokens(&b, 40960);
    buf_char(&b, '|');
    put_tokens(&b, 1000);
    CHECK_STR(buf_str(&b), "15.26 GiB|414 MiB|17 B|8,190,735,360|0|18,446,744,073,709,551,615|40k|"
                           "1000");
}

TEST(buf_survives_interleaved_growth)
{
    struct arena *a = test_arena();
    struct buf one = buf_in(a), two = buf_in(a);
    for (int i = 0; i < 1000; i++) {
        buf_printf(&one, "%d,", i);
        buf_printf(&two, "%d;", i);
    }
    CHECK(str_starts(buf_str(&one), STR("0,1,2,")));
    CHECK(str_ends(buf_str(&one), STR("998,999,")));
    CHECK(str_ends(buf_str(&two), STR("998;999;")));
}

TEST(text_wraps_at_the_width)
{
    struct buf b = buf_in(test_arena());
    buf_wrapped(&b, STR("one two three four"), 2, 11);
    CHECK_STR(buf_str(&b), "  one two\n  three\n  four\n");
}

TEST(json_is_escaped_and_exact)
{
    struct buf b = buf_in(test_arena());
    struct json_out j = json_out_to(&b);
    json_out_object(&j);
    json_out_field_str(&j, "a\"\\\n\x01", STR("\xC3\xA9\xFF\xED\xA0\x80"));
    json_out_field_u64(&j, "n", UINT64_MAX);
    json_out_key(&j, "list");
    json_out_array(&j);
    json_out_bool(&j, true);
    json_out_null(&j);
    json_out_double(&j, 0.5);
    json_out_double(&j, 1e308 * 10);
    json_out_array_end(&j);
    json_out_key(&j, "empty");
    json_out_object(&j);
    json_out_object_end(&j);
    json_out_object_end(&j);
    json_out_end(&j);
    CHECK_STR(buf_str(&b),
              "{\n  \"a\\\"\\\\\\n\\u0001\": \"\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
              "\xEF\xBF\xBD\",\n"
              "  \"n\": 18446744073709551615,\n  \"list\": [\n    true,\n    null,\n    0.5,\n"
              "    null\n  ],\n  \"empty\": {}\n}\n");
}

static bool checks(const char *text, struct error *e)
{
    struct settings s = settings_in(test_arena());
    *e = (struct error){0};
    return settings_read(&s, str_from(text), '\n', STR("test"), e) && settings_check(&s, e);
}

TEST(settings_are_checked)
{
    struct error e;
    CHECK(checks("model=x\nlayers=2k\ntied=on\n", &e) == false); // 2048 layers are too many
    CHECK(strstr(e.message, "between 1 and 1024"));
    CHECK(checks("model=x\nlayers=28\ntied=yes\n\n", &e));
    CHECK(checks("config.anything=1", &e));
    static const char *const bad[][2] = {
        {"layres=3", "there is no setting 'layres'"},
        {"layers=0", "layers must be between 1 and 1024, not '0'"},
        {"layers=-1", "layers must be between 1 and 1024, not '-1'"},
        {"layers=9223372036854775808", "layers must be between 1 and 1024"},
        {"layers=1e30", "layers must be between 1 and 1024, not '1e30'"},
        {"tied=maybe", "tied must be on or off, not 'maybe'"},
        {"shell=bsh", "shell must be one of bash|zsh|fish, not 'bsh'"},
        {"model=", "model must not be empty"},
        {"nonsense", "'nonsense' is not of the form key=value"},
        {"=x", "'=x' is not of the form key=value"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(bad); i++) {
        if (checks(bad[i][0], &e) || !strstr(e.message, bad[i][1]) || e.code != ERROR_BAD_INPUT)
            test_failed(__FILE__, __LINE__, "'%s' gives '%s'", bad[i][0], e.message);
    }
    checks("layres=3", &e);
    CHECK_STR(str_from(e.hint), "did you mean 'layers'?");
    checks("shell=bsh", &e);
    CHECK_STR(str_from(e.hint), "did you mean 'bash'?");
}

TEST(settings_later_ones_win_and_are_bounded)
{
    struct settings s = settings_in(test_arena());
    struct error e = {0};
    CHECK(settings_read(&s, STR("a=1 b=2 a=3"), ' ', STR_NONE, &e));
    CHECK_STR(settings_find_z(&s, "a")->value, "3");
    CHECK(settings_find_z(&s, "c") == NULL);
    bool ok = true;
    for (int i = 0; ok && i < SETTINGS_MAX + 1; i++)
        ok = settings_add(&s, (struct setting){STR("k"), STR("v"), STR_NONE}, &e);
    CHECK(!ok && e.code == ERROR_BAD_INPUT);
}

TEST(errors_keep_the_first_and_hide_control_characters)
{
    struct error e = {0};
    CHECK(!FAIL(&e, BAD_INPUT, STR("here\033"), "first %s", "\033[2J\n"));
    CHECK(!FAIL(&e, IO, STR("there"), "second"));
    CHECK_STR(str_from(e.message), "first ?[2J?");
    CHECK_STR(str_from(e.where), "here?");
    CHECK_U64((uint64_t)error_exit_status(e.code), 2);
    CHECK_U64((uint64_t)error_exit_status(ERROR_IO), 3);
    CHECK_U64((uint64_t)error_exit_status(ERROR_BUG), 70);
}

// Each character that does more than stand there, as bytes, and how JSON tells it.
static const char *const hidden[][2] = {
    {"\033", "\\u001b"},         {"\r", "\\u000d"},
    {"\x7F", "\\u007f"},         {"\xC2\x80", "\\u0080"},
    {"\xC2\x9B", "\\u009b"},     {"\xD8\x9C", "\\u061c"},
    {"\xE2\x80\x8E", "\\u200e"}, {"\xE2\x80\xA8", "\\u2028"},
    {"\xE2\x80\xAE", "\\u202e"}, {"\xE2\x81\xA6", "\\u2066"},
    {"\xEF\xBB\xBF", "\\ufeff"}, {"\xF3\xA0\x81\x81", "\\udb40\\udc41"},
    {"\xFF", "\xEF\xBF\xBD"},    {"\x9B", "\xEF\xBF\xBD"},
};

TEST(what_steers_a_terminal_is_hidden_by_all_writers)
{
    struct arena *a = test_arena();
    for (ptrdiff_t i = 0; i < COUNT_OF(hidden); i++) {
        struct str text = str_format(a, "a%sb", hidden[i][0]);
        struct error e = {0};
        FAIL(&e, BAD_INPUT, text, "%.*s", STR_ARGS(text));
        CHECK_STR(str_from(e.message), "a?b");
        CHECK_STR(str_from(e.where), "a?b");
        CHECK_STR(str_plain(a, text), "a?b");
        struct buf wrapped = buf_in(a), json = buf_in(a), lines = buf_in(a);
        buf_wrapped(&wrapped, text, 0, 10);
        CHECK_STR(buf_str(&wrapped), "a?b\n");
        struct json_out j = json_out_to(&json);
        json_out_str(&j, text);
        CHECK_STR(buf_str(&json), str_z(a, str_format(a, "\"a%sb\"", hidden[i][1])));
        put_plain_lines(&lines, str_format(a, "\t%.*s\n", STR_ARGS(text)));
        CHECK_STR(buf_str(&lines), "\ta?b\n");
    }
    struct str kept = STR("\xC3\xA9 \xE2\x80\x8B\xF0\x9F\x98\x80 \xC2\xA0");
    CHECK(str_plain(a, kept).p == kept.p && str_plain(a, kept).n == kept.n);
}

TEST(messages_are_cut_at_characters)
{
    struct error e = {0};
    char text[1000];
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xC3\xA9", 3);
    FAIL(&e, BAD_INPUT, STR_NONE, "x%s", text);
    size_t n = strlen(e.message);
    CHECK(n < sizeof e.message && (unsigned char)e.message[n - 1] == 0xA9);
}

static struct str print_table(ptrdiff_t width, bool colour)
{
    static const struct column columns[] = {{"name"},
                                            {"number", .right = true},
                                            {"extra", .priority = 1},
                                            {"remark", .priority = 2, .wraps = true}};
    struct arena *a = test_arena();
    struct table t = table_in(a, columns, COUNT_OF(columns));
    static const char *const cells[] = {
        "one",   "1",     "e", "short",
        "three", "12345", "f", "a remark that is rather long for one line"};
    for (ptrdiff_t i = 0; i < COUNT_OF(cells); i++)
        table_cell_z(&t, cells[i]);
    struct buf b = buf_in(a);
    table_print(&t, &b, &(struct view){width, colour});
    return buf_str(&b);
}

TEST(tables_align_wrap_and_drop)
{
    CHECK_STR(print_table(80, false),
              "name   number  extra  remark\n"
              "one         1  e      short\n"
              "three   12345  f      a remark that is rather long for one line\n");
    CHECK_STR(print_table(50, false), "name   number  extra  remark\n"
                                      "one         1  e      short\n"
                                      "three   12345  f      a remark that is rather long\n"
                                      "                      for one line\n");
    CHECK_STR(print_table(24, false), "name   number  extra\none         1  e\nthree   12345  f\n"
                                      "remark: shown on a wider\nterminal and by --json\n");
    CHECK(str_starts(print_table(80, true), STR("\033[1mname\033[0m")));
}
