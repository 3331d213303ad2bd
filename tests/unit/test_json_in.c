// JSON documents as flat settings, and the sentences for documents that are refused.
#include "host/formats/json_in.h"

#include <string.h>

#include "tests/support/t.h"

struct result {
    struct settings settings;
    struct error error;
    bool ok;
};

static struct result flatten(struct str text)
{
    struct result r = {.settings = settings_in(test_arena())};
    r.ok = json_flatten(&r.settings, text, STR("p."), STR("config.json"), &r.error);
    return r;
}

static struct str value(const struct result *r, const char *key)
{
    const struct setting *found = settings_find_z(&r->settings, key);
    return found ? found->value : STR("(absent)");
}

static void check_refused(struct str text, const char *where, const char *message)
{
    struct result r = flatten(text);
    CHECK(!r.ok);
    CHECK_U64(r.error.code, ERROR_BAD_INPUT);
    CHECK_STR(str_from(r.error.where), where);
    CHECK_STR(str_from(r.error.message), message);
    CHECK_U64((uint64_t)r.settings.count, 0);
}

TEST(json_values_of_each_type)
{
    struct result r = flatten(STR("{\"a\": {\"b\": [1, true, {\"c\": \"x\"}]}, \"t\": false,"
                                  "\"n\": null, \"eo\": {}, \"ea\": [[], {}], \"s\": \"\"}"));
    CHECK(r.ok);
    CHECK_STR(value(&r, "p.a.b.0"), "1");
    CHECK_STR(value(&r, "p.a.b.1"), "true");
    CHECK_STR(value(&r, "p.a.b.2.c"), "x");
    CHECK_STR(value(&r, "p.t"), "false");
    CHECK_STR(value(&r, "p.s"), "");
    CHECK_STR(value(&r, "p.n"), "null");
    CHECK_STR(value(&r, "p.ea.0"), "[]");
    CHECK_U64((uint64_t)r.settings.count, 7);
    CHECK_STR(r.settings.items[0].where, "config.json");
}

TEST(json_numbers_are_exact)
{
    struct result r = flatten(STR("{\"i\": 9223372036854775807, \"m\": -9223372036854775808,"
                                  "\"f\": 10000.0, \"e\": 1e6, \"r\": 0.5, \"z\": -0.0,"
                                  "\"l\": 9007199254740993.0, \"b\": 1e30}"));
    CHECK(r.ok);
    CHECK_STR(value(&r, "p.i"), "9223372036854775807");
    CHECK_STR(value(&r, "p.m"), "-9223372036854775808");
    CHECK_STR(value(&r, "p.f"), "10000");
    CHECK_STR(value(&r, "p.e"), "1000000");
    CHECK_STR(value(&r, "p.r"), "0.5");
    CHECK_STR(value(&r, "p.z"), "0");
    CHECK_STR(value(&r, "p.l"), "9007199254740992");
    CHECK_STR(value(&r, "p.b"), "1e+30");
}

TEST(json_integer_beyond_64_bits_leaves_the_others_exact)
{
    struct result r = flatten(STR("{\"big\": 1000000000000000019884624838656, \"small\": 32000,"
                                  "\"two63\": 9223372036854775808, \"f\": 0.25}"));
    CHECK(r.ok);
    CHECK_STR(value(&r, "p.small"), "32000");
    CHECK_STR(value(&r, "p.f"), "0.25");
    CHECK_STR(value(&r, "p.two63"), "9.2233720368547758e+18");
}

TEST(json_real_that_overflows_is_refused)
{
    check_refused(STR("{\"a\": 1e999}"), "config.json:1:11",
                  "this is not valid JSON: real number overflow near '1e999'");
}

