// Markdown, as GitHub reads it.
#include "core/base/view.h"
#include "core/draw/markup.h"
#include "core/draw/page.h"

static void begin(struct buf *out, struct str title)
{
    buf_put_z(out, "# ");
    put_markdown(out, title);
    buf_put_z(out, "\n");
}

static void heading(struct buf *out, struct str text)
{
    buf_put_z(out, "\n## ");
    put_markdown(out, text);
    buf_put_z(out, "\n");
}

static void paragraph(struct buf *out, struct str text)
{
    buf_char(out, '\n');
    put_markdown(out, text);
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
    put_markdown(out, text);
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
        put_markdown(out, titles[i]);
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
    put_markdown(out, text);
    buf_put_z(out, " |");
}

static void row_end(struct buf *out)
{
    buf_char(out, '\n');
}

static ptrdiff_t longest_run(struct str text, char c)
{
    ptrdiff_t longest = 0, run = 0;
    for (ptrdiff_t i = 0; i < text.n; i++) {
        run = text.p[i] == c ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void code(struct buf *out, struct str text)
{
    ptrdiff_t run = longest_run(text, '`'), fence = run < 3 ? 3 : run + 1;
    buf_char(out, '\n');
    buf_repeat(out, '`', fence);
    buf_char(out, '\n');
    put_plain_lines(out, text);
    buf_repeat(out, '`', fence);
    buf_char(out, '\n');
}

const struct page_methods page_markdown = {
    begin,     heading, paragraph, list_begin, list_item, nothing, table_begin,
    row_begin, cell,    row_end,   nothing,    code,      nothing,
};
