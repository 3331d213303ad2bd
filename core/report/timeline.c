// Memory over the steps of a simulated history, by who holds it, as a picture and as numbers.
#include "core/base/num.h"
#include "core/base/units.h"
#include "core/models/trainer.h"
#include "core/report/predict.h"

struct drawing {
    uint64_t now[MEMORY_KINDS], total, best_total;
    uint64_t *values[MEMORY_KINDS]; // [points]
};

static void sample(struct drawing *t, ptrdiff_t point)
{
    if (t->total < t->best_total)
        return;
    t->best_total = t->total;
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        t->values[kind][point] = t->now[kind];
}

static ptrdiff_t point_of(const struct trace *trace, ptrdiff_t event, ptrdiff_t points)
{
    ptrdiff_t last = trace->count - 1;
    return (ptrdiff_t)((int64_t)(event < last ? event : last) * points / trace->count);
}

// Who owns each block right now, by handle. A block that another stream still uses is there.
static void follow(struct drawing *t, const struct trace *trace, uint8_t *owners, ptrdiff_t points)
{
    ptrdiff_t last = -1;
    for (ptrdiff_t i = 0; i < trace->count; i++) {
        const struct event *e = &trace->events[i];
        ptrdiff_t point = point_of(trace, i, points);
        bool freed = e->kind == EVENT_FREE || e->kind == EVENT_FREE_COMPLETED;
        if (e->kind == EVENT_ALLOC)
            owners[e->block] = (uint8_t)e->tag;
        if (e->kind == EVENT_ALLOC || freed) {
            uint64_t signed_bytes = freed ? 0 - e->bytes : e->bytes;
            t->now[owners[e->block]] += signed_bytes;
            t->total += signed_bytes;
        }
        if (point != last)
            t->best_total = 0;
        last = point;
        sample(t, point);
    }
}

static bool is_empty(const uint64_t *values, ptrdiff_t points)
{
    for (ptrdiff_t i = 0; i < points; i++)
        if (values[i])
            return false;
    return true;
}

static struct chart timeline_chart(struct arena *a, const struct replayed *r, const char *title)
{
    static const char *const colours[] = {
        "#999999", "#264653", "#2a9d8f", "#e9c46a", "#f4a261", "#e76f51",
        "#8ab17d", "#a8dadc", "#457b9d", "#6d597a", "#b56576", "#adb5bd",
    };
    _Static_assert(COUNT_OF(colours) == (int)MEMORY_KINDS, "a colour for each kind");
    _Static_assert((int)CHART_MAX_LAYERS >= (int)MEMORY_KINDS, "a layer for each kind");
    const struct trace *trace = &r->history->trace;
    struct drawing *t = NEW(a, struct drawing, 1);
    ptrdiff_t points = r->series->count;
    struct chart chart = {.title = title,
                          .time_axis = "three steps from a fresh process",
                          .line = {"reserved by torch", "#111", r->series->reserved_bytes, points},
                          .points = points,
                          .limit_bytes = r->limit_bytes,
                          .failed = r->result->ooms > 0};
    if (chart.failed) {
        chart.failed_point = point_of(trace, r->result->oom_event, points);
        chart.line.points = chart.failed_point + 1;
        chart.time_axis = "three steps from a fresh process, drawn on beyond the failure";
    }
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        t->values[kind] = NEW(a, uint64_t, points);
    follow(t, trace, NEW(a, uint8_t, (ptrdiff_t)trace->block_count + 1), points);
    for (int kind = 1; kind < MEMORY_KINDS; kind++)
        if (!is_empty(t->values[kind], points))
            chart.layers[chart.layer_count++] = (struct chart_layer){
                memory_kind_name((enum memory_kind)kind), colours[kind], "█", t->values[kind]};
    return chart;
}

void report_timeline(struct buf *svg, const struct replayed *r, const char *title)
{
    struct chart chart = timeline_chart(svg->arena, r, title);
    chart_svg(svg, &chart, 1, r->streams);
}

static void values_json(struct json_out *j, const uint64_t *values, ptrdiff_t count)
{
    json_out_array(j);
    for (ptrdiff_t i = 0; i < count; i++)
        json_out_u64(j, values[i]);
    json_out_array_end(j);
}

// Where each begins.
static void marks_json(struct json_out *j, const struct history *h, ptrdiff_t points)
{
    json_out_key(j, "phases");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < h->phase_count; i++) {
        const struct phase_mark *mark = &h->phases[i];
        json_out_object(j);
        json_out_field_u64(j, "point", (uint64_t)point_of(&h->trace, mark->event, points));
        json_out_field_str(j, "phase", str_from(phase_name(mark->phase)));
        json_out_field_u64(j, "step", (uint64_t)mark->step);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

void report_timeline_json(struct buf *out, const struct replayed *r)
{
    struct chart chart = timeline_chart(out->arena, r, "");
    struct json_out j = json_out_to(out);
    json_out_object(&j);
    json_out_field_u64(&j, "points", (uint64_t)chart.points);
    json_out_field_u64(&j, "limit_bytes", chart.limit_bytes);
    json_out_key(&j, "failed_point");
    if (chart.failed)
        json_out_u64(&j, (uint64_t)chart.failed_point);
    else
        json_out_null(&j);
    json_out_key(&j, "reserved_bytes");
    values_json(&j, chart.line.values, chart.line.points);
    json_out_key(&j, "layers");
    json_out_array(&j);
    for (ptrdiff_t i = 0; i < chart.layer_count; i++) {
        json_out_object(&j);
        json_out_field_str(&j, "what", str_from(chart.layers[i].name));
        json_out_key(&j, "bytes");
        values_json(&j, chart.layers[i].values, chart.points);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    marks_json(&j, r->history, chart.points);
    json_out_object_end(&j);
    json_out_end(&j);
}
