// How much work outside bytes can ask for. What is linked here is compiled so that every branch
// taken counts a step, and every sixteen bytes that memchr passes another: the counts are the same
// on each machine. Each byte must cost a constant, whatever the bytes around it are, and so must
// the memory for it.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/base/buf.h"
#include "core/doctor/doctor.h"
#include "core/foreign/foreign.h"
#include "core/replay/snapshot.h"
#include "core/trace/pickle.h"
#include "host/files/file.h"
#include "host/formats/document.h"
#include "host/formats/json_tree.h"
#include "host/formats/safetensors.h"
#include "host/formats/variables.h"
#include "tests/support/t.h"
#include "tests/support/temp.h"

void __sanitizer_cov_trace_pc(void);
void *counted_memchr(const void *text, int byte, size_t n);

void *counted_realloc(void *block, size_t n);

// The settings that exist: one, which takes a list.
const struct setting_def *setting_def_next(const struct setting_def *def)
{
    static const struct setting_def only = {.name = "context", .kind = SETTING_TEXT, .list = true};
    return def ? NULL : &only;
}

static uint64_t steps;
static size_t taken; // from the heap: the largest block, and what jansson was given

void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

void *counted_memchr(const void *text, int byte, size_t n)
{
    union {
        const void *kept;
        void *found;
    } p = {memchr(text, byte, n)};
    steps += 1 + (p.kept ? (size_t)((const char *)p.kept - (const char *)text) : n) / 16;
    return p.found;
}

void *counted_realloc(void *block, size_t n)
{
    taken = n > taken ? n : taken;
    return realloc(block, n);
}

static void *counted_malloc(size_t n)
{
    taken += n;
    return malloc(n);
}

// ------------------------------------------------------------------ logs

enum { LOG_BYTES = 1 << 20, LOG_STEPS_A_BYTE = 400 };

// Of a log that begins with `first` and goes on with `again` to its end.
static uint64_t steps_of_log(const char *first, const char *again)
{
    struct arena *a = test_arena();
    struct buf log = buf_in(a);
    buf_put_z(&log, first);
    while (log.n < LOG_BYTES)
        buf_put_z(&log, again);
    struct doctor *d = doctor_new(a);
    steps = 0;
    doctor_feed(d, buf_str(&log));
    doctor_end(d, a);
    return steps / LOG_BYTES;
}

TEST(every_byte_of_a_log_costs_a_constant)
{
    static const struct {
        const char *first, *again;
    } logs[] = {
        {"", "{'loss': 1.2, 'grad_norm': 4.742300987243652}\n"},
        {"", "NVRM: Xid "},                // needs what no line has
        {"", "NVRM: Xid \n"},              // a line each
        {"", "OOMKilled"},                 // no spaces between
        {"", "AssertionError"},            // names of exceptions
        {"", "'OOMKilled' "},              // quotes
        {"key='", "OOMKilled "},           // one quote, never closed
        {"`", "OOMKilled "},               // and one that is
        {"", "<OOMKilled\n"},              // marks of turns
        {"<|im_start|>\n", "OOMKilled\n"}, // a turn that does not end
        {"", "<|im_start|>\nOOMKilled\n"}, // turns that do not end
        {"", "out of memory "},            // the anchor of most rows
        {"", "out of memory\r"},           // lines that carriage returns end
        {"", "| 1/2 ["},                   // bars without a percentage
        {"Loading 1%|", "| 1/2 ["},        // and with one
        {"OOMKilled 1%|", "| 1/2 [\n"},    //
        {"", "OOMKilled 1B1B1B1B1B1B1B1B1B1B1B1B1B1B1B1B1B1B1B "}, // sizes
        {"", "Traceback (most recent call last)"},
        {"", "Traceback (most recent call last)\n"},
        {"", "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9 Traceback (most recent call last)\n"
             "1,3,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9   File \"a\"\n"},
        {"Traceback (most recent call last)\n", "  File \"\", line 1, in t\n"}, // frames
        {"", "Traceback (most recent call last)\n  File \"\", line 1, in step\nE: \n"},
        {"", "Loading weights: 1%| | 1/2 [\n"},          // phases
        {"", "Loading weights: "},                       //
        {"", "  Num examples = 1,1,1"},                  // numbers of a trainer
        {"", " 1%| | 1/2 [\n 1%| | 1/3 [\nOOMKilled\n"}, // bars inside of bars
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(logs); i++) {
        uint64_t cost = steps_of_log(logs[i].first, logs[i].again);
        if (cost > LOG_STEPS_A_BYTE)
            test_failed(__FILE__, __LINE__, "%llu steps a byte of '%s' and '%s' again and again",
                        (unsigned long long)cost, logs[i].first, logs[i].again);
    }
}

