// The characters that mean something there, as entities or behind a backslash or in quotes.
#include "core/draw/markup.h"

#include <string.h>

#include "core/base/utf8.h"

static const char *entity(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

void put_escaped(struct buf *b, struct str s)
{
    while (s.n) {
        const char *name = entity(s.p[0]);
        struct glyph g = utf8_glyph(s);
        if (name)
            buf_put_z(b, name);
        else
            buf_put(b, g.plain ? str_slice(s, 0, g.n) : STR("?"));
        s = str_slice(s, g.n, s.n);
    }
}

void put_markdown(struct buf *b, struct str s)
{
    struct buf plain = buf_in(b->arena);
    put_plain(&plain, s);
    for (ptrdiff_t i = 0; i < plain.n; i++) {
        if (strchr("*|<`\\[", plain.p[i]))
            buf_char(b, '\\');
        buf_char(b, plain.p[i]);
    }
}

static bool is_number(struct str s)
{
    bool digits = false;
    if (s.n && s.p[0] == '-')
        s = str_slice(s, 1, s.n);
    for (ptrdiff_t i = 0; i < s.n; i++) {
        if (!char_is_digit(s.p[i]) && s.p[i] != '.')
            return false;
        digits = true;
    }
    return digits;
}

void put_csv(struct buf *b, struct str cell)
{
    struct buf plain = buf_in(b->arena);
    if (cell.n && strchr("=+-@", cell.p[0]) && !is_number(cell))
        buf_char(&plain, '\'');
    put_plain(&plain, cell);
    struct str text = buf_str(&plain);
    bool quoted = str_cut(text, ',').found || str_cut(text, '"').found;
    buf_put_z(b, quoted ? "\"" : "");
    for (struct str_cut c = str_cut(text, '"');; c = str_cut(c.tail, '"')) {
        buf_put(b, c.head);
        if (!c.found)
            break;
        buf_put_z(b, "\"\"");
    }
    buf_put_z(b, quoted ? "\"" : "");
}
