// Markdown, as GitHub reads it.
#include "core/base/view.h"
#include "core/report/page.h"

// Characters that would begin markup stand for themselves.
static void put(struct buf *out, struct str text)
{
    struct buf plain = buf_in(out->arena);
    put_plain(&plain, text);
    for (ptrdiff_t i = 0; i < plain.n; i++) {
        char c = plain.p[i];
        if (c == '*' || c == '|' || c == '<' || c == '`' || c == '\\' || c == '[')
            buf_char(out, '\\');
        buf_char(out, c);
    }
}

static void begin(struct buf *out, struct str title)
{
    buf_put_z(out, "# ");
    put(out, title);
    buf_put_z(out, "\n");
}

static void heading(struct buf *out, struct str text)
{
    buf_put_z(out, "\n## ");
    put(out, text);
    buf_put_z(out, "\n");
}

static void paragraph(struct buf *out, struct str text)
{
    buf_char(out, '\n');
    put(out, text);
    buf_char(out, '\n');
}

static void list_begin(struct buf *out)
{
    buf_char(out, '\n');
}

static void list_item(struct buf *out, int number, struct str text, int shade)
{
    (void)shade;
    buf_printf(out, "%d. ", number);
    put(out, text);
    buf_char(out, '\n');
}

static void nothing(struct buf *out)
{
    (void)out;
}

static void table_begin(struct buf *out, const struct str *titles, ptrdiff_t count)
{
    buf_put_z(out, "\n|");
    for (ptrdiff_t i = 0; i < count; i++) {
        buf_char(out, ' ');
        put(out, titles[i]);
        buf_put_z(out, " |");
    }
    buf_put_z(out, "\n|");
    for (ptrdiff_t i = 0; i < count; i++)
        buf_put_z(out, " --- |");
    buf_char(out, '\n');
}

static void row_begin(struct buf *out)
{
    buf_char(out, '|');
}

static void cell(struct buf *out, struct str text, int shade)
{
    (void)shade;
    buf_char(out, ' ');
    put(out, text);
    buf_put_z(out, " |");
}

static void row_end(struct buf *out)
{
    buf_char(out, '\n');
}

static void code(struct buf *out, struct str text)
{
    buf_put_z(out, "\n```\n");
    buf_put(out, text);
    buf_put_z(out, "```\n");
}

const struct page_methods page_markdown = {
    begin,     heading, paragraph, list_begin, list_item, nothing, table_begin,
    row_begin, cell,    row_end,   nothing,    code,      nothing,
};
