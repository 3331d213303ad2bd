// The writers of documents, read back by libyaml and jansson, and the tables behind targets.
#include "tests/t.h"
#include "core/emit/emit.h"
#include "host/json_in.h"
#include "host/yaml_in.h"

// Texts that a careless writer loses: words and numbers of YAML 1.1, marks, spaces, line feeds.
static const char *const odd_texts[] = {
    "",
    "plain",
    "no",
    "Yes",
    "ON",
    "null",
    "~",
    "1e3",
    "0x10",
    "12:30",
    "1_000",
    ".5",
    "+1",
    "-",
    "2026-01-1",
    "a: b",
    "a #b",
    "#x",
    "- a",
    "[a]",
    "{a: b}",
    "\"q\"",
    "it's",
    "back\\slash",
    "tab\there",
    "line\nfeed",
    " leading",
    "trailing ",
    "100%",
    "@at",
    "`tick",
    "!tag",
    "&anchor",
    "*alias",
    "|",
    ">",
    "?",
    "a/b.c-d_e",
    "Qwen/Qwen3-8B",
    "\xC3\xA9t\xC3\xA9",
    "\xF0\x9F\x98\x80",
    "\xC2\x85next",
    "\xE2\x80\xA8sep",
};

static struct node *document_of(struct arena *a)
{
    struct node *root = document_in(a);
    root->note = STR("a head\nof two lines");
    for (ptrdiff_t i = 0; i < COUNT_OF(odd_texts); i++) {
        struct str path = str_format(a, "texts.%d.value", (int)i);
        struct node *n = document_at(root, a, path);
        n->kind = NODE_TEXT;
        n->value = str_from(odd_texts[i]);
        n->note = str_from(odd_texts[i]);
    }
    return root;
}

static void check_texts(const struct settings *s)
{
    struct arena *a = s->arena;
    for (ptrdiff_t i = 0; i < COUNT_OF(odd_texts); i++) {
        const struct setting *item = settings_find(s, str_format(a, "texts.%d.value", (int)i));
        CHECK(item);
        if (item)
            CHECK_STR(item->value, odd_texts[i]);
    }
}

TEST(odd_texts_survive_yaml)
{
    struct arena *a = test_arena();
    struct buf out = buf_in(a);
    struct settings s = settings_in(a);
    struct error e = {0};
    document_yaml(&out, document_of(a));
    CHECK(yaml_flatten(&s, buf_str(&out), STR("test.yaml"), &e));
    CHECK_STR(str_from(e.message), "");
    check_texts(&s);
}

TEST(odd_texts_survive_json)
{
    struct arena *a = test_arena();
    struct buf out = buf_in(a);
    struct settings s = settings_in(a);
    struct error e = {0};
    document_json(&out, document_of(a));
    CHECK(json_flatten(&s, buf_str(&out), STR_NONE, STR("test.json"), &e));
    CHECK_STR(str_from(e.message), "");
    check_texts(&s);
}

TEST(every_byte_survives_yaml)
{
    struct arena *a = test_arena();
    for (int byte = 1; byte < 128; byte++) {
        struct settings s = settings_in(a);
        struct error e = {0};
        struct buf out = buf_in(a);
        char text[] = {'a', (char)byte, 'b', 0};
        struct node *root = document_in(a), *n = document_at(root, a, STR("key"));
        n->kind = NODE_TEXT;
        n->value = str_from(text);
        n->note = str_from(text);
        document_yaml(&out, root);
        CHECK(yaml_flatten(&s, buf_str(&out), STR("test.yaml"), &e));
        if (s.count == 1)
            CHECK_STR(s.items[0].value, text);
        else
            test_failed(__FILE__, __LINE__, "byte %d is lost", byte);
    }
}

