// Memory against time: a point for every safe configuration that was predicted, a line through
// those that no other beats in both, the best marked.
#include "core/draw/markup.h"
#include "core/overview/plan.h"

enum { WIDTH = 720, HEIGHT = 420, LEFT = 70, RIGHT = 24, TOP = 56, BOTTOM = 52, TICKS = 5 };

struct scale {
    double seconds, bytes; // at the right, at the top
};

static struct scale scale_of(const struct plan *p)
{
    struct scale most = {0, 0};
    const struct plan_candidate *c;
    for (ptrdiff_t f = 0, i = 0; (c = plan_next(p, &f, &i));) {
        if (!plan_is_safe(c))
            continue;
        double bytes = (double)c->prediction.reserved_bytes;
        most.seconds =
            c->prediction.time.seconds > most.seconds ? c->prediction.time.seconds : most.seconds;
        most.bytes = bytes > most.bytes ? bytes : most.bytes;
    }
    return (struct scale){most.seconds * 1.05, most.bytes * 1.08};
}

static double x_of(struct scale s, const struct plan_candidate *c)
{
    return (double)LEFT + (double)(WIDTH - LEFT - RIGHT) * c->prediction.time.seconds / s.seconds;
}

static double y_of(struct scale s, const struct plan_candidate *c)
{
    return (double)(HEIGHT - BOTTOM) -
           (double)(HEIGHT - TOP - BOTTOM) * (double)c->prediction.reserved_bytes / s.bytes;
}

static void put_axes(struct buf *b, struct scale s)
{
    for (int i = 0; i <= TICKS; i++) {
        int x = LEFT + (WIDTH - LEFT - RIGHT) * i / TICKS;
        int y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * i / TICKS;
        buf_printf(b,
                   "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>\n"
                   "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f</text>\n"
                   "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.3g</text>\n",
                   LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4,
                   s.bytes * i / (double)TICKS / (double)GIB, x, HEIGHT - BOTTOM + 18,
                   s.seconds * i / (double)TICKS);
    }
    buf_printf(b,
               "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">seconds a step</text>\n"
               "<text x=\"12\" y=\"%d\">GiB reserved</text>\n",
               (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, TOP - 12);
}

static void put_points(struct buf *b, const struct plan_shown *shown, struct scale s)
{
    const struct plan_story *story = shown->story;
    const struct plan_candidate *c;
    for (ptrdiff_t f = 0, i = 0; (c = plan_next(&story->plan, &f, &i));)
        if (plan_is_safe(c)) {
            buf_printf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#9ab\"><title>",
                       x_of(s, c), y_of(s, c));
            put_escaped(b, options_text(b->arena, plan_words(b->arena, c)));
            buf_put_z(b, "</title></circle>\n");
        }
    buf_put_z(b, "<polyline fill=\"none\" stroke=\"#1f7070\" stroke-width=\"2\" points=\"");
    for (int i = 0; i < story->front.count; i++)
        buf_printf(b, "%s%.1f,%.1f", i ? " " : "", x_of(s, story->front.points[i]),
                   y_of(s, story->front.points[i]));
    buf_put_z(b, "\"/>\n");
    buf_printf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"#c33\"/>\n",
               x_of(s, story->plan.best), y_of(s, story->plan.best));
}

void report_plan_svg(struct buf *out, const struct plan_shown *s)
{
    const struct plan *p = &s->story->plan;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"13\">\n"
               "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
               "<text x=\"12\" y=\"24\" font-size=\"16\">Memory against time, ",
               WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_escaped(out, str_short(p->job.model.name));
    buf_printf(out, ", %llu tokens%s</text>\n", (unsigned long long)p->job.context,
               p->best ? "" : ": nothing is safe");
    if (p->best) {
        put_axes(out, scale_of(p));
        put_points(out, s, scale_of(p));
    }
    buf_put_z(out, "</svg>\n");
}
