// A reader of its own, because a snapshot may have gigabytes: texts without escapes stay where they
// are, keys that were just seen are kept once, and a container is made when all it holds is known.
// Only the stack of values whose container is still open is memory beside the tree.
#include "host/formats/json_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "host/formats/json_parse.h"

enum { KEYS_KEPT = 64, NUMBER_MOST_BYTES = 512 };

struct reading {
    struct arena *arena;
    struct str text, source;
    ptrdiff_t at;
    struct error *error;
    struct value *stack;
    ptrdiff_t count, capacity;
    struct value keys[KEYS_KEPT];
    struct value_items *none; // what all empty containers hold
    int depth;
};

static bool read_value(struct reading *r);

static bool invalid(struct reading *r, const char *what)
{
    struct arena scratch = *r->arena;
    long long line = 1, column = 1;
    for (ptrdiff_t i = 0; i < r->at && i < r->text.n; i++) {
        column = r->text.p[i] == '\n' ? 1 : column + 1;
        line += r->text.p[i] == '\n';
    }
    struct str where = str_format(&scratch, "%.*s:%lld:%lld", STR_ARGS(r->source), line, column);
    return FAIL(r->error, BAD_INPUT, where, "this is not valid JSON: %s", what);
}

static bool push(struct reading *r, struct value v)
{
    if (r->count == r->capacity) {
        ptrdiff_t capacity = r->capacity ? 2 * r->capacity : 256;
        struct value *grown = realloc(r->stack, (size_t)capacity * sizeof *grown);
        if (!grown)
            return FAIL(r->error, NO_MEMORY, r->source, "there is not enough memory to read this");
        r->stack = grown;
        r->capacity = capacity;
    }
    r->stack[r->count++] = v;
    return true;
}

static char next(const struct reading *r)
{
    if (r->at < r->text.n)
        return r->text.p[r->at];
    return '\0';
}

static char next_token(struct reading *r)
{
    while (r->at < r->text.n && next(r) && strchr(" \t\n\r", next(r)))
        r->at++;
    return next(r);
}

static bool take_word(struct reading *r, const char *word)
{
    struct str known = str_from(word);
    if (!str_starts(str_slice(r->text, r->at, r->text.n), known))
        return false;
    r->at += known.n;
    return true;
}

// ------------------------------------------------------------------ texts

static bool take_hex(struct reading *r, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        char c = char_lower(next(r));
        bool digit = char_is_digit(c), letter = c >= 'a' && c <= 'f';
        if (!digit && !letter)
            return invalid(r, "\\u is not followed by four hexadecimal digits");
        *code = *code << 4 | (uint32_t)(digit ? c - '0' : c - 'a' + 10);
    }
    return true;
}

static void put_code(struct buf *b, uint32_t c)
{
    if (c < 0x80) {
        buf_char(b, (char)c);
        return;
    }
    if (c < 0x800) {
        buf_char(b, (char)(0xC0 | c >> 6));
    } else {
        if (c < 0x10000) {
            buf_char(b, (char)(0xE0 | c >> 12));
        } else {
            buf_char(b, (char)(0xF0 | c >> 18));
            buf_char(b, (char)(0x80 | (c >> 12 & 0x3F)));
        }
        buf_char(b, (char)(0x80 | (c >> 6 & 0x3F)));
    }
    buf_char(b, (char)(0x80 | (c & 0x3F)));
}

// Behind "\u". A surrogate without its other half is what Python writes for a broken name.
static bool take_code(struct reading *r, struct buf *b)
{
    enum { REPLACEMENT = 0xFFFD };
    uint32_t code, low;
    if (!take_hex(r, &code))
        return false;
    ptrdiff_t before = r->at;
    if (code >= 0xD800 && code < 0xDC00 && take_word(r, "\\u")) {
        if (!take_hex(r, &low))
            return false;
        if (low >= 0xDC00 && low < 0xE000)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        else
            r->at = before;
    }
    put_code(b, code >= 0xD800 && code < 0xE000 ? REPLACEMENT : code);
    return true;
}

static bool take_escape(struct reading *r, struct buf *b)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    r->at++;
    char c = next(r);
    const char *known = c ? strchr(letters, c) : NULL;
    if (known) {
        buf_char(b, meant[known - letters]);
        r->at++;
        return true;
    }
    if (c != 'u')
        return invalid(r, "an escape sequence is unknown");
    r->at++;
    return take_code(r, b);
}

// Where the text ends that is open here: at its quote, or at the end of all.
static ptrdiff_t text_end(const struct reading *r)
{
    ptrdiff_t at = r->at;
    while (at < r->text.n && r->text.p[at] != '"')
        at += r->text.p[at] == '\\' ? 2 : 1;
    return at < r->text.n ? at : r->text.n;
}

// A text that has escapes, which are never shorter than what they stand for.
static bool take_escaped(struct reading *r, struct str *text)
{
    ptrdiff_t end = text_end(r), most = end - r->at + 1;
    struct buf b = buf_over(NEW(r->arena, char, most), most);
    while (r->at < end) {
        if (next(r) != '\\')
            buf_char(&b, r->text.p[r->at++]);
        else if (!take_escape(r, &b))
            return false;
    }
    *text = buf_str(&b);
    return true;
}

