// The lines of JSON that a trainer may print for Fathom among its other output: versions, and the
// peaks of each step.
#ifndef FATHOM_HOST_TRIALS_WORKER_LINES_H
#define FATHOM_HOST_TRIALS_WORKER_LINES_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/probe/record.h"

enum { WORKER_LINE_BYTES = 16 * 1024, WORKER_NAME_BYTES = 128, WORKER_MOST_STEPS = 1000 };

struct worker_lines;

// Called as lines come; either may be NULL. Steps after the first WORKER_MOST_STEPS are not told.
struct worker_watch {
    void *context;
    void (*start)(void *context, const struct worker_lines *w);
    void (*step)(void *context, const struct step_record *step);
};

struct worker_lines {
    struct arena scratch;
    struct worker_watch watch;
    char versions[WORKER_NAME_BYTES], gpu[WORKER_NAME_BYTES]; // of the line "start"
    uint64_t total_bytes;                                     // likewise
    uint64_t ranks;      // that are played, of which the process that says so is the first
    bool queued;         // the job has said that it waits for its turn, and not yet that it runs
    struct peaks peaks;  // the largest over steps
    bool done;           // of the line "done"
    struct error unread; // why a line of ours could not be read, if one could not
    char line[WORKER_LINE_BYTES];
    ptrdiff_t length; // of the unfinished line; -1: it is not for us
};

void worker_lines_feed(struct worker_lines *w, struct str bytes);
void worker_lines_end(struct worker_lines *w); // after the last of them

#endif
