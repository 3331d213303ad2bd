// Batches that are not all alike: what rows that are not full mean, which steps were played, and
// which batches they had.
#ifndef FATHOM_REPORT_BATCHES_H
#define FATHOM_REPORT_BATCHES_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/predict/predict.h"

// Which step of the job was played as the `played`-th, from 1.
uint64_t step_number(const struct job *job, int played);

void report_steps(struct buf *out, const struct view *v, const struct job *job,
                  const struct prediction *p);
void report_rows(struct buf *out, const struct view *v, const struct job *job);
void report_batches_json(struct json_out *j, const struct job *job); // nothing where all are alike

#endif
