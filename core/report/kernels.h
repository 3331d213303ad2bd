// What a card was measured to do, beside what is assumed of it.
#ifndef FATHOM_REPORT_KERNELS_H
#define FATHOM_REPORT_KERNELS_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/time/benchmark.h"

void report_kernels(struct buf *out, const struct view *v, const struct measured_constants *m);
void report_kernels_json(struct json_out *j, const struct measured_constants *m);

#endif
