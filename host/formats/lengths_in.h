// The lengths of a user's data (--data FILE), for core to count with: a number on each line, or
// JSON lines. They go among the settings in equal parts, each by its mean; where batches may
// differ, one by one, too, in the file's order.
#ifndef FATHOM_HOST_FORMATS_LENGTHS_IN_H
#define FATHOM_HOST_FORMATS_LENGTHS_IN_H

#include "core/base/error.h"
#include "core/settings/settings.h"

// Nothing where no file is named.
bool lengths_resolve(struct settings *s, struct error *e) MUST_USE;

#endif
