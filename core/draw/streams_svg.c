// See streams_svg.h.
#include "core/draw/streams_svg.h"

#include "core/draw/chart_layout.h"

enum { LANE = 34, LANE_GAP = 8, CALL = SWATCH + 120 };

static const struct {
    const char *name, *colour, *lane;
} works[WORK_KINDS] = {
    [WORK_PRODUCTS] = {"products", "#2a6f97", "compute"},
    [WORK_ATTENTION] = {"attention", "#52b69a", "compute"},
    [WORK_MEMORY] = {"memory-bound", "#f4a261", "compute"},
    [WORK_HOST_COPY] = {"host copies", "#6d597a", "copies"},
    [WORK_HOST_UPDATE] = {"optimizer on the host", "#b56576", "host"},
    [WORK_COLLECTIVE] = {"collectives", "#e76f51", "network"},
};

static const char *const lanes[] = {"compute", "network", "copies", "host"};

static bool is_in(int kind, int lane)
{
    return str_is(str_from(works[kind].lane), lanes[lane]);
}

static bool has_work(const struct activity *a, int kind)
{
    for (int i = 0; i < ACTIVITY_POINTS; i++)
        if (a->busy[kind][i] > 0)
            return true;
    return false;
}

static bool has_lane(const struct activity *a, int lane)
{
    for (int kind = 0; kind < WORK_KINDS; kind++)
        if (is_in(kind, lane) && has_work(a, kind))
            return true;
    return false;
}

// As much of each stretch, from below, as this kind and those before it take; several streams
// that communicate at once are no more than all of it.
static double height(const struct activity *a, int lane, int kind, int point)
{
    double sum = 0, width = a->seconds / (double)ACTIVITY_POINTS;
    for (int i = 0; i <= kind; i++)
        sum += is_in(i, lane) ? a->busy[i][point] : 0;
    return sum < width ? sum / width : 1;
}

// A polygon of steps, over what the kinds before it take.
static void put_work(struct buf *b, const struct activity *a, int lane, int kind)
{
    const double step = (double)SPAN / (double)ACTIVITY_POINTS;
    buf_printf(b, "<path fill=\"%s\" d=\"", works[kind].colour);
    for (int i = 0; i < ACTIVITY_POINTS; i++) {
        double low = kind ? height(a, lane, kind - 1, i) : 0, high = height(a, lane, kind, i);
        if (high > low)
            buf_printf(b, "M%.1f %.1fh%.1fv%.1fh-%.1fz", (double)LEFT + i * step,
                       (double)LANE * (1 - low), step, (double)LANE * (low - high), step);
    }
    buf_put_z(b, "\"/>\n");
}

static int put_lane(struct buf *b, const struct activity *a, int lane, int y)
{
    buf_printf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 8,
               y + LANE / 2 + 4, lanes[lane]);
    buf_printf(b,
               "<g transform=\"translate(0 %d)\"><rect x=\"%d\" width=\"%d\" height=\"%d\" "
               "fill=\"#f2f2f2\"/>\n",
               y, LEFT, SPAN, LANE);
    for (int kind = 0; kind < WORK_KINDS; kind++)
        if (is_in(kind, lane) && has_work(a, kind))
            put_work(b, a, lane, kind);
    buf_put_z(b, "</g>\n");
    return y + LANE + LANE_GAP;
}

int streams_svg(struct buf *b, const struct activity *a, int top)
{
    int y = top + TITLE, x = LEFT;
    buf_printf(b,
               "<text x=\"%d\" y=\"%d\" font-size=\"%d\">the last step's streams, "
               "%.3f s</text>\n",
               LEFT, y - 16, TITLE_FONT, a->seconds);
    for (int lane = 0; lane < COUNT_OF(lanes); lane++)
        if (has_lane(a, lane))
            y = put_lane(b, a, lane, y);
    for (int kind = 0; kind < WORK_KINDS; kind++)
        if (has_work(a, kind)) {
            buf_printf(b,
                       "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>"
                       "<text x=\"%d\" y=\"%d\">%s</text>\n",
                       x, y + 4, works[kind].colour, x + SWATCH, y + 14, works[kind].name);
            x += CALL;
        }
    return y + ROW;
}
