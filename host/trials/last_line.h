// The last line that a command wrote, for the sentence that says how it ended.
#ifndef FATHOM_HOST_TRIALS_LAST_LINE_H
#define FATHOM_HOST_TRIALS_LAST_LINE_H

#include "core/base/arena.h"
#include "core/base/str.h"

enum { LAST_LINE_BYTES = 4096 };

struct last_line {
    char tail[LAST_LINE_BYTES];
    ptrdiff_t length;
};

void last_line_feed(struct last_line *l, struct str bytes);

// Without colour and control characters, lines of JSON for Fathom passed over; empty where there is
// none.
struct str last_line_text(const struct last_line *l, struct arena *a);

#endif
