// YAML documents as flat settings with places, and the sentences for documents that are refused.
#include "host/formats/yaml_in.h"

#include <string.h>

#include "core/base/buf.h"
#include "tests/support/t.h"

struct result {
    struct settings settings;
    struct error error;
    bool ok;
};

static struct result flatten(struct str text)
{
    struct result r = {.settings = settings_in(test_arena())};
    r.ok = yaml_flatten(&r.settings, text, STR("r.yaml"), &r.error);
    return r;
}

static struct setting get(const struct result *r, const char *key)
{
    const struct setting *found = settings_find_z(&r->settings, key);
    return found ? *found : (struct setting){STR(""), STR("(absent)"), STR("(nowhere)")};
}

static struct result refused(struct str text, const char *where, const char *message)
{
    struct result r = flatten(text);
    CHECK(!r.ok);
    CHECK_U64(r.error.code, ERROR_BAD_INPUT);
    CHECK_STR(str_from(r.error.where), where);
    CHECK_STR(str_from(r.error.message), message);
    CHECK_U64((uint64_t)r.settings.count, 0);
    return r;
}

TEST(yaml_values_have_places)
{
    struct result r = flatten(STR("# a request\nmodel: org/name\n"
                                  "train:\n  batch: 4\n  tags:\n  - x\n  - {deep: 'y'}\n"
                                  "checkpointing: yes\n"));
    CHECK(r.ok);
    CHECK_STR(get(&r, "model").value, "org/name");
    CHECK_STR(get(&r, "model").where, "r.yaml:2:8");
    CHECK_STR(get(&r, "train.batch").value, "4");
    CHECK_STR(get(&r, "train.batch").where, "r.yaml:4:10");
    CHECK_STR(get(&r, "train.tags.0").value, "x");
    CHECK_STR(get(&r, "train.tags.1.deep").value, "y");
    CHECK_STR(get(&r, "train.tags.1.deep").where, "r.yaml:7:12");
    CHECK_STR(get(&r, "checkpointing").value, "yes");
    CHECK_U64((uint64_t)r.settings.count, 5);
}

TEST(yaml_absent_values)
{
    struct result r =
        flatten(STR("a: ~\nb: null\nc:\nd: ''\ne: 'null'\nf: []\ng: {}\nh: [~, 1]\n"));
    CHECK(r.ok);
    CHECK_U64((uint64_t)r.settings.count, 3);
    CHECK_STR(get(&r, "d").value, "");
    CHECK_STR(get(&r, "e").value, "null");
    CHECK_STR(get(&r, "h.1").value, "1");
}

TEST(yaml_empty_documents)
{
    CHECK(flatten(STR("")).ok);
    CHECK(flatten(STR_NONE).ok);
    CHECK(flatten(STR("# only a comment\n")).ok);
    CHECK(flatten(STR("---\n...\n")).ok);
}

TEST(yaml_features_that_are_not_taken)
{
    refused(STR("a: &x 1\nb: *x\n"), "r.yaml:1:4", "anchors such as '&x' are not accepted");
    refused(STR("b: *x\n"), "r.yaml:1:4", "aliases such as '*x' are not accepted");
    refused(STR("a: &x [1]\n"), "r.yaml:1:4", "anchors such as '&x' are not accepted");
    refused(STR("a: !!int 1\n"), "r.yaml:1:4",
            "tags such as 'tag:yaml.org,2002:int' are not accepted");
    refused(STR("--- !mine\na: 1\n"), "r.yaml:1:5", "tags such as '!mine' are not accepted");
    refused(STR("a: 1\n---\nb: 2\n"), "r.yaml:2:1", "there is more than one document in this file");
    refused(STR("- 1\n- 2\n"), "r.yaml:1:1",
            "the top level must be a mapping of 'key: value' lines");
    refused(STR("words\n"), "r.yaml:1:1", "the top level must be a mapping of 'key: value' lines");
    refused(STR("? [a, b]\n: 1\n"), "r.yaml:1:3", "a key must be text, not a list or a mapping");
    refused(STR("'': 1\n"), "r.yaml:1:1", "a key is empty");
    refused(STR("a: \"x\\0y\"\n"), "r.yaml:1:4", "this value holds a NUL character");
    refused(STR("\"x\\0y\": 1\n"), "r.yaml:1:1", "a key holds a NUL character");
}

