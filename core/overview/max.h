// Largest contexts: one in full, or many as tables, JSON and a heat map.
#ifndef FATHOM_OVERVIEW_MAX_H
#define FATHOM_OVERVIEW_MAX_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/search/sweep.h"

enum report_format { FORMAT_TEXT, FORMAT_MARKDOWN, FORMAT_CSV, FORMAT_HTML };

struct max_story {
    const struct sweep *sweep;
    const struct job *job; // of the last cell that is possible
    bool explain;
};

void report_max(struct buf *out, const struct view *v, const struct max_story *s); // one cell
void report_max_json(struct json_out *j, const struct max_story *s); // into an open object

void report_max_table(struct buf *out, const struct view *v, const struct max_story *s);
void report_max_markdown(struct buf *out, const struct max_story *s);
void report_max_csv(struct buf *out, const struct max_story *s);
void report_max_cells_json(struct json_out *j, const struct max_story *s);
void report_max_svg(struct buf *out, const struct max_story *s);

// Shared with the guide. Names of what the lists hold; a machine of several nodes is
// "4 x 8 x H100-80G".
struct str machine_text(struct arena *a, const struct hardware *h);
struct str model_text(const struct sweep *s, ptrdiff_t model);
void put_factor(struct buf *b, double factor); // "1.25"

// Of lengths that are found to fit but not vouched for, one sentence a model at most.
struct str length_warning(struct arena *a, const struct sweep *s, ptrdiff_t model);
void print_length_warnings(struct buf *out, const struct view *v, const struct sweep *s,
                           int indent);
void length_warnings_json(struct json_out *j, const struct sweep *s);

#endif
