// Appending to a block in an arena. The block is the arena's last one most of the time and then
// grows where it stands; otherwise it moves to twice the room.
#include "core/base/buf.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/fmt.h"
#include "core/base/utf8.h"

struct buf buf_in(struct arena *a)
{
    return (struct buf){.arena = a};
}

struct buf buf_over(char *block, ptrdiff_t bytes)
{
    return (struct buf){.p = block, .capacity = bytes};
}

struct str buf_str(const struct buf *b)
{
    return (struct str){b->p ? b->p : "", b->n};
}

static void reserve(struct buf *b, ptrdiff_t more)
{
    if (more <= b->capacity - b->n)
        return;
    ASSERT(b->arena);
    ptrdiff_t growth = b->capacity > 256 ? b->capacity : 256;
    if (growth < more)
        growth = more;
    if (!arena_extend(b->arena, b->p, b->capacity, growth)) {
        char *moved = NEW(b->arena, char, b->capacity + growth);
        if (b->n)
            memcpy(moved, b->p, (size_t)b->n);
        b->p = moved;
    }
    b->capacity += growth;
}

void buf_put(struct buf *b, struct str s)
{
    if (!s.n)
        return;
    reserve(b, s.n);
    memcpy(b->p + b->n, s.p, (size_t)s.n);
    b->n += s.n;
}

void buf_put_z(struct buf *b, const char *z)
{
    buf_put(b, str_from(z));
}

void buf_char(struct buf *b, char c)
{
    buf_put(b, (struct str){&c, 1});
}

void buf_repeat(struct buf *b, char c, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        buf_char(b, c);
}

void buf_count(struct buf *b, uint64_t n, const char *one)
{
    bool hissing = str_ends(str_from(one), STR("ch")) || str_ends(str_from(one), STR("sh"));
    buf_printf(b, "%llu %s%s", (unsigned long long)n, one, n == 1 ? "" : hissing ? "es" : "s");
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    ptrdiff_t length = fmt_length(format, again);
    va_end(again);
    reserve(b, length + 1);
    b->n += fmt_into(b->p + b->n, length + 1, format, args);
    va_end(args);
}

static void put_shown(struct buf *b, struct str s, const char *kept)
{
    while (s.n) {
        struct glyph g = utf8_glyph(s);
        bool plain = g.plain || (g.point < 0x80 && g.point && strchr(kept, (int)g.point));
        buf_put(b, plain ? str_slice(s, 0, g.n) : STR("?"));
        s = str_slice(s, g.n, s.n);
    }
}

void put_plain(struct buf *b, struct str s)
{
    put_shown(b, s, "");
}

void put_plain_lines(struct buf *b, struct str s)
{
    put_shown(b, s, "\n\t");
}

struct str str_plain(struct arena *a, struct str s)
{
    bool plain = true;
    for (struct str rest = s; plain && rest.n;) {
        struct glyph g = utf8_glyph(rest);
        plain = g.plain;
        rest = str_slice(rest, g.n, rest.n);
    }
    if (plain)
        return s;
    struct buf b = buf_in(a);
    put_plain(&b, s);
    return buf_str(&b);
}

ptrdiff_t text_width(struct str s)
{
    ptrdiff_t columns = 0;
    for (ptrdiff_t i = 0; i < s.n; i++)
        columns += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return columns;
}

void buf_wrapped(struct buf *b, struct str s, ptrdiff_t indent, ptrdiff_t width)
{
    ptrdiff_t column = 0;
    for (struct str_cut c = str_cut(s, ' ');; c = str_cut(c.tail, ' ')) {
        ptrdiff_t word = text_width(c.head);
        if (column > indent && column + 1 + word > width) {
            buf_char(b, '\n');
            column = 0;
        }
        if (column == 0) {
            buf_repeat(b, ' ', indent);
            column = indent;
        } else {
            buf_char(b, ' ');
            column++;
        }
        put_plain(b, c.head);
        column += word;
        if (!c.found)
            break;
    }
    buf_char(b, '\n');
}