TEST(a_document_as_it_is_written)
{
    struct arena *a = test_arena();
    struct buf yaml = buf_in(a), json = buf_in(a);
    struct node *root = document_in(a);
    static const struct {
        const char *path;
        enum node_kind kind;
        const char *value, *note;
    } rows[] = {
        {"name", NODE_TEXT, "no", "quoted"},
        {"nested.count", NODE_LITERAL, "3", NULL},
        {"nested.list.0.a", NODE_LITERAL, "1", "first"},
        {"nested.list.0.b", NODE_LITERAL, "true", "inside"},
        {"nested.list.1.a", NODE_LITERAL, "2", NULL},
        {"words.0", NODE_TEXT, "x", NULL},
        {"empty", NODE_MAP, "", NULL},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct node *n = document_at(root, a, str_from(rows[i].path));
        n->kind = rows[i].kind;
        n->value = str_from(rows[i].value);
        n->note = str_from(rows[i].note);
    }
    document_yaml(&yaml, root);
    CHECK_STR(buf_str(&yaml), "# quoted\n"
                              "name: \"no\"\n"
                              "nested:\n"
                              "  count: 3\n"
                              "  list:\n"
                              "    # first\n"
                              "    - a: 1\n"
                              "      # inside\n"
                              "      b: true\n"
                              "    - a: 2\n"
                              "words:\n"
                              "  - x\n"
                              "empty: {}\n");
    document_json(&json, root);
    CHECK_STR(buf_str(&json), "{\n  \"name\": \"no\",\n  \"nested\": {\n    \"count\": 3,\n"
                              "    \"list\": [\n      {\n        \"a\": 1,\n        \"b\": true\n"
                              "      },\n      {\n        \"a\": 2\n      }\n    ]\n  },\n"
                              "  \"words\": [\n    \"x\"\n  ],\n  \"empty\": {}\n}\n");
}

TEST(facts_in_templates)
{
    struct arena *a = test_arena();
    struct job *j = NEW(a, struct job, 1);
    j->arena = a;
    job_fact(j, "path", STR("it's a\nfile"));
    job_fact(j, "word", STR("a/b-c.d"));
    CHECK_STR(job_expand(j, STR("x @word@ y@z \"${a[@]}\""), EXPAND_SHELL),
              "x a/b-c.d y@z \"${a[@]}\"");
    CHECK_STR(job_expand(j, STR("@path@"), EXPAND_SHELL), "'it'\\''s a\nfile'");
    CHECK_STR(job_expand(j, STR("# @path@"), EXPAND_NOTE), "# it's a file");
    CHECK_STR(job_expand(j, STR("@path@"), EXPAND_PLAIN), "it's a\nfile");
}

static bool emits(struct emit_files *files, struct arena *a, const char *request, struct error *e)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct job *j = NEW(a, struct job, 1);
    *s = settings_in(a);
    if (!settings_read(s, str_from(request), ' ', STR("test"), e) || !settings_check(s, e) ||
        !job_from_settings(j, a, s, e))
        return false;
    job_fact(j, "predicted", STR("predicted"));
    return emit_check(j, e) && emit_files(files, j, e);
}

