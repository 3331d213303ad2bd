// A file read piece by piece, for commands that need not hold it: a regular file, a pipe or "-" for
// standard input, unpacked on the way where it is a zlib or gzip stream (of several members too),
// as UTF-8 where it is UTF-16. What is no text is refused.
#ifndef FATHOM_HOST_FILES_STREAM_H
#define FATHOM_HOST_FILES_STREAM_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"

struct stream;

// NULL with *e set where the file cannot be opened.
struct stream *stream_open(struct arena *a, struct str path, struct error *e);

// The next piece, valid until the next call; empty at the end.
bool stream_next(struct str *piece, struct stream *s, struct error *e) MUST_USE;

// Whether a compressed file ended, or broke off, in its middle; known after the last piece.
bool stream_is_cut(const struct stream *s);

void stream_close(struct stream *s);

#endif
