// The chart as SVG: one polygon a layer, a grid of round numbers, lines, and a legend of as many
// rows as it needs. The reader's fonts are not known here, so widths are guesses on the safe side,
// and text that would not fit is cut. All of it is escaped: names may be those of files.
#include "core/base/units.h"
#include "core/base/utf8.h"
#include "core/draw/chart.h"
#include "core/draw/chart_layout.h"
#include "core/draw/markup.h"
#include "core/draw/streams_svg.h"

// The widest common face, DejaVu Sans, takes 0.59 of its size for the average of our names.
#define LETTER 0.62

struct panel {
    const struct chart *chart;
    uint64_t top;
    int floor; // where zero is drawn
};

// Without the first letter, whatever stands for one.
static struct str after_letter(struct str text)
{
    ptrdiff_t n = utf8_length(text);
    return str_slice(text, n ? n : 1, text.n);
}

static ptrdiff_t letters_of(struct str text)
{
    ptrdiff_t count = 0;
    for (; text.n; text = after_letter(text))
        count++;
    return count;
}

static double width_of(struct str text, int size)
{
    return LETTER * size * (double)letters_of(text);
}

// The text, or as much of it as fits with an ellipsis; in a name it is the end that tells.
static void put_fitting(struct buf *b, struct str text, int size, int width)
{
    const double letter = LETTER * size;
    ptrdiff_t most = (ptrdiff_t)((double)width / letter), letters = letters_of(text);
    buf_put_z(b, letters > most ? "…" : "");
    for (ptrdiff_t i = most - 1; letters > most && i < letters; i++)
        text = after_letter(text);
    put_escaped(b, text);
}

static double x_of(const struct chart *c, ptrdiff_t point)
{
    double share = c->points > 1 ? (double)point / (double)(c->points - 1) : 0;
    return (double)LEFT + share * (double)SPAN;
}

static double y_of(const struct panel *p, uint64_t bytes)
{
    return (double)p->floor - (double)bytes / (double)p->top * (double)PLOT;
}

static void put_layer(struct buf *b, const struct panel *p, ptrdiff_t layer)
{
    const struct chart *c = p->chart;
    buf_printf(b, "<polygon fill=\"%s\" points=\"", c->layers[layer].colour);
    for (ptrdiff_t i = 0; i < c->points; i++)
        buf_printf(b, "%.1f,%.1f ", x_of(c, i), y_of(p, chart_height(c, layer, i, i + 1)));
    for (ptrdiff_t i = c->points - 1; i >= 0; i--)
        buf_printf(b, "%.1f,%.1f ", x_of(c, i),
                   y_of(p, layer ? chart_height(c, layer - 1, i, i + 1) : 0));
    buf_put_z(b, "\"/>\n");
}

// ------------------------------------------------------------------ the grid

// The smallest round step that gives at most eight lines.
static uint64_t grid_step(uint64_t top)
{
    enum { LINES = 8 };
    static const uint64_t quarters[] = {GIB / 4, GIB / 2};
    static const uint64_t factors[] = {1, 2, 5};
    uint64_t unit = top >= GIB ? GIB : top >= 2 * MIB ? MIB : KIB;
    for (ptrdiff_t i = 0; i < COUNT_OF(quarters) && unit == GIB; i++)
        if (top / quarters[i] < LINES)
            return quarters[i];
    for (uint64_t power = 1; power < 1000000; power *= 10)
        for (ptrdiff_t i = 0; i < COUNT_OF(factors); i++)
            if (top / (factors[i] * power * unit) < LINES)
                return factors[i] * power * unit;
    return top;
}

static void put_mark(struct buf *b, uint64_t bytes, uint64_t step)
{
    const uint64_t unit = step % (GIB / 4) == 0 ? GIB : step % MIB == 0 ? MIB : KIB;
    const char *name = unit == GIB ? "GiB" : unit == MIB ? "MiB" : "KiB";
    buf_printf(b, step % unit ? "%.2f %s" : "%.0f %s", (double)bytes / (double)unit, name);
}

static void put_rule(struct buf *b, double y, const char *style)
{
    buf_printf(b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" %s/>\n", LEFT, WIDTH - RIGHT,
               y, y, style);
}

static void put_grid(struct buf *b, const struct panel *p)
{
    uint64_t step = grid_step(p->top);
    for (uint64_t at = 0; at <= p->top; at += step) {
        double y = y_of(p, at);
        put_rule(b, y, "stroke=\"#ccc\"");
        buf_printf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + 4);
        put_mark(b, at, step);
        buf_put_z(b, "</text>\n");
    }
}

// ------------------------------------------------------------------ lines

#define LIMIT_STYLE  "stroke=\"#c00\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\""
#define FAILED_STYLE "stroke=\"#c00\" stroke-width=\"1.5\""

