// The ways to make up a batch, as text and JSON.
#ifndef FATHOM_OVERVIEW_BATCH_H
#define FATHOM_OVERVIEW_BATCH_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/plan/batch.h"

struct batch_shown {
    const struct batch_story *story;
    struct str predict; // the command of the best
};

void report_batch(struct buf *out, const struct view *v, const struct batch_shown *s);
void report_batch_json(struct json_out *j, const struct batch_shown *s); // into an open object

#endif
