// The chart in a terminal: a grid of characters, each the layer that fills most of its cell.
#include "core/draw/chart.h"

#include "core/base/units.h"

enum { ROWS = 10, LABEL_WIDTH = 10, MOST_COLUMNS = 120 };

static uint64_t stack_height(const struct chart *c, ptrdiff_t layer, ptrdiff_t point)
{
    uint64_t sum = 0;
    for (ptrdiff_t i = 0; i <= layer; i++)
        sum += c->layers[i].values[point];
    return sum;
}

uint64_t chart_height(const struct chart *c, ptrdiff_t layer, ptrdiff_t from, ptrdiff_t to)
{
    ptrdiff_t highest = from;
    for (ptrdiff_t p = from + 1; p < to; p++)
        if (stack_height(c, c->layer_count - 1, p) > stack_height(c, c->layer_count - 1, highest))
            highest = p;
    return stack_height(c, layer, highest);
}

uint64_t chart_top(const struct chart *c)
{
    enum { MOST_OF_IT_EMPTY = 4 }; // where the limit is so many times higher
    uint64_t top = c->points ? chart_height(c, c->layer_count - 1, 0, c->points) : 0;
    for (ptrdiff_t i = 0; i < c->line.points; i++)
        top = c->line.values[i] > top ? c->line.values[i] : top;
    return c->limit_bytes > top && c->limit_bytes / MOST_OF_IT_EMPTY < top ? c->limit_bytes : top;
}

// The layer at the middle of a row's band, or -1 above them all.
static ptrdiff_t layer_at(const struct chart *c, uint64_t middle, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t layer = 0; layer < c->layer_count; layer++)
        if (chart_height(c, layer, from, to) > middle)
            return layer;
    return -1;
}

static void put_label(struct buf *out, uint64_t bytes)
{
    struct buf label = buf_in(out->arena);
    put_bytes(&label, bytes);
    buf_repeat(out, ' ', LABEL_WIDTH - label.n);
    buf_put(out, buf_str(&label));
}

static void put_row(struct buf *out, const struct chart *c, ptrdiff_t row, ptrdiff_t columns)
{
    uint64_t top = chart_top(c);
    uint64_t middle = top / (UINT64_C(2) * ROWS) * (2 * (uint64_t)row + 1);
    if (row == ROWS - 1)
        put_label(out, top);
    else if (row == ROWS / 2 - 1)
        put_label(out, top / 2);
    else
        buf_repeat(out, ' ', LABEL_WIDTH);
    buf_put_z(out, " │");
    for (ptrdiff_t column = 0; column < columns; column++) {
        ptrdiff_t from = column * c->points / columns, to = (column + 1) * c->points / columns;
        ptrdiff_t layer = layer_at(c, middle, from, to > from ? to : from + 1);
        buf_put_z(out, layer < 0 ? " " : c->layers[layer].cell);
    }
    buf_char(out, '\n');
}

void chart_text(struct buf *out, const struct view *v, const struct chart *c)
{
    ptrdiff_t columns = v->width - LABEL_WIDTH - 3;
    if (columns > MOST_COLUMNS)
        columns = MOST_COLUMNS;
    if (columns > c->points)
        columns = c->points;
    if (columns < 1 || chart_top(c) == 0)
        return;
    for (ptrdiff_t row = ROWS - 1; row >= 0; row--)
        put_row(out, c, row, columns);
    buf_repeat(out, ' ', LABEL_WIDTH);
    buf_put_z(out, " └");
    for (ptrdiff_t i = 0; i < columns; i++)
        buf_put_z(out, "─");
    buf_printf(out, "\n%*s", LABEL_WIDTH + 2, "");
    for (ptrdiff_t i = 0; i < c->layer_count; i++)
        buf_printf(out, "%s%s %s", i ? "  " : "", c->layers[i].cell, c->layers[i].name);
    buf_printf(out, "  (%s)\n", c->time_axis);
}
