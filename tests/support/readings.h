// Files of frameworks as tests write them, a row each, and what must be read of them.
#ifndef FATHOM_TESTS_READINGS_H
#define FATHOM_TESTS_READINGS_H

#include "core/foreign/foreign.h"
#include "tests/support/t.h"

#define BUCKETS                                                                               \
    " zero-buckets=deepspeed?run/file.yaml:1:1: predicted with DeepSpeed's own buckets, 500 " \
    "million elements; \"auto\" in its JSON file makes them small"

#define COMPILED                                                                          \
    "!torch.compile is not modelled; in the one job that was measured it took allocated " \
    "memory from 32.7 to 21.1 GiB, so that the prediction without this key is an upper "  \
    "bound: take it out and ask again"

#define STAGE "zero_optimization.stage=2 zero_optimization.reduce_bucket_size=auto "

// A file's keys and, after " | ", what the user gives beside it; what is read of it: settings, with
// "-" for one that must not be there, "!" and the error, or "?" and a note after them.
struct reading {
    const char *file, *says;
};

struct str value_of(const struct settings *s, const char *key);
bool read_text(struct settings *read, struct foreign *f, struct str text, struct error *e);
void check_says(struct arena *a, const struct settings *read, struct str says);
void check_readings(const struct reading *rows, ptrdiff_t count);

#endif
