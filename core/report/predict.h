// A prediction as text, JSON and pictures.
#ifndef FATHOM_REPORT_PREDICT_H
#define FATHOM_REPORT_PREDICT_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/draw/chart.h"
#include "core/predict/predict.h"
#include "core/search/remedy.h"

struct predict_story {
    const struct job *job;
    struct prediction prediction;
    struct remedies remedies;
    bool explain;
    uint64_t unsharded_bytes; // allocated on each GPU if nothing were sharded; 0: not asked
};

// What is trained and how, in one sentence.
void report_job(struct buf *out, const struct view *v, const struct job *job);

// What a prediction of it rests on that nobody measured, if anything.
void report_unmeasured(struct buf *out, const struct view *v, const struct job *job);

void report_predict(struct buf *out, const struct view *v, const struct predict_story *s);
void report_predict_json(struct json_out *j, const struct predict_story *s); // into an open object
void report_peak_json(struct json_out *j, const struct prediction *p); // of the training steps

// A simulated history, and what came of replaying it.
struct replayed {
    const struct history *history;
    const struct replay_result *result;
    const struct replay_series *series;
    uint64_t limit_bytes;
    const struct activity *streams; // of the last step; NULL where its time is not known
};

// Memory by kind over the three steps, with what torch reserves for it; and the streams of the
// last.
void report_timeline(struct buf *svg, const struct replayed *r, const char *title);
void report_timeline_json(struct buf *out, const struct replayed *r); // the same as numbers

#endif