TEST(json_python_numbers_are_absent)
{
    struct result r = flatten(STR("{\"limit\": [0.0, Infinity, -Infinity, NaN, 7],"
                                  "\"text\": \"NaN \\\" Infinity\"}"));
    CHECK(r.ok);
    CHECK_STR(value(&r, "p.limit.0"), "0");
    CHECK_STR(value(&r, "p.limit.1"), "(absent)");
    CHECK_STR(value(&r, "p.limit.4"), "7");
    CHECK_STR(value(&r, "p.text"), "NaN \" Infinity");
    check_refused(STR("{\"a\": NaNny}"), "config.json:1:11",
                  "this is not valid JSON: '}' expected near 'ny'");
}

TEST(json_syntax_errors_have_a_place)
{
    check_refused(STR("{\"a\": 1,\n \"b\": [1, 2"), "config.json:2:11",
                  "this is not valid JSON: ']' expected near end of file");
    check_refused(STR("{\"a\": 1, \"a\": 2}"), "config.json:1:12",
                  "this is not valid JSON: duplicate object key near '\"a\"'");
    check_refused(STR(""), "config.json:1:0",
                  "this is not valid JSON: '[' or '{' expected near end of file");
    check_refused(STR("[1]"), "config.json", "this is not a JSON object");
    check_refused(STR("{\"\": 1}"), "config.json", "a key is empty");
    check_refused(STR("{\"a\": \"\xff\"}"), "config.json:1:7",
                  "this is not valid JSON: unable to decode byte 0xff near '\"'");
}

TEST(json_nul_is_never_cut_silently)
{
    CHECK(!flatten(STR("{\"a\": \"x\\u0000y\"}")).ok);
    CHECK(!flatten(STR("{\"a\\u0000b\": 1}")).ok);
    CHECK(!flatten(STR("{\"a\": 1}\0{")).ok);
}

static struct str nested(ptrdiff_t levels, const char *open, const char *close)
{
    static char block[1 << 20];
    ptrdiff_t n = 0, width = (ptrdiff_t)strlen(open);
    for (ptrdiff_t i = 0; i < levels; i++, n += width)
        memcpy(block + n, open, (size_t)width);
    block[n++] = '1';
    for (ptrdiff_t i = 0; i < levels; i++)
        block[n++] = close[0];
    return (struct str){block, n};
}

TEST(json_nesting_is_bounded)
{
    struct result r = flatten(nested(32, "{\"a\":", "}"));
    CHECK(r.ok);
    CHECK_U64((uint64_t)r.settings.count, 1);
    check_refused(nested(33, "{\"a\":", "}"), "config.json",
                  "this is nested deeper than 32 levels");
    check_refused(nested(100000, "{\"a\":", "}"), "config.json:1:10241",
                  "this is nested deeper than 32 levels");
    check_refused(nested(100000, "[", "]"), "config.json:1:2049",
                  "this is nested deeper than 32 levels");
}

TEST(json_long_key_is_refused)
{
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    buf_put_z(&text, "{\"");
    buf_repeat(&text, 'k', 1001);
    buf_put_z(&text, "\": 1}");
    struct settings s = settings_in(a);
    struct error e = {0};
    CHECK(!json_flatten(&s, buf_str(&text), STR_NONE, STR("config.json"), &e));
    CHECK_STR(str_from(e.message), "a key is longer than 1000 bytes");
}

TEST(json_too_many_values_leave_the_list_as_it_was)
{
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    buf_put_z(&text, "{\"a\": [0");
    for (int i = 0; i < SETTINGS_MAX; i++)
        buf_put_z(&text, ",1");
    buf_put_z(&text, "]}");
    struct settings s = settings_in(a);
    struct error e = {0};
    struct setting first = {STR("k"), STR("v"), STR("--k")};
    CHECK(settings_add(&s, first, &e));
    CHECK(!json_flatten(&s, buf_str(&text), STR_NONE, STR("config.json"), &e));
    CHECK_U64((uint64_t)s.count, 1);
    CHECK_STR(str_from(e.message), "more than 20000 values are given");
}
