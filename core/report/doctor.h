// What a log said, as text and JSON, with the prediction beside it where there is one.
#ifndef FATHOM_REPORT_DOCTOR_H
#define FATHOM_REPORT_DOCTOR_H

#include "core/doctor/doctor.h"
#include "core/report/predict.h"

struct doctor_story {
    struct str name; // of the log
    struct doctor_result result;
    struct predict_story *job;  // NULL: the run is not described
    struct predict_story *need; // the same on a card without end, remedies in the same order
    struct str from_log;        // "--batch 2", of the log where no setting says it; empty: none
    struct str differences;     // lines: what log and settings say differently; empty: nothing
};

void report_doctor(struct buf *out, const struct view *v, const struct doctor_story *s);
void report_doctor_json(struct json_out *j, const struct doctor_story *s); // into an open object

#endif
