// Logs as the doctor reads them, for its tests.
#ifndef FATHOM_TESTS_LOGS_H
#define FATHOM_TESTS_LOGS_H

#include "core/doctor/internal.h"
#include "tests/support/t.h"

#define HEAD  "Traceback (most recent call last):\n"
#define FRAME "  File \"a.py\", line 3, in f\n    g()\n"

static inline struct doctor_result read_pieces(struct arena *a, struct str text, ptrdiff_t piece)
{
    struct doctor *d = doctor_new(a);
    for (ptrdiff_t at = 0; at < text.n; at += piece)
        doctor_feed(d, str_slice(text, at, at + piece < text.n ? at + piece : text.n));
    return doctor_end(d, a);
}

static inline struct doctor_result read_text(struct arena *a, const char *text)
{
    return read_pieces(a, str_from(text), PTRDIFF_MAX / 2);
}

static inline const char *kind_of(const struct doctor_result *r)
{
    return r->cause ? r->cause->kind->name : "-";
}

#endif
