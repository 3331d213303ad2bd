// Compressed files: zlib and gzip streams are unpacked, anything else is passed on as it is.
#ifndef FATHOM_HOST_FILES_INFLATE_H
#define FATHOM_HOST_FILES_INFLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"

bool is_packed(struct str in); // whether the bytes begin as such a stream does

// A stream that is broken, or would unpack to more than 4 GiB or 200 times its size, is refused.
bool inflate_if_packed(struct str *out, struct arena *a, struct str in, struct str name,
                       struct error *e) MUST_USE;

#endif
