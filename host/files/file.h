// Files by path: read whole or in part into an arena, and written whole or not at all. A path the
// user got wrong is bad input; a file the system will not let us read or write is an I/O error.
// Each failure names the path as the place. What is read is a regular file; anything may be read
// that is a descriptor of this process: /dev/stdin, or /dev/fd/63 as shells write for <(...).
#ifndef FATHOM_HOST_FILES_FILE_H
#define FATHOM_HOST_FILES_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"

enum path_kind {
    PATH_NONE, // nothing there, or nothing we may look at
    PATH_FILE, // anything but a folder, though reading refuses what is no regular file
    PATH_FOLDER,
};

enum path_kind path_kind(struct arena scratch, struct str path);
bool path_is_odd(struct arena scratch, struct str path); // a pipe, a socket or a device is there
struct str path_join(struct arena *a, struct str folder, struct str name);
struct str path_real(struct arena *a, struct str path); // from the root, links followed; or empty

// The whole file; one of unknown size (a pipe, /dev/stdin) is read up to `max_bytes`.
bool file_read(struct str *out, struct arena *a, struct str path, int64_t max_bytes,
               struct error *e) MUST_USE;

// A descriptor to read from, the caller's to close; -1 with *e set.
int file_open(struct arena scratch, struct str path, struct error *e);

struct file_part {
    int64_t offset, bytes;
};

// Fewer bytes than asked for when the file ends inside the part.
bool file_read_part(struct str *out, struct arena *a, struct str path, struct file_part part,
                    struct error *e) MUST_USE;

// Of a regular file; anything else is refused.
bool file_size(uint64_t *bytes, struct arena scratch, struct str path, struct error *e) MUST_USE;

enum file_existing { FILE_KEEP_EXISTING, FILE_REPLACE };

// Through a temporary file beside it, so that a reader never sees half of it.
bool file_write(struct arena scratch, struct str path, struct str content,
                enum file_existing existing, struct error *e) MUST_USE;

#endif