TEST(yaml_alias_bomb_is_refused_at_its_first_anchor)
{
    refused(STR("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"),
            "r.yaml:1:4", "anchors such as '&a' are not accepted");
}

TEST(yaml_duplicates)
{
    refused(STR("a: 1\nb: 2\na: 3\n"), "r.yaml:3:4", "'a' is given twice, first at r.yaml:1:4");
    refused(STR("b: 1\nb: 2\na: 3\na: 4\n"), "r.yaml:2:4",
            "'b' is given twice, first at r.yaml:1:4");
    refused(STR("a: ~\na: 3\n"), "r.yaml:2:4", "'a' is given twice, first at r.yaml:1:4");
    refused(STR("a: {}\na: {b: 1}\n"), "r.yaml:2:4", "'a' is given twice, first at r.yaml:1:4");
    refused(STR("a: {b: 1}\na.b: 2\n"), "r.yaml:2:6", "'a.b' is given twice, first at r.yaml:1:8");
    refused(STR("a: [1]\na.0: 2\n"), "r.yaml:2:6", "'a.0' is given twice, first at r.yaml:1:5");
    CHECK(flatten(STR("a: {x: 1}\nb: {x: 1}\n")).ok);
}

TEST(yaml_syntax_errors)
{
    struct result r =
        refused(STR("a: 1\n\tb: 2\n"), "r.yaml:2:1",
                "this is not valid YAML: found a tab character that violates indentation");
    CHECK_STR(str_from(r.error.hint), "YAML is indented with spaces, not tabs");
    r = refused(STR("a: [1, 2\n"), "r.yaml:2:1",
                "this is not valid YAML: did not find expected ',' or ']'");
    CHECK_STR(str_from(r.error.hint), "");
    refused(STR("a: 'x\n"), "r.yaml:2:1", "this is not valid YAML: found unexpected end of stream");
    refused(STR("a: \xff\n"), "r.yaml",
            "this is not valid YAML: invalid leading UTF-8 octet at byte 3");
}

static struct str nested(struct arena *a, ptrdiff_t levels)
{
    struct buf text = buf_in(a);
    buf_put_z(&text, "a: ");
    buf_repeat(&text, '[', levels);
    buf_put_z(&text, "1");
    buf_repeat(&text, ']', levels);
    return buf_str(&text);
}

TEST(yaml_nesting_is_bounded)
{
    static char block[1 << 20];
    struct arena texts = arena_over(block, sizeof block, NULL);
    struct result r = flatten(nested(&texts, 31));
    CHECK(r.ok);
    CHECK_U64((uint64_t)r.settings.count, 1);
    refused(nested(&texts, 32), "r.yaml:1:35", "this is nested deeper than 32 levels");
    refused(nested(&texts, 100000), "r.yaml:1:35", "this is nested deeper than 32 levels");
}

TEST(yaml_amplification_by_a_long_key_is_refused)
{
    static char block[1 << 20];
    struct arena texts = arena_over(block, sizeof block, NULL);
    struct buf text = buf_in(&texts);
    buf_repeat(&text, 'k', 990);
    buf_put_z(&text, ": [");
    for (int i = 0; i < SETTINGS_MAX + 1; i++)
        buf_put_z(&text, "~,");
    buf_put_z(&text, "]\n");
    struct result r = flatten(buf_str(&text));
    CHECK(!r.ok);
    CHECK_STR(str_from(r.error.message), "more than 20000 values are given");
    text.n = 0;
    buf_put_z(&text, "? ");
    buf_repeat(&text, 'k', 1001);
    buf_put_z(&text, "\n: 1\n");
    refused(buf_str(&text), "r.yaml:1:3", "a key is longer than 1000 bytes");
}
