// Only the end of the output is kept: a line longer than that loses its beginning.
#include "host/trials/last_line.h"

#include <string.h>

#include "core/base/buf.h"

enum { ESCAPE = 27, DELETE = 127 };

void last_line_feed(struct last_line *l, struct str bytes)
{
    if (bytes.n > LAST_LINE_BYTES)
        bytes = str_slice(bytes, bytes.n - LAST_LINE_BYTES, bytes.n);
    ptrdiff_t kept = LAST_LINE_BYTES - bytes.n;
    kept = kept < l->length ? kept : l->length;
    memmove(l->tail, l->tail + l->length - kept, (size_t)kept);
    if (bytes.n)
        memcpy(l->tail + kept, bytes.p, (size_t)bytes.n);
    l->length = kept + bytes.n;
}

// The bytes of a colour code such as "\033[1;31m" at the beginning of `s`, or 1.
static ptrdiff_t escape_length(struct str s)
{
    ptrdiff_t i = 2;
    if (s.n < 2 || s.p[1] != '[')
        return 1;
    while (i < s.n && (unsigned char)s.p[i] < '@')
        i++;
    return i < s.n ? i + 1 : s.n;
}

static struct str plain(struct arena *a, struct str line)
{
    struct buf b = buf_in(a);
    while (line.n) {
        unsigned char c = (unsigned char)line.p[0];
        if (c >= ' ' && c != DELETE)
            buf_char(&b, line.p[0]);
        line = str_slice(line, c == ESCAPE ? escape_length(line) : 1, line.n);
    }
    return str_trim(str_plain(a, buf_str(&b)));
}

struct str last_line_text(const struct last_line *l, struct arena *a)
{
    struct str rest = {l->tail, l->length};
    while (rest.n) {
        ptrdiff_t i = rest.n;
        while (i > 0 && rest.p[i - 1] != '\n' && rest.p[i - 1] != '\r')
            i--;
        struct str line = plain(a, str_slice(rest, i, rest.n));
        if (line.n && !str_starts(line, STR("{\"fathom\":")))
            return line;
        rest = str_slice(rest, 0, i ? i - 1 : 0);
    }
    return STR_NONE;
}
