// A verdict in words: what it is, why it is not a better one, and how sure it is.
#ifndef FATHOM_REPORT_VERDICT_H
#define FATHOM_REPORT_VERDICT_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/predict/host.h"
#include "core/predict/verdict.h"

enum ink verdict_ink(const struct verdict *v);

// Why it is tight, as one sentence without a point: what is free against what may be missing, the
// flushes. Empty where it is not.
void put_tight_because(struct buf *b, const struct verdict *v);

// "needs 3.50 TiB of host memory on a node that has 2.00 TiB"
void put_host_short(struct buf *b, const struct verdict *v, const struct host_bytes *host);

// "host memory: 59.94 GiB on each node, of 128.00 GiB", what a job leaves there against what there
// is, if that was said; nothing of a job that leaves none.
void report_host(struct buf *out, const struct view *v, uint64_t bytes, const struct wanted *w);

// What the driver will show, and what that rests on.
void put_confidence(struct buf *b, const struct verdict *v);

void verdict_json(struct json_out *j, const struct verdict *v); // into an open object

#endif
