// Memory over time as stacked layers with lines over them, drawn from one description: in the
// terminal and as SVG. Time runs in equal stretches; a value is the layer's size in that stretch.
#ifndef FATHOM_DRAW_CHART_H
#define FATHOM_DRAW_CHART_H

#include <stdint.h>

#include "core/base/view.h"
#include "core/time/activity.h"

enum { CHART_MAX_LAYERS = 12 };

struct chart_layer {
    const char *name;
    const char *colour;     // of SVG
    const char *cell;       // one character of the terminal's picture
    const uint64_t *values; // [points], bytes
};

// SVG only. It ends where its values do: a run that failed goes no further.
struct chart_line {
    const char *name, *colour;
    const uint64_t *values;
    ptrdiff_t points; // at most those of the chart; 0: no line
};

struct chart {
    const char *title;
    const char *time_axis; // what runs from left to right: "events", "three steps"
    struct chart_layer layers[CHART_MAX_LAYERS]; // from the bottom up
    ptrdiff_t layer_count;
    struct chart_line line;
    ptrdiff_t points;
    uint64_t limit_bytes;   // drawn as a line; 0 for none
    bool failed;            // out of memory,
    ptrdiff_t failed_point; // here
};

void chart_text(struct buf *out, const struct view *v, const struct chart *c);

// One below the other, to the same scale; then what streams do, unless that is NULL.
void chart_svg(struct buf *out, const struct chart *charts, ptrdiff_t count,
               const struct activity *streams);

// Shared by both: the sum of layers 0..layer at the point where the whole is largest within
// [from, to).
uint64_t chart_height(const struct chart *c, ptrdiff_t layer, ptrdiff_t from, ptrdiff_t to);
uint64_t chart_top(const struct chart *c); // the largest value, or the limit where it is near

#endif
