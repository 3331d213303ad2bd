// The characters that mean something there, as entities.
#include "core/report/markup.h"

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
        ptrdiff_t n = utf8_length(s);
        bool control = (unsigned char)s.p[0] < 0x20 || s.p[0] == 0x7F;
        if (name)
            buf_put_z(b, name);
        else if (n && !control)
            buf_put(b, str_slice(s, 0, n));
        else
            buf_char(b, '?');
        s = str_slice(s, n ? n : 1, s.n);
    }
}
