// One HTML page: its style inside, no scripts, nothing fetched; light and dark; tables scroll
// sideways on a phone, with their first column in place.
#include "core/draw/markup.h"
#include "core/draw/page.h"

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2b33;--soft:#5b6b73;--paper:#fff;--line:#d8dfe3;"
    "--head:#f2f5f6;--light:84%;--none:#eceff1}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4eaed;--soft:#9aa8af;--paper:#14191c;"
    "--line:#333d43;--head:#1d2428;--light:27%;--none:#23292d}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:64rem;padding:1rem;font:16px/1.5 system-ui,sans-serif;"
    "color:var(--ink);background:var(--paper)}\n"
    "h1{font-size:1.5rem;line-height:1.25;margin:1rem 0}\n"
    "h2{font-size:1.15rem;margin:2rem 0 .5rem}\n"
    "p{max-width:46rem}\n"
    ".table{overflow-x:auto;margin:.75rem 0;border:1px solid var(--line);border-radius:.5rem}\n"
    "table{border-collapse:collapse;width:100%;font-size:.875rem;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.4rem .6rem;text-align:left;border-bottom:1px solid var(--line)}\n"
    "th,td:first-child,.s,.n{white-space:nowrap}\n"
    "tr:last-child td{border-bottom:0}\n"
    "th{background:var(--head);font-weight:600}\n"
    "th:first-child,td:first-child{position:sticky;left:0;background:var(--head)}\n"
    ".s{background:hsl(calc(160 - 1.5*var(--t)) 48% var(--light))}\n"
    ".n{background:var(--none);color:var(--soft)}\n"
    "ol{padding-left:1.6rem}\n"
    "li{margin:.2rem 0}\n"
    "li span{padding:.1rem .5rem;border-radius:.3rem}\n"
    "pre{overflow-x:auto;padding:.75rem;background:var(--head);border-radius:.5rem;"
    "font-size:.85rem}\n";

static void put_element(struct buf *out, const char *name, struct str text)
{
    buf_printf(out, "<%s>", name);
    put_escaped(out, text);
    buf_printf(out, "</%s>\n", name);
}

static void begin(struct buf *out, struct str title)
{
    buf_put_z(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    put_element(out, "title", title);
    buf_printf(out, "<style>\n%s</style>\n", style);
    put_element(out, "h1", title);
}

static void heading(struct buf *out, struct str text)
{
    put_element(out, "h2", text);
}

static void paragraph(struct buf *out, struct str text)
{
    put_element(out, "p", text);
}

static void list_begin(struct buf *out)
{
    buf_put_z(out, "<ol>\n");
}

static void put_shade(struct buf *out, int shade)
{
    if (shade >= 0)
        buf_printf(out, " class=\"s\" style=\"--t:%d\"", shade);
    if (shade == PAGE_NONE)
        buf_put_z(out, " class=\"n\"");
}

static void list_item(struct buf *out, int number, struct str text, int shade)
{
    (void)number;
    buf_put_z(out, "<li><span");
    put_shade(out, shade);
    buf_char(out, '>');
    put_escaped(out, text);
    buf_put_z(out, "</span></li>\n");
}

static void list_end(struct buf *out)
{
    buf_put_z(out, "</ol>\n");
}

static void table_begin(struct buf *out, const struct str *titles, ptrdiff_t count)
{
    buf_put_z(out, "<div class=\"table\"><table>\n<thead><tr>");
    for (ptrdiff_t i = 0; i < count; i++) {
        buf_put_z(out, "<th>");
        put_escaped(out, titles[i]);
        buf_put_z(out, "</th>");
    }
    buf_put_z(out, "</tr></thead>\n<tbody>\n");
}

static void row_begin(struct buf *out)
{
    buf_put_z(out, "<tr>");
}

static void cell(struct buf *out, struct str text, int shade)
{
    buf_put_z(out, "<td");
    put_shade(out, shade);
    buf_char(out, '>');
    put_escaped(out, text);
    buf_put_z(out, "</td>");
}

static void row_end(struct buf *out)
{
    buf_put_z(out, "</tr>\n");
}

static void table_end(struct buf *out)
{
    buf_put_z(out, "</tbody>\n</table></div>\n");
}

static void code(struct buf *out, struct str text)
{
    buf_put_z(out, "<pre>");
    for (struct str_cut line = str_cut(text, '\n');; line = str_cut(line.tail, '\n')) {
        put_escaped(out, line.head);
        if (!line.found)
            break;
        buf_char(out, '\n');
    }
    buf_put_z(out, "</pre>\n");
}

static void end(struct buf *out)
{
    buf_put_z(out, "</html>\n");
}

const struct page_methods page_html = {
    begin,     heading, paragraph, list_begin, list_item, list_end, table_begin,
    row_begin, cell,    row_end,   table_end,  code,      end,
};