// ------------------------------------------------------------------ snapshots

static void put_text(struct buf *b, const char *text)
{
    struct str s = str_from(text);
    buf_put(b, (struct str){"X", 1});
    for (int i = 0; i < 4; i++)
        buf_char(b, (char)(s.n >> 8 * i));
    buf_put(b, s);
}

// One event with very many keys, named again and again.
TEST(every_byte_of_a_pickle_costs_a_constant)
{
    enum { MANY = 5000 };
    struct arena *a = test_arena();
    struct buf pickle = buf_in(a);
    buf_put_z(&pickle, "\x80\x04}(");
    put_text(&pickle, "device_traces");
    buf_put_z(&pickle, "](](}\x94(");
    put_text(&pickle, "action");
    put_text(&pickle, "snapshot");
    put_text(&pickle, "size");
    buf_put(&pickle, (struct str){"K\1", 2});
    put_text(&pickle, "stream");
    buf_put(&pickle, (struct str){"K\0", 2});
    for (int i = 0; i < MANY; i++)
        buf_put(&pickle, (struct str){"K\1N", 3});
    buf_char(&pickle, 'u');
    for (int i = 0; i < MANY; i++)
        buf_put(&pickle, (struct str){"h\0", 2});
    buf_put_z(&pickle, "eeu.");
    struct value root;
    struct snapshot s;
    struct error e = {0};
    steps = 0;
    CHECK(pickle_parse(&root, a, buf_str(&pickle), STR("p"), &e));
    CHECK(!snapshot_read(&s, a, &root, STR("p"), &e));
    CHECK(steps < (uint64_t)pickle.n * 100);
}

// ------------------------------------------------------------------ model folders

TEST(every_byte_of_an_index_costs_a_constant)
{
    enum { FILES = 4000, TENSORS = 5 * FILES };
    struct arena *a = test_arena();
    struct str folder = temp_folder(a);
    struct buf index = buf_in(a);
    buf_put_z(&index, "{\"weight_map\": {");
    for (int i = 0; i < TENSORS; i++)
        buf_printf(&index, "%s\"t%d\": \"f%d\"", i ? ", " : "", i, i % FILES);
    buf_put_z(&index, "}}");
    struct weights w;
    bool found;
    struct error e = {0};
    struct str path = path_join(a, folder, STR("model.safetensors.index.json"));
    CHECK(file_write(*a, path, buf_str(&index), FILE_REPLACE, &e));
    steps = 0;
    CHECK(weights_of_folder(&w, &found, *a, folder, &e));
    CHECK_U64(w.missing_files, FILES);
    CHECK(steps < (uint64_t)index.n * 100);
}

// ------------------------------------------------------------------ JSON

// Bytes of memory that a byte of a document takes which begins with `first`, says `again` again and
// again, and ends with `last`.
static size_t memory_of_json(const char *first, const char *again, const char *last)
{
    enum { TEXT_BYTES = 1 << 20 };
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    struct value root;
    struct error e = {0};
    buf_put_z(&text, first);
    while (text.n < TEXT_BYTES)
        buf_put_z(&text, again);
    buf_put_z(&text, last);
    const char *before = a->begin;
    taken = 0;
    json_set_alloc_funcs(counted_malloc, free);
    CHECK(json_tree(&root, a, buf_str(&text), STR("f"), &e));
    json_set_alloc_funcs(malloc, free);
    return ((size_t)(a->begin - before) + taken) / TEXT_BYTES;
}

TEST(every_byte_of_json_takes_little_memory)
{
    enum {
        SNAPSHOT_MOST = 6,
        ANYTHING_MOST = 24
    }; // a value of two bytes takes sixteen, and a stack
    CHECK(memory_of_json("{\"device_traces\": [[",
                         "{\"action\": \"alloc\", \"addr\": 140463145320448, \"size\": 33554432, "
                         "\"stream\": 0, \"time_us\": 1731660000000000}, ",
                         "{}]]}") <= SNAPSHOT_MOST);
    CHECK(memory_of_json("[", "0,", "0]") <= ANYTHING_MOST);
    CHECK(memory_of_json("[", "[],", "0]") <= ANYTHING_MOST);
    CHECK(memory_of_json("[", "\"\\n\",", "0]") <= ANYTHING_MOST);
    CHECK(memory_of_json("{\"\":0", ",\"\":0", "}") <= ANYTHING_MOST);
}

// ------------------------------------------------------------------ request files

enum { FILE_BYTES = 200000 };

static struct str repeated(struct arena *a, const char *first, const char *again)
{
    struct buf text = buf_in(a);
    buf_put_z(&text, first);
    while (text.n < FILE_BYTES)
        buf_put_z(&text, again);
    return buf_str(&text);
}

