// The time of a step, as text and as JSON.
#ifndef FATHOM_REPORT_STEP_TIME_H
#define FATHOM_REPORT_STEP_TIME_H

#include "core/base/json_out.h"
#include "core/predict/step_time.h"
#include "core/report/report.h"

void put_seconds(struct buf *b, double seconds); // three digits: "0.619 s"
void report_time(struct buf *out, const struct view *v, const struct step_time *t);
void report_time_json(struct json_out *j,
                      const struct step_time *t); // "time", and why there is none

#endif