// Every YAML and JSON of every combination is a document with unique keys.
TEST(documents_of_every_combination_can_be_read)
{
    static const char *const targets[] = {"accelerate", "deepspeed", "trl", "trinity", "verl"};
    static const char *const machines[] = {"H200", "8xH100-80G", "2x8xH100-80G"};
    static const char *const variants[] = {
        "",
        "strategy=fsdp1",
        "strategy=ddp precision=autocast",
        "strategy=zero1 offload=optimizer",
        "strategy=zero2",
        "strategy=zero3 offload=all",
        "strategy=zero3 offload=all nvme=/nvme",
        "cp=4 context=256k",
        "sp=2",
        "strategy=zero3 sp=2",
        "sp=4 offload=all expandable=on",
        "task=dpo dataset=a.jsonl",
        "task=reward",
        "task=grpo",
        "task=capacity verl=0.5 offload=all context=64k",
        "task=opd teacher=Qwen3-32B rollout=1",
        "checkpointing=off reshard=off optimizer=adamw-fused accum=4",
        "loss=chunked:256",
    };
    int written = 0;
    for (ptrdiff_t t = 0; t < COUNT_OF(targets); t++) {
        for (ptrdiff_t i = 0; i < COUNT_OF(machines) * COUNT_OF(variants); i++) {
            struct arena *a = test_arena();
            struct emit_files files;
            struct error e = {0};
            const char *variant = variants[i % COUNT_OF(variants)];
            struct str request =
                str_format(a, "for=%s model=Qwen3-8B gpu=%s%s %s", targets[t],
                           machines[i / COUNT_OF(variants)],
                           str_cut(str_from(variant), 'x').tail.n ? "" : " context=8k", variant);
            if (!emits(&files, a, str_z(a, request), &e)) {
                CHECK(e.code == ERROR_BAD_INPUT && e.message[0] && e.where[0]);
                continue;
            }
            written++;
            for (ptrdiff_t f = 0; f < files.count; f++) {
                const struct emit_file *file = &files.items[f];
                struct settings s = settings_in(files.arena);
                if (str_ends(file->name, STR(".yaml")) &&
                    !yaml_flatten(&s, file->content, file->name, &e))
                    test_failed(__FILE__, __LINE__, "%.*s: %s", STR_ARGS(request), e.message);
                if (str_ends(file->name, STR(".json")) &&
                    !json_flatten(&s, file->content, STR_NONE, file->name, &e))
                    test_failed(__FILE__, __LINE__, "%.*s: %s", STR_ARGS(request), e.message);
            }
        }
    }
    CHECK(written > 60);
}

TEST(what_frameworks_cannot_do_is_refused)
{
    static const char *const rows[][2] = {
        {"for=accelerate sp=2", "Accelerate runs Ulysses through DeepSpeed only"},
        {"for=accelerate cp=2 strategy=fsdp1", "under fsdp2 only"},
        {"for=accelerate sp=3", "sp 3 does not divide the 8 GPUs"},
        {"for=accelerate loss=chunked:256", "--for trl has a chunked one"},
        {"for=accelerate offload=optimizer", "--offload all"},
        {"for=accelerate strategy=zero2 offload=all", "stage 3 only"},
        {"for=accelerate strategy=zero3 offload=all nvme=/x", "--for deepspeed"},
        {"for=accelerate tp=2", "tp says nothing to accelerate"},
        {"for=accelerate strategy=ddp reshard=off", "reshard is a setting of fsdp1 and fsdp2"},
        {"for=deepspeed strategy=fsdp2", "zero1, zero2 and zero3"},
        {"for=trl loss=chunked:512", "256 tokens"},
        {"for=trl task=grpo strategy=fsdp2 cp=2", "for sft only"},
        {"for=trl task=opd", "no opd"},
        {"for=trinity cp=2", "--sp"},
        {"for=trinity strategy=zero3", "fsdp1 or fsdp2"},
        {"for=trinity task=opd", "opd needs a teacher"},
        {"for=trinity task=opd teacher=gemma-2-9b", "must be the same"},
        {"for=verl expandable=on", "verl turns expandable segments on"},
        {"for=slime strategy=fsdp2 dataset=x", "slime trains with Megatron"},
        {"for=slime expandable=on dataset=x", "--rollout N"},
        {"for=slime", "--dataset FILE"},
        {"for=accelerate dataset=-x", "must not begin with a dash"},
        {"for=accelerate teacher=Qwen3-8B", "teacher says nothing to accelerate"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct emit_files files;
        struct error e = {0};
        struct str request =
            str_format(a, "model=Qwen3-8B gpu=8xH100-80G context=8k %s", rows[i][0]);
        bool ok = emits(&files, a, str_z(a, request), &e);
        struct str message = str_from(e.message), part = str_from(rows[i][1]);
        bool said = false;
        for (ptrdiff_t at = 0; at + part.n <= message.n; at++)
            said |= str_equal(str_slice(message, at, at + part.n), part);
        if (ok || !said || e.code != ERROR_BAD_INPUT)
            test_failed(__FILE__, __LINE__, "'%s' says '%s'", rows[i][0], e.message);
    }
}
