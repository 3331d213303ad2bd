// The file a command works on: read whole, unpacked where it is compressed, and parsed where it is
// JSON. What else it may be is core's to find out.
#ifndef FATHOM_HOST_FORMATS_DOCUMENT_H
#define FATHOM_HOST_FORMATS_DOCUMENT_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/value.h"

// "-" is standard input. *tree stays NULL unless the file is JSON.
bool document_read(struct str *bytes, const struct value **tree, struct arena *a, struct str path,
                   struct error *e) MUST_USE;

#endif
