// The JSON writer. Byte for byte the same on every platform: integers by printf, doubles by %.6g.
#include "core/base/json_out.h"

#include "core/base/utf8.h"

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

// Text that is not plain is told apart from what looks like it; a reader gets the same value.
static void put_hidden(struct buf *b, unsigned point)
{
    if (point == 0xFFFD)
        buf_put_z(b, "\xEF\xBF\xBD");
    else if (point > 0xFFFF)
        buf_printf(b, "\\u%04x\\u%04x", 0xD7C0 + (point >> 10), 0xDC00 + (point & 0x3FF));
    else
        buf_printf(b, "\\u%04x", point);
}

static void put_quoted(struct buf *b, struct str s)
{
    buf_char(b, '"');
    while (s.n) {
        char c = s.p[0];
        struct glyph g = utf8_glyph(s);
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_put_z(b, "\\n");
        else if (g.plain)
            buf_put(b, str_slice(s, 0, g.n));
        else
            put_hidden(b, g.point);
        s = str_slice(s, g.n, s.n);
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

void json_out_literal(struct json_out *j, struct str value)
{
    before_item(j);
    buf_put(j->out, value);
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
