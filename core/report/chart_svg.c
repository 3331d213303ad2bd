// The chart as SVG: one polygon a layer, a grid of round numbers, a legend. Text is ours and needs
// no escaping but for the title, which may hold a file's name.
#include "core/base/units.h"
#include "core/report/chart.h"
#include "core/report/markup.h"

enum { WIDTH = 960, HEIGHT = 400, LEFT = 80, RIGHT = 20, TOP = 40, BOTTOM = 60 };

static double x_of(const struct chart *c, ptrdiff_t point)
{
    double share = c->points > 1 ? (double)point / (double)(c->points - 1) : 0;
    const double span = WIDTH - LEFT - RIGHT;
    return (double)LEFT + share * span;
}

static double y_of(const struct chart *c, uint64_t bytes)
{
    const double floor = HEIGHT - BOTTOM, span = HEIGHT - TOP - BOTTOM;
    return floor - (double)bytes / (double)chart_top(c) * span;
}

static void put_layer(struct buf *b, const struct chart *c, ptrdiff_t layer)
{
    buf_printf(b, "<polygon fill=\"%s\" points=\"", c->layers[layer].colour);
    for (ptrdiff_t p = 0; p < c->points; p++)
        buf_printf(b, "%.1f,%.1f ", x_of(c, p), y_of(c, chart_height(c, layer, p, p + 1)));
    for (ptrdiff_t p = c->points - 1; p >= 0; p--)
        buf_printf(b, "%.1f,%.1f ", x_of(c, p),
                   y_of(c, layer ? chart_height(c, layer - 1, p, p + 1) : 0));
    buf_put_z(b, "\"/>\n");
}

// The smallest 1, 2 or 5 times a power of ten (in MiB or GiB) that gives at most six lines.
static uint64_t grid_step(uint64_t top)
{
    uint64_t unit = top >= GIB ? GIB : MIB;
    static const uint64_t factors[] = {1, 2, 5};
    for (uint64_t power = 1; power < 1000000; power *= 10)
        for (ptrdiff_t i = 0; i < COUNT_OF(factors); i++)
            if (top / (factors[i] * power * unit) < 6)
                return factors[i] * power * unit;
    return top;
}

static void put_grid(struct buf *b, const struct chart *c)
{
    uint64_t top = chart_top(c), step = grid_step(top);
    for (uint64_t at = 0; at <= top; at += step) {
        double y = y_of(c, at);
        buf_printf(b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ccc\"/>\n", LEFT,
                   WIDTH - RIGHT, y, y);
        buf_printf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + 4);
        put_bytes(b, at);
        buf_put_z(b, "</text>\n");
    }
}

static void put_limit(struct buf *b, const struct chart *c)
{
    if (!c->limit_bytes)
        return;
    double y = y_of(c, c->limit_bytes);
    buf_printf(b,
               "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#c00\" "
               "stroke-dasharray=\"6 4\"/>\n",
               LEFT, WIDTH - RIGHT, y, y);
}

static void put_legend(struct buf *b, const struct chart *c)
{
    int x = LEFT;
    for (ptrdiff_t i = 0; i < c->layer_count; i++) {
        buf_printf(b, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x,
                   HEIGHT - 24, c->layers[i].colour);
        buf_printf(b, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 18, HEIGHT - 14,
                   c->layers[i].name);
        x += 40 + 8 * (int)str_from(c->layers[i].name).n;
    }
    buf_printf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", WIDTH - RIGHT,
               HEIGHT - 40, c->time_axis);
}

void chart_svg(struct buf *out, const struct chart *c)
{
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"13\">\n"
               "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"24\" "
               "font-size=\"16\">",
               WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    put_escaped(out, str_from(c->title));
    buf_put_z(out, "</text>\n");
    if (c->points && chart_top(c)) {
        put_grid(out, c);
        for (ptrdiff_t i = 0; i < c->layer_count; i++)
            put_layer(out, c, i);
        put_limit(out, c);
    }
    put_legend(out, c);
    buf_put_z(out, "</svg>\n");
}
