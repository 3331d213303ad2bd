// The guide as terminal tables, CSV, JSON, and a whole document.
#ifndef FATHOM_OVERVIEW_GUIDE_H
#define FATHOM_OVERVIEW_GUIDE_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/draw/page.h"
#include "core/search/guide.h"

void report_guide(struct buf *out, const struct view *v, const struct guide *g);
void report_guide_csv(struct buf *out, const struct guide *g);
void report_guide_json(struct json_out *j, const struct guide *g); // into an open object
void report_guide_page(const struct page *p, const struct guide *g);

#endif
