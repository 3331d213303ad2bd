// Width, colour and writing.
#include "cli/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/base/utf8.h"

enum { DEFAULT_WIDTH = 100, LEAST_WIDTH = 20, MOST_WIDTH = 1000 };

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

static ptrdiff_t width(bool terminal)
{
    struct winsize size;
    uint64_t columns;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    else if (unit_parse(&columns, UNIT_COUNT, str_from(getenv("COLUMNS"))) != UNIT_OK)
        columns = DEFAULT_WIDTH;
    return columns < LEAST_WIDTH  ? LEAST_WIDTH
           : columns > MOST_WIDTH ? MOST_WIDTH
                                  : (ptrdiff_t)columns;
}

struct view terminal_view(void)
{
    bool terminal = isatty(STDOUT_FILENO);
    const char *kind = getenv("TERM");
    bool dumb = kind && strcmp(kind, "dumb") == 0;
    return (struct view){.width = width(terminal),
                         .colour = terminal && !dumb && !is_set("NO_COLOR")};
}

bool terminal_write(int fd, struct str text, struct error *e)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, (size_t)text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return FAIL(e, IO, STR_NONE, "cannot write the answer: %s", strerror(errno));
        text = str_slice(text, n, text.n);
    }
    return true;
}

void terminal_error(struct arena *a, const struct error *e, bool debug)
{
    struct buf b = buf_in(a);
    buf_put_z(&b, "fathom: ");
    if (e->where[0])
        buf_printf(&b, "%s: ", e->where);
    buf_put_z(&b, e->message);
    if (e->hint[0])
        buf_printf(&b, "; %s", e->hint);
    buf_char(&b, '\n');
    if (debug)
        buf_printf(&b, "raised at %s:%d (%s)\n", e->file, e->line, error_code_name(e->code));
    struct error ignored = {0};
    (void)!terminal_write(STDERR_FILENO, buf_str(&b), &ignored);
}

struct terminal_console terminal_console(int out)
{
    const char *kind = getenv("TERM");
    bool dumb = kind && strcmp(kind, "dumb") == 0;
    return (struct terminal_console){.out = out, .live = isatty(STDERR_FILENO) && !dumb};
}

static void clear_status(struct terminal_console *c)
{
    struct error ignored = {0};
    if (c->shown)
        (void)!terminal_write(STDERR_FILENO, STR("\r\033[K"), &ignored);
    c->shown = false;
}

// The beginning of `text` that is no wider than `columns`.
static struct str fitting(struct str text, ptrdiff_t columns)
{
    ptrdiff_t n = 0;
    while (n < text.n && columns-- > 0)
        n += utf8_glyph(str_slice(text, n, text.n)).n;
    return str_slice(text, 0, n);
}

// In pieces, none of which ends within a character.
static bool write_plain(int fd, struct str text, void (*put)(struct buf *b, struct str s),
                        struct error *e)
{
    enum { CHARACTERS = 64, MOST_BYTES = 4 };
    while (text.n) {
        char block[CHARACTERS * MOST_BYTES];
        struct buf b = buf_over(block, sizeof block);
        struct str piece = fitting(text, CHARACTERS);
        put(&b, piece);
        if (!terminal_write(fd, buf_str(&b), e))
            return false;
        text = str_slice(text, piece.n, text.n);
    }
    return true;
}

void terminal_line(void *console, struct str text)
{
    struct terminal_console *c = console;
    clear_status(c);
    (void)!write_plain(c->out, text, put_plain_lines, &c->unwritten);
}

void terminal_status(void *console, struct str text)
{
    struct terminal_console *c = console;
    struct error ignored = {0};
    clear_status(c);
    (void)!write_plain(STDERR_FILENO, fitting(text, width(true) - 1), put_plain, &ignored);
    c->shown = text.n > 0;
}
