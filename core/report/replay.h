// A replayed history as text, JSON and pictures.
#ifndef FATHOM_REPORT_REPLAY_H
#define FATHOM_REPORT_REPLAY_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/replay/moment.h"
#include "core/replay/replay.h"
#include "core/report/chart.h"

struct replay_story {
    struct str name;
    bool recorded;             // the history holds the driver's events
    ptrdiff_t unknown_actions; // events that were passed over
    struct allocator_options options;
    struct replay_result result;
    struct replay_series series;
    struct moment moment; // at the allocated peak, or where memory ran out
    bool at_oom;
    struct str *block_owners;   // of moment.blocks
    struct str *segment_owners; // of the largest block in moment.segments
    struct replay_result other; // the same program in the other mode
    bool has_what_if;
    struct allocator_options what_if_options;
    struct replay_result what_if;
};

void report_replay(struct buf *out, const struct view *v, const struct replay_story *s);
void report_replay_json(struct json_out *j, const struct replay_story *s); // into an open object

// The series as layers: allocated, and cached but not allocated. `cached` has room for the points.
struct chart replay_chart(const struct replay_story *s, const char *title, uint64_t *cached);

#endif