TEST(every_byte_of_a_script_costs_a_constant)
{
    enum { STEPS_A_BYTE = 3000, MEMORY_A_BYTE = 100 }; // looked up among five hundred variables
    static const struct {
        const char *first, *again;
    } scripts[] = {
        {"", "a\n"},
        {"", "A=$A$A\n"},
        {"", "$ "},
        {"", "${"},
        {"", "B=$A$A$A$A A=$B$B$B$B\n"},
        {"trl sft --model_name_or_path x ", "--a${A} $B "},
        {"a.py --model_name_or_path x ", "y "},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(scripts); i++) {
        struct arena *a = test_arena();
        struct settings s = settings_in(a);
        struct error e = {0};
        struct str text = repeated(a, scripts[i].first, scripts[i].again);
        const char *before = a->begin;
        steps = 0;
        CHECK(script_flatten(&s, text, STR("f.sh"), &e));
        CHECK(steps < (uint64_t)text.n * STEPS_A_BYTE);
        CHECK(a->begin - before < text.n * MEMORY_A_BYTE);
    }
}

TEST(a_script_sets_no_more_than_can_be_looked_up)
{
    struct arena *a = test_arena();
    struct settings s = settings_in(a), t = settings_in(a);
    struct error e = {0};
    struct buf variables = buf_in(a), values = buf_in(a);
    for (int i = 0; i < 5000; i++)
        buf_printf(&variables, "v%d=1\n", i);
    CHECK(!script_flatten(&s, buf_str(&variables), STR("f.sh"), &e));
    CHECK_STR(str_from(e.message), "more than 500 variables are set");
    for (int i = 0; i < 5000; i++)
        buf_printf(&values, "data.v%d=1\n", i);
    e = (struct error){0};
    CHECK(!script_flatten(&t, buf_str(&values), STR("f.sh"), &e));
    CHECK_STR(str_from(e.message), "more than 2000 values are set");
}

TEST(every_byte_of_a_variable_costs_a_constant)
{
    struct arena *a = test_arena();
    struct settings s = settings_in(a);
    struct error e = {0};
    struct setting item = {STR("x"), repeated(a, "", "${"), STR("f:1")};
    CHECK(settings_add(&s, item, &e));
    steps = 0;
    variables_resolve(&s);
    CHECK(steps < FILE_BYTES * UINT64_C(100));
    CHECK(str_equal(s.items[0].value, item.value));
}

TEST(a_long_list_takes_little_memory)
{
    enum { ITEMS = 4000 };
    struct arena *a = test_arena();
    struct settings s = settings_in(a);
    struct error e = {0};
    for (int i = 0; i < ITEMS; i++) {
        struct setting item = {str_format(a, "context.%d", i), STR("32768"), STR("f:1")};
        CHECK(settings_add(&s, item, &e));
    }
    const char *before = a->begin;
    CHECK(settings_join_lists(&s, &e));
    CHECK_U64((uint64_t)s.count, 1);
    CHECK_U64((uint64_t)s.items[0].value.n, 6 * ITEMS - 1);
    CHECK(a->begin - before < (ptrdiff_t)ITEMS * 100);
}

// ------------------------------------------------------------------ files

// What reading a file takes, and what is said of it.
static ptrdiff_t memory_of_file(struct str content, const char *refusal)
{
    struct arena *a = test_arena();
    struct str path = path_join(a, temp_folder(a), STR("x")), bytes;
    const struct value *tree = NULL;
    struct error e = {0};
    CHECK(file_write(*a, path, content, FILE_REPLACE, &e));
    const char *before = a->begin;
    CHECK(!document_read(&bytes, &tree, a, path, &e));
    CHECK_STR(str_from(e.message), refusal);
    return a->begin - before;
}

TEST(what_is_no_history_is_not_read_whole)
{
    enum { ZEROS = 8 << 20 };
    char *zeros = calloc(ZEROS, 1);
    CHECK(memory_of_file((struct str){zeros, ZEROS},
                         "this is neither a snapshot nor a trace: byte 1 of it is zero") <
          ZEROS / 8);
    free(zeros);
}

TEST(what_is_unpacked_is_bounded_by_what_was_read)
{
    enum { ZEROS = 100 << 20, LEAST = 64 << 20 };
    uLongf packed_bytes = compressBound(ZEROS);
    Bytef *zeros = calloc(ZEROS, 1), *packed = malloc(packed_bytes);
    CHECK(zeros && packed && compress(packed, &packed_bytes, zeros, ZEROS) == Z_OK);
    CHECK(memory_of_file((struct str){(const char *)packed, (ptrdiff_t)packed_bytes},
                         "this file unpacks to more than 200 times its size") <
          3 * (ptrdiff_t)LEAST);
    free(zeros);
    free(packed);
}
