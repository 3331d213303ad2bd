// The table as a heat map: one square a configuration, darker the longer its context (by doublings
// from the shortest that fits).
#include "core/draw/markup.h"
#include "core/overview/max.h"

enum { LEFT = 170, TOP = 64, CELL_WIDTH = 112, CELL_HEIGHT = 34, BELOW = 40, SHADES = 7 };

static const struct {
    const char *fill, *ink;
} shades[SHADES] = {
    {"#e0f3ec", "#123"}, {"#b9e2d4", "#123"}, {"#8ccfbb", "#123"}, {"#5fb8a2", "#123"},
    {"#38988a", "#fff"}, {"#1f7070", "#fff"}, {"#124a52", "#fff"},
};

struct reach {
    uint64_t least, most;
};

static struct reach reach_of(const struct sweep *s)
{
    struct reach reach = {UINT64_MAX, 0};
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        uint64_t context = s->cells[i].possible ? s->cells[i].capacity.context : 0;
        if (context && context < reach.least)
            reach.least = context;
        if (context > reach.most)
            reach.most = context;
    }
    return reach;
}

// Without a logarithm, which is not the same everywhere: by how many factors of the seventh part of
// the range (in doublings of an eighth) the context is above the least.
static int eighths_of_doubling(uint64_t from, uint64_t to)
{
    int count = 0;
    for (double at = (double)from; at < (double)to && count < 512; count++)
        at *= 1.0905077326652577; // 2 to the power of 1/8
    return count;
}

static int shade_of(struct reach reach, uint64_t context)
{
    int whole = eighths_of_doubling(reach.least, reach.most);
    int part = eighths_of_doubling(reach.least, context);
    return whole ? part * (SHADES - 1) / whole : SHADES / 2;
}

static void put_text(struct buf *b, int x, int y, const char *style, struct str text)
{
    buf_printf(b, "<text x=\"%d\" y=\"%d\" %s>", x, y, style);
    put_escaped(b, text);
    buf_put_z(b, "</text>\n");
}

static void put_cell(struct buf *b, const struct cell *c, struct reach reach, int x, int y)
{
    if (!c->possible)
        return;
    uint64_t context = c->capacity.context;
    int shade = context ? shade_of(reach, context) : 0;
    buf_printf(b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\"/>\n",
               x + 2, y + 2, CELL_WIDTH - 4, CELL_HEIGHT - 4,
               context ? shades[shade].fill : "#eeeeee");
    struct str style = str_format(b->arena, "text-anchor=\"middle\" fill=\"%s\"",
                                  context ? shades[shade].ink : "#777");
    struct str text = context ? str_format(b->arena, "%llu%s", (unsigned long long)context,
                                           capacity_needs_yarn(&c->capacity) ? " *" : "")
                              : STR("-");
    put_text(b, x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 5, style.p, text);
}

static struct str row_text(struct arena *a, const struct sweep *s, ptrdiff_t machine,
                           ptrdiff_t variant)
{
    struct str name = machine_text(a, &s->machines[machine].hardware);
    struct str size = s->variants[variant].name;
    if (!size.n)
        return name;
    return str_format(a, "%.*s, %s %.*s", STR_ARGS(name), s->varies, STR_ARGS(size));
}

static void put_row(struct buf *b, const struct sweep *s, ptrdiff_t row, int y)
{
    ptrdiff_t machine = row / s->variant_count, variant = row % s->variant_count;
    struct reach reach = reach_of(s);
    put_text(b, LEFT - 10, y + CELL_HEIGHT / 2 + 5, "text-anchor=\"end\"",
             row_text(b->arena, s, machine, variant));
    for (ptrdiff_t m = 0; m < s->model_count; m++)
        put_cell(b, sweep_cell(s, machine, variant, m), reach, LEFT + (int)m * CELL_WIDTH, y);
}

void report_max_svg(struct buf *out, const struct max_story *story)
{
    const struct sweep *s = story->sweep;
    struct buf rows = buf_in(out->arena);
    int y = TOP;
    for (ptrdiff_t row = 0; row < s->machine_count * s->variant_count; row++)
        if (sweep_row_is_possible(s, row / s->variant_count, row % s->variant_count)) {
            put_row(&rows, s, row, y);
            y += CELL_HEIGHT;
        }
    int width = LEFT + (int)s->model_count * CELL_WIDTH + 20, height = y + BELOW;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"13\">\n"
               "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
               width, height, width, height);
    put_text(out, 20, 26, "font-size=\"16\"", STR("Longest context that trains, in tokens"));
    for (ptrdiff_t m = 0; m < s->model_count; m++)
        put_text(out, LEFT + (int)m * CELL_WIDTH + CELL_WIDTH / 2, TOP - 8,
                 "text-anchor=\"middle\"", str_short(model_text(s, m)));
    buf_put(out, buf_str(&rows));
    put_text(out, 20, height - 14, "fill=\"#555\"",
             STR("- nothing fits; * longer than the model has positions (YaRN)"));
    buf_put_z(out, "</svg>\n");
}
