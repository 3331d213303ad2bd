// The lines of JSON that a trainer may print for Fathom among its other output: versions and peaks.
#ifndef FATHOM_HOST_WORKER_LINES_H
#define FATHOM_HOST_WORKER_LINES_H

#include "core/base/buf.h"
#include "core/probe/record.h"

enum { WORKER_LINE_BYTES = 16 * 1024 };

enum { WORKER_NAME_BYTES = 128 };

struct worker_lines {
    struct arena scratch;
    char versions[WORKER_NAME_BYTES], gpu[WORKER_NAME_BYTES]; // of the line "start"
    struct peaks peaks;                                       // the largest over steps
    bool done;                                                // of the line "done"
    char line[WORKER_LINE_BYTES];
    ptrdiff_t length; // of the unfinished line; -1: it is not for us
};

void worker_lines_feed(struct worker_lines *w, struct str bytes);

#endif
