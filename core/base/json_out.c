// The JSON writer. Byte for byte the same on every platform: integers by printf, doubles by %.6g.
#include "core/base/json_out.h"

struct json_out json_out_to(struct buf *out)
{
    return (struct json_out){.out = out};
}

void json_out_end(struct json_out *j)
{
    ASSERT(j->depth == 0 && !j->after_key);
    buf_char(j->out, '\n');
}

static void new_line(struct json_out *j)
{
    buf_char(j->out, '\n');
    buf_repeat(j->out, ' ', 2 * (ptrdiff_t)j->depth);
}

static void before_item(struct json_out *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->depth == 0)
        return;
    if (j->has_items[j->depth - 1])
        buf_char(j->out, ',');
    j->has_items[j->depth - 1] = true;
    new_line(j);
}

static void open_with(struct json_out *j, char bracket)
{
    before_item(j);
    ASSERT(j->depth < JSON_OUT_MAX_DEPTH);
    buf_char(j->out, bracket);
    j->has_items[j->depth++] = false;
}

static void close_with(struct json_out *j, char bracket)
{
    ASSERT(j->depth > 0 && !j->after_key);
    j->depth--;
    if (j->has_items[j->depth])
        new_line(j);
    buf_char(j->out, bracket);
}

void json_out_object(struct json_out *j)
{
    open_with(j, '{');
}

void json_out_object_end(struct json_out *j)
{
    close_with(j, '}');
}

void json_out_array(struct json_out *j)
{
    open_with(j, '[');
}

void json_out_array_end(struct json_out *j)
{
    close_with(j, ']');
}

// The well-formed UTF-8 sequences by lead byte (Unicode, table 3-7): the second byte's range leaves
// out overlong forms, surrogates and values past U+10FFFF.
static const struct {
    unsigned char first_lead, last_lead, length, second_min, second_max;
} utf8_forms[] = {
    {0x00, 0x7F, 1, 0, 0},       {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static bool continues(struct str s, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t i = from; i < to; i++)
        if (((unsigned char)s.p[i] & 0xC0) != 0x80)
            return false;
    return true;
}

// Length of the valid sequence at the start of s, or 0.
static ptrdiff_t utf8_length(struct str s)
{
    unsigned char lead = (unsigned char)s.p[0];
    ptrdiff_t form = 0;
    while (form < COUNT_OF(utf8_forms) && lead > utf8_forms[form].last_lead)
        form++;
    if (form == COUNT_OF(utf8_forms) || lead < utf8_forms[form].first_lead)
        return 0;
    ptrdiff_t n = utf8_forms[form].length;
    if (n == 1)
        return 1;
    if (n > s.n)
        return 0;
    unsigned char second = (unsigned char)s.p[1];
    bool good = second >= utf8_forms[form].second_min && second <= utf8_forms[form].second_max;
    return good && continues(s, 2, n) ? n : 0;
}

static void put_quoted(struct buf *b, struct str s)
{
    buf_char(b, '"');
    while (s.n) {
        char c = s.p[0];
        ptrdiff_t n = utf8_length(s);
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_put_z(b, "\\n");
        else if ((unsigned char)c < 0x20 || c == 0x7F)
            buf_printf(b, "\\u%04x", (unsigned)c);
        else if (n)
            buf_put(b, str_slice(s, 0, n));
        else
            buf_put_z(b, "\xEF\xBF\xBD");
        s = str_slice(s, n ? n : 1, s.n);
    }
    buf_char(b, '"');
}

void json_out_key(struct json_out *j, const char *key)
{
    json_out_key_str(j, str_from(key));
}

void json_out_key_str(struct json_out *j, struct str key)
{
    before_item(j);
    put_quoted(j->out, key);
    buf_put_z(j->out, ": ");
    j->after_key = true;
}

void json_out_str(struct json_out *j, struct str value)
{
    before_item(j);
    put_quoted(j->out, value);
}

void json_out_u64(struct json_out *j, uint64_t value)
{
    before_item(j);
    buf_printf(j->out, "%llu", (unsigned long long)value);
}

void json_out_double(struct json_out *j, double value)
{
    if (value - value != 0) {
        json_out_null(j);
        return;
    }
    before_item(j);
    buf_printf(j->out, "%.6g", value);
}

void json_out_bool(struct json_out *j, bool value)
{
    before_item(j);
    buf_put_z(j->out, value ? "true" : "false");
}

void json_out_null(struct json_out *j)
{
    before_item(j);
    buf_put_z(j->out, "null");
}

void json_out_field_str(struct json_out *j, const char *key, struct str value)
{
    json_out_key(j, key);
    json_out_str(j, value);
}

void json_out_field_u64(struct json_out *j, const char *key, uint64_t value)
{
    json_out_key(j, key);
    json_out_u64(j, value);
}

void json_out_field_bool(struct json_out *j, const char *key, bool value)
{
    json_out_key(j, key);
    json_out_bool(j, value);
}
