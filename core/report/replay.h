// A replayed history as text, JSON and pictures.
#ifndef FATHOM_REPORT_REPLAY_H
#define FATHOM_REPORT_REPLAY_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/draw/chart.h"
#include "core/replay/moment.h"
#include "core/replay/replay.h"

struct replay_story {
    struct str name;
    bool recorded;             // the history holds the driver's events
    ptrdiff_t unknown_actions; // events that were passed over
    struct allocator_options options;
    struct replay_result result;
    struct replay_series series;
    ptrdiff_t events;     // of the history,
    struct moment moment; // at the allocated peak, or where memory ran out
    bool at_oom;
    struct str *block_owners;   // of moment.blocks
    struct str *segment_owners; // of the largest block in moment.segments
    struct replay_result other; // the same program in the other mode
    bool has_what_if;
    struct allocator_options what_if_options;
    struct replay_result what_if;
    struct replay_series what_if_series;
    ptrdiff_t what_if_events; // and of the program behind it
};

void report_replay(struct buf *out, const struct view *v, const struct replay_story *s);
void report_replay_json(struct json_out *j, const struct replay_story *s); // into an open object

// What came of one way to play it.
struct replay_outcome {
    const struct allocator_options *options;
    const struct replay_result *result;
    const struct replay_series *series;
    ptrdiff_t events;
};

struct replay_outcome replay_recorded(const struct replay_story *s);
struct replay_outcome replay_what_if(const struct replay_story *s);

// The series as layers: allocated, and cached but not allocated.
struct chart replay_chart(struct arena *a, const struct replay_outcome *o, const char *title);

// The history as it was and, where something else was asked for, as it would have been.
void report_replay_svg(struct buf *svg, const struct replay_story *s);

#endif
