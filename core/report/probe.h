// What was probed: the published lines and table, and the store's trials as text, CSV, Markdown
// and JSON.
#ifndef FATHOM_REPORT_PROBE_H
#define FATHOM_REPORT_PROBE_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/probe/record.h"
#include "core/probe/story.h"

// "model_name = Qwen3-0.6B, trainer_gpu_num = 4, sp_num = 2, max_model_len = 40960"
void report_probe_line(struct buf *b, const struct probe_cell *c);

void report_probe(struct buf *b, const struct view *v, const struct probe_story *s);
void report_probe_json(struct json_out *j, const struct probe_story *s);
void report_plan_json(struct json_out *j, const struct probe_story *s); // of a dry run

struct records {
    const struct cell_record *cells;
    ptrdiff_t count;
};
void report_records(struct buf *b, const struct view *v, const struct records *r);
void report_records_csv(struct buf *b, const struct records *r);
void report_records_markdown(struct buf *b, const struct records *r);
void report_records_json(struct json_out *j, const struct records *r);

#endif
