// What a step's streams do, drawn below its memory: a row for each of computing, communication,
// copies and the host's own work that there is.
#ifndef FATHOM_DRAW_STREAMS_SVG_H
#define FATHOM_DRAW_STREAMS_SVG_H

#include "core/base/buf.h"
#include "core/time/activity.h"

int streams_svg(struct buf *b, const struct activity *a, int top); // returns where it ends

#endif
