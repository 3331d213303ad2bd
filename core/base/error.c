// Filling in a struct error, and what each code means to a program's exit status.
#include "core/base/error.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/fmt.h"
#include "core/base/utf8.h"

static const struct {
    const char *name;
    int exit_status;
} codes[] = {
    [ERROR_NONE] = {"none", 0},
    [ERROR_BAD_INPUT] = {"bad_input", 2},
    [ERROR_UNSUPPORTED] = {"unsupported", 2},
    [ERROR_OVERFLOW] = {"overflow", 2},
    [ERROR_IO] = {"io", 3},
    [ERROR_CHILD] = {"child", 3},
    [ERROR_NO_MEMORY] = {"no_memory", 70},
    [ERROR_BUG] = {"bug", 70},
};

// Messages quote input: whatever would steer a terminal, or is no text, is made visible.
static void make_printable(char *text)
{
    char *end = text;
    for (struct str rest = str_from(text); rest.n;) {
        struct glyph g = utf8_glyph(rest);
        memmove(end, g.plain ? rest.p : "?", g.plain ? (size_t)g.n : 1);
        end += g.plain ? g.n : 1;
        rest = str_slice(rest, g.n, rest.n);
    }
    *end = 0;
}

bool error_set(struct error *e, enum error_code code, struct error_site site, struct str where,
               const char *format, ...)
{
    if (e->code != ERROR_NONE)
        return false;
    e->code = code;
    e->file = site.file;
    e->line = site.line;
    e->hint[0] = 0;
    ptrdiff_t n = where.n < (ptrdiff_t)sizeof e->where ? where.n : (ptrdiff_t)sizeof e->where - 1;
    if (n)
        memcpy(e->where, where.p, (size_t)n);
    e->where[n] = 0;
    va_list args;
    va_start(args, format);
    fmt_into(e->message, sizeof e->message, format, args);
    va_end(args);
    make_printable(e->message);
    make_printable(e->where);
    return false;
}

bool error_hint(struct error *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fmt_into(e->hint, sizeof e->hint, format, args);
    va_end(args);
    make_printable(e->hint);
    return false;
}

const char *error_code_name(enum error_code code)
{
    return codes[code].name;
}

int error_exit_status(enum error_code code)
{
    return codes[code].exit_status;
}