static void put_lines(struct buf *b, const struct panel *p)
{
    const struct chart *c = p->chart;
    if (c->line.points) {
        buf_printf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"",
                   c->line.colour);
        for (ptrdiff_t i = 0; i < c->line.points; i++)
            buf_printf(b, "%.1f,%.1f ", x_of(c, i), y_of(p, c->line.values[i]));
        buf_put_z(b, "\"/>\n");
    }
    if (c->limit_bytes && c->limit_bytes <= p->top)
        put_rule(b, y_of(p, c->limit_bytes), LIMIT_STYLE);
    if (!c->failed)
        return;
    double x = x_of(c, c->failed_point);
    bool right = c->failed_point > c->points / 2;
    buf_printf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" " FAILED_STYLE "/>\n", x, x,
               p->floor - PLOT, p->floor);
    buf_printf(b,
               "<text x=\"%.1f\" y=\"%d\" fill=\"#c00\" text-anchor=\"%s\" stroke=\"#fff\" "
               "stroke-width=\"3\" paint-order=\"stroke\">out of memory</text>\n",
               right ? x - 6 : x + 6, p->floor - PLOT + 32, right ? "end" : "start");
}

// ------------------------------------------------------------------ the legend

struct legend {
    struct buf *out; // NULL: only to see how many rows there are
    int x, row, y;
};

// Leaves room for an entry, in the next row if need be.
static int place_entry(struct legend *l, struct str name)
{
    int width = SWATCH + (int)width_of(name, FONT);
    width = width < SPAN ? width : SPAN;
    if (l->x > LEFT && l->x + width > WIDTH - RIGHT) {
        l->x = LEFT;
        l->row++;
    }
    int x = l->x;
    l->x += width + ENTRY_GAP;
    return x;
}

static void add_name(struct legend *l, int x, struct str name)
{
    int y = l->y + ROW * l->row + 14;
    buf_printf(l->out, "<text x=\"%d\" y=\"%d\">", x + SWATCH, y);
    put_fitting(l->out, name, FONT, SPAN - SWATCH);
    buf_put_z(l->out, "</text>\n");
}

static void add_layer(struct legend *l, const struct chart_layer *layer)
{
    struct str name = str_from(layer->name);
    int x = place_entry(l, name);
    if (!l->out)
        return;
    buf_printf(l->out, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x,
               l->y + ROW * l->row + 4, layer->colour);
    add_name(l, x, name);
}

static void add_line(struct legend *l, struct str name, const char *style)
{
    int x = place_entry(l, name), y = l->y + ROW * l->row + 10;
    if (!l->out)
        return;
    buf_printf(l->out, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" %s/>\n", x, x + 14, y, y,
               style);
    add_name(l, x, name);
}

static void put_legend(struct legend *l, struct arena *a, const struct panel *p)
{
    const struct chart *c = p->chart;
    for (ptrdiff_t i = 0; i < c->layer_count; i++)
        add_layer(l, &c->layers[i]);
    if (c->line.points) {
        struct str style = str_format(a, "stroke=\"%s\" stroke-width=\"1.5\"", c->line.colour);
        add_line(l, str_from(c->line.name), str_z(a, style));
    }
    if (c->limit_bytes) {
        struct str size = bytes_text(a, c->limit_bytes);
        struct str name = str_format(a, "limit: %.*s%s", STR_ARGS(size),
                                     c->limit_bytes > p->top ? ", above the picture" : "");
        add_line(l, name, LIMIT_STYLE);
    }
}

static int legend_height(struct arena *a, const struct panel *p)
{
    struct legend l = {.x = LEFT};
    put_legend(&l, a, p);
    return ROW * (l.row + 1);
}

// ------------------------------------------------------------------ the picture

static void put_panel(struct buf *b, const struct panel *p)
{
    const struct chart *c = p->chart;
    buf_printf(b, "<text x=\"%d\" y=\"%d\" font-size=\"%d\">", LEFT, p->floor - PLOT - 16,
               TITLE_FONT);
    put_fitting(b, str_from(c->title), TITLE_FONT, SPAN);
    buf_put_z(b, "</text>\n");
    if (c->points && p->top) {
        put_grid(b, p);
        for (ptrdiff_t i = 0; i < c->layer_count; i++)
            put_layer(b, p, i);
        put_lines(b, p);
    }
    buf_printf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - RIGHT, p->floor + 20);
    put_fitting(b, str_from(c->time_axis), FONT, SPAN);
    buf_put_z(b, "</text>\n");
    struct legend l = {.out = b, .x = LEFT, .y = p->floor + AXIS};
    put_legend(&l, b->arena, p);
}

static uint64_t common_top(const struct chart *charts, ptrdiff_t count)
{
    uint64_t top = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        top = chart_top(&charts[i]) > top ? chart_top(&charts[i]) : top;
    return top;
}

void chart_svg(struct buf *out, const struct chart *charts, ptrdiff_t count,
               const struct activity *streams)
{
    struct buf panels = buf_in(out->arena);
    struct panel p = {.top = common_top(charts, count)};
    int y = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        p.chart = &charts[i];
        p.floor = y + TITLE + PLOT;
        put_panel(&panels, &p);
        y = p.floor + AXIS + legend_height(out->arena, &p) + PANEL_GAP;
    }
    if (streams)
        y = streams_svg(&panels, streams, y) + PANEL_GAP;
    y -= PANEL_GAP - 10;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"%d\">\n"
               "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
               WIDTH, y, FONT, WIDTH, y);
    buf_put(out, buf_str(&panels));
    buf_put_z(out, "</svg>\n");
}
