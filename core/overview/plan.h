// A plan as text, JSON and a picture.
#ifndef FATHOM_OVERVIEW_PLAN_H
#define FATHOM_OVERVIEW_PLAN_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/plan/story.h"

// The story, and the command lines of its best configuration.
struct plan_shown {
    const struct plan_story *story;
    const struct settings *settings; // of the best
    const struct job *job;           // the same
    struct str predict, emit;
    struct str changes[PLAN_MOST_CHANGES]; // of each, the command that predicts it
};

void report_plan(struct buf *out, const struct view *v, const struct plan_shown *s);
void plan_story_json(struct json_out *j, const struct plan_shown *s); // into an open object
void report_plan_svg(struct buf *out, const struct plan_shown *s);    // memory against time

// "strategy=zero3 batch=2" as "--strategy zero3 --batch 2".
struct str options_text(struct arena *a, struct str words);

#endif
