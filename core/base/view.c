// Ink and tables. A table knows its cells as text; widths are found when it is printed.
#include "core/base/view.h"

void put_ink(struct buf *b, const struct view *v, enum ink ink, struct str s)
{
    static const char *const codes[] = {
        [INK_PLAIN] = "",        [INK_BOLD] = "\033[1m", [INK_DIM] = "\033[2m",
        [INK_GOOD] = "\033[32m", [INK_BAD] = "\033[31m", [INK_WARN] = "\033[33m",
    };
    bool coloured = v->colour && ink != INK_PLAIN;
    if (coloured)
        buf_put_z(b, codes[ink]);
    put_plain(b, s);
    if (coloured)
        buf_put_z(b, "\033[0m");
}

struct table table_in(struct arena *a, const struct column *columns, ptrdiff_t column_count)
{
    ASSERT(column_count > 0 && column_count <= TABLE_MAX_COLUMNS);
    return (struct table){.arena = a, .columns = columns, .column_count = column_count};
}

void table_cell(struct table *t, struct str text)
{
    t->cells = arena_grow(t->arena, t->cells, sizeof *t->cells, t->cell_count, &t->capacity);
    t->cells[t->cell_count++] = str_plain(t->arena, text);
}

void table_cell_z(struct table *t, const char *text)
{
    table_cell(t, str_from(text));
}

enum { GUTTER = 2, NARROWEST_WRAP = 24 };

struct layout {
    ptrdiff_t width[TABLE_MAX_COLUMNS];
    bool hidden[TABLE_MAX_COLUMNS];
};

static ptrdiff_t total_width(const struct table *t, const struct layout *l)
{
    ptrdiff_t total = 0;
    for (ptrdiff_t c = 0; c < t->column_count; c++)
        if (!l->hidden[c])
            total += l->width[c] + (total ? GUTTER : 0);
    return total;
}

static ptrdiff_t least_important(const struct table *t, const struct layout *l)
{
    ptrdiff_t found = -1;
    for (ptrdiff_t c = 0; c < t->column_count; c++) {
        if (l->hidden[c] || t->columns[c].priority == 0)
            continue;
        if (found < 0 || t->columns[c].priority >= t->columns[found].priority)
            found = c;
    }
    return found;
}

static struct layout lay_out(const struct table *t, ptrdiff_t width)
{
    struct layout l = {0};
    for (ptrdiff_t c = 0; c < t->column_count; c++)
        l.width[c] = text_width(str_from(t->columns[c].title));
    for (ptrdiff_t i = 0; i < t->cell_count; i++) {
        ptrdiff_t needed = text_width(t->cells[i]);
        if (needed > l.width[i % t->column_count])
            l.width[i % t->column_count] = needed;
    }
    ptrdiff_t last = t->column_count - 1;
    ptrdiff_t room = width - (total_width(t, &l) - l.width[last]);
    if (t->columns[last].wraps && room >= NARROWEST_WRAP && l.width[last] > room)
        l.width[last] = room;
    while (total_width(t, &l) > width) {
        ptrdiff_t dropped = least_important(t, &l);
        if (dropped < 0)
            break;
        l.hidden[dropped] = true;
    }
    return l;
}

static ptrdiff_t last_shown(const struct table *t, const struct layout *l)
{
    ptrdiff_t last = t->column_count - 1;
    while (last > 0 && l->hidden[last])
        last--;
    return last;
}

// The cell's lines, all but the first indented to where the column begins.
static void print_wrapped(struct buf *out, struct str cell, ptrdiff_t column_start, ptrdiff_t width)
{
    struct buf lines = buf_in(out->arena);
    buf_wrapped(&lines, cell, column_start, column_start + width);
    buf_put(out, str_slice(buf_str(&lines), column_start, lines.n));
}

struct row_style {
    const struct view *view;
    enum ink ink;
};

static void print_row(const struct table *t, const struct layout *l, struct buf *out,
                      const struct str *cells, struct row_style style)
{
    ptrdiff_t last = last_shown(t, l);
    for (ptrdiff_t c = 0; c <= last; c++) {
        if (l->hidden[c])
            continue;
        ptrdiff_t padding = l->width[c] - text_width(cells[c]);
        if (padding < 0) {
            print_wrapped(out, cells[c], total_width(t, l) - l->width[c], l->width[c]);
            return;
        }
        if (t->columns[c].right)
            buf_repeat(out, ' ', padding);
        put_ink(out, style.view, style.ink, cells[c]);
        if (c == last)
            break;
        buf_repeat(out, ' ', (t->columns[c].right ? 0 : padding) + GUTTER);
    }
    buf_char(out, '\n');
}

static void print_left_out(const struct table *t, const struct layout *l, struct buf *out,
                           const struct view *v)
{
    struct buf note = buf_in(t->arena);
    for (ptrdiff_t c = 0; c < t->column_count; c++)
        if (l->hidden[c])
            buf_printf(&note, "%s%s", note.n ? ", " : "", t->columns[c].title);
    if (!note.n)
        return;
    buf_put_z(&note, ": shown on a wider terminal and by --json");
    buf_wrapped(out, str_plain(t->arena, buf_str(&note)), 0, v->width);
}

void table_print(const struct table *t, struct buf *out, const struct view *v)
{
    ASSERT(t->cell_count % t->column_count == 0);
    struct layout l = lay_out(t, v->width);
    struct str titles[TABLE_MAX_COLUMNS] = {0};
    for (ptrdiff_t c = 0; c < t->column_count; c++)
        titles[c] = str_from(t->columns[c].title);
    print_row(t, &l, out, titles, (struct row_style){v, INK_BOLD});
    for (ptrdiff_t i = 0; i < t->cell_count; i += t->column_count)
        print_row(t, &l, out, t->cells + i, (struct row_style){v, INK_PLAIN});
    print_left_out(t, &l, out, v);
}
