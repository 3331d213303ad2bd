// A division of GPUs between roles, as text and as JSON.
#ifndef FATHOM_OVERVIEW_SPLIT_H
#define FATHOM_OVERVIEW_SPLIT_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/search/split.h"

struct split_story {
    const struct split_request *request;
    const struct split_result *answer;
};

void report_split(struct buf *out, const struct view *v, const struct split_story *s);

// Writes its fields into an open object.
void report_split_json(struct json_out *j, const struct split_story *s);

#endif
