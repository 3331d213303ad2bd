// jansson builds the tree (its own recursion ends at 2048 levels). Two kinds of document that
// Python writes and jansson refuses are accepted: NaN and Infinity are blanked out beforehand, and
// when an integer is beyond 64 bits ("model_max_length": 1000000000000000019884624838656) all
// numbers are read as floating point instead, which is exact below 2^53.
#include "host/formats/json_parse.h"

#include <stdlib.h>
#include <string.h>

static ptrdiff_t python_number_bytes(struct str rest)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    for (ptrdiff_t i = 0; i < COUNT_OF(words); i++)
        if (str_starts(rest, str_from(words[i])))
            return str_from(words[i]).n;
    return 0;
}

// Puts an empty object of the same width in place of each such number: columns stay as they were.
static struct str without_python_numbers(struct arena *a, struct str text)
{
    char *p = str_z(a, text);
    bool in_string = false;
    for (ptrdiff_t i = 0; i < text.n; i++) {
        if (p[i] == '"')
            in_string = !in_string;
        if (in_string) {
            i += p[i] == '\\';
            continue;
        }
        ptrdiff_t n = python_number_bytes(str_slice(text, i, text.n));
        if (n) {
            memset(p + i, ' ', (size_t)n);
            p[i] = '{';
            p[i + 1] = '}';
            i += n - 1;
        }
    }
    return (struct str){p, text.n};
}

bool json_too_deep(struct str where, struct error *e)
{
    return FAIL(e, BAD_INPUT, where, "this is nested deeper than %d levels", JSON_MAX_NESTING);
}

// jansson 2.14 takes memory that it does not get in the middle of a word for an error of syntax.
static _Thread_local bool refused;

static void *take(size_t bytes)
{
    void *block = malloc(bytes);
    refused |= !block;
    return block;
}

static bool parse_failed(struct arena scratch, const json_error_t *reason, struct str source,
                         struct error *e)
{
    struct str where =
        str_format(&scratch, "%.*s:%d:%d", STR_ARGS(source), reason->line, reason->column);
    enum json_error_code code = json_error_code(reason);
    if (refused || code == json_error_out_of_memory)
        return FAIL(e, NO_MEMORY, source, "there is not enough memory to parse this JSON");
    if (code == json_error_stack_overflow)
        return json_too_deep(where, e);
    char *text = str_z(&scratch, str_from(reason->text));
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\t' || *c == '\r')
            *c = ' '; // it quotes the input, line feeds and all
    return FAIL(e, BAD_INPUT, where, "this is not valid JSON: %s", text);
}

json_t *json_parse(struct arena scratch, struct str text, struct str source, struct error *e)
{
    struct str plain = without_python_numbers(&scratch, text);
    size_t n = (size_t)plain.n;
    json_error_t reason = {0}; // whose code is not set where its first memory is refused
    refused = false;
    json_set_alloc_funcs(take, free);
    json_t *root = json_loadb(plain.p, n, JSON_REJECT_DUPLICATES, &reason);
    if (!root && json_error_code(&reason) == json_error_numeric_overflow)
        root = json_loadb(plain.p, n, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &reason);
    if (root && refused) { // and may go on without it
        json_decref(root);
        root = NULL;
    }
    if (!root)
        parse_failed(scratch, &reason, source, e);
    return root;
}
