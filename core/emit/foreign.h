// Configurations of frameworks as requests: what an Accelerate, DeepSpeed or Trinity-RFT file says
// of a job, as settings. A key that changes memory and is not known is refused, never read past.
#ifndef FATHOM_EMIT_FOREIGN_H
#define FATHOM_EMIT_FOREIGN_H

#include "core/settings/settings.h"

struct foreign {
    const char *format; // NULL: a request of our own
    const char *recipe; // whose step the file means, NULL for the default
    uint64_t machines;  // 0: not said
    uint64_t processes; // that train, on all machines; 0: not said
    struct str where;   // of the number of processes
};

// Adds what `file`, a flattened document, sets. A request of our own adds nothing.
bool foreign_settings(struct settings *out, struct foreign *f, const struct settings *file,
                      struct error *e) MUST_USE;

// A bare card's name becomes as many of them as the file has processes; another number is refused.
bool foreign_gpu(struct settings *s, const struct foreign *f, struct error *e) MUST_USE;

#endif