static bool take_text(struct reading *r, struct str *text)
{
    ptrdiff_t start = ++r->at;
    while (r->at < r->text.n && next(r) != '"' && next(r) != '\\')
        r->at++;
    *text = str_slice(r->text, start, r->at);
    if (next(r) == '\\') {
        r->at = start;
        if (!take_escaped(r, text))
            return false;
    }
    if (next(r) != '"')
        return invalid(r, "a text does not end");
    r->at++;
    return true;
}

static bool read_text(struct reading *r)
{
    struct str text;
    return take_text(r, &text) && push(r, value_text(r->arena, text));
}

static bool read_key(struct reading *r)
{
    struct str text;
    if (next_token(r) != '"')
        return invalid(r, "a key in double quotes is expected");
    if (!take_text(r, &text))
        return false;
    size_t slot = (size_t)text.n * 7 + (text.n ? (unsigned char)text.p[text.n / 2] : 0);
    struct value *kept = &r->keys[slot % KEYS_KEPT];
    if (kept->kind != VALUE_TEXT || !str_equal(*kept->as.text, text))
        *kept = value_text(r->arena, text);
    if (next_token(r) != ':')
        return invalid(r, "':' is expected");
    r->at++;
    return push(r, *kept);
}

// ------------------------------------------------------------------ numbers and words

static ptrdiff_t digits(struct reading *r)
{
    ptrdiff_t start = r->at;
    while (char_is_digit(next(r)))
        r->at++;
    return r->at - start;
}

// Passes over a number; false where it is none.
static bool pass_number(struct reading *r, bool *whole)
{
    r->at += next(r) == '-';
    bool leading_zero = next(r) == '0';
    ptrdiff_t count = digits(r);
    if (!count || (leading_zero && count > 1))
        return false;
    *whole = true;
    if (next(r) == '.') {
        *whole = false;
        r->at++;
        if (!digits(r))
            return false;
    }
    if (char_lower(next(r)) == 'e') {
        *whole = false;
        r->at++;
        r->at += next(r) == '+' || next(r) == '-';
        return digits(r) > 0;
    }
    return true;
}

// An integer beyond 64 bits is read as a real, as all numbers of JSON may be.
static bool read_number(struct reading *r)
{
    char copy[NUMBER_MOST_BYTES];
    bool whole;
    ptrdiff_t start = r->at;
    if (!pass_number(r, &whole))
        return invalid(r, "a value is expected");
    struct str number = str_slice(r->text, start, r->at);
    if (number.n >= NUMBER_MOST_BYTES)
        return invalid(r, "a number has too many digits");
    memcpy(copy, number.p, (size_t)number.n);
    copy[number.n] = 0;
    errno = 0;
    long long integer = whole ? strtoll(copy, NULL, 10) : 0;
    if (whole && !errno)
        return push(r, value_integer(integer));
    double real = strtod(copy, NULL);
    if (!isfinite(real))
        return invalid(r, "a number is too large");
    return push(r, (struct value){VALUE_REAL, {.real = real}});
}

// Python writes three more words for numbers; they count as nothing.
static bool read_word(struct reading *r)
{
    if (take_word(r, "true"))
        return push(r, (struct value){VALUE_BOOL, {.boolean = true}});
    if (take_word(r, "false"))
        return push(r, (struct value){VALUE_BOOL, {.boolean = false}});
    if (take_word(r, "null") || take_word(r, "NaN") || take_word(r, "Infinity") ||
        take_word(r, "-Infinity"))
        return push(r, (struct value){VALUE_NONE, {0}});
    return read_number(r);
}

// ------------------------------------------------------------------ containers

// Moves what the stack holds from `from` on into a container of its own.
static bool close_container(struct reading *r, ptrdiff_t from, enum value_kind kind)
{
    struct value container = {kind, {.items = r->none}};
    if (r->count > from) {
        container = value_container(r->arena, kind);
        value_append_all(r->arena, &container, r->stack + from, r->count - from);
    }
    r->count = from;
    return push(r, container);
}

static bool read_container(struct reading *r, enum value_kind kind)
{
    char end = kind == VALUE_DICT ? '}' : ']';
    ptrdiff_t from = r->count;
    if (++r->depth > JSON_MAX_NESTING)
        return json_too_deep(r->source, r->error);
    r->at++;
    bool empty = next_token(r) == end;
    for (bool more = !empty; more; r->at += more) {
        if (kind == VALUE_DICT && !read_key(r))
            return false;
        if (!read_value(r))
            return false;
        more = next_token(r) == ',';
    }
    if (next(r) != end)
        return invalid(r, kind == VALUE_DICT ? "',' or '}' is expected" : "',' or ']' is expected");
    r->at++;
    r->depth--;
    return close_container(r, from, kind);
}

static bool read_value(struct reading *r)
{
    switch (next_token(r)) {
    case '{':
        return read_container(r, VALUE_DICT);
    case '[':
        return read_container(r, VALUE_LIST);
    case '"':
        return read_text(r);
    default:
        return read_word(r);
    }
}

bool json_tree(struct value *root, struct arena *a, struct str text, struct str source,
               struct error *e)
{
    struct reading r = {.arena = a,
                        .text = text,
                        .source = source,
                        .error = e,
                        .none = NEW(a, struct value_items, 1)};
    bool ok = read_value(&r);
    if (ok && (next_token(&r) || r.at < text.n))
        ok = invalid(&r, "something follows its end");
    if (ok)
        *root = r.stack[0];
    free(r.stack);
    return ok;
}
