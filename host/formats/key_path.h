// The dotted key of the value being read while a nested document is flattened: parts are pushed on
// the way down and cut off on the way up. Its length is bounded, so that a small document with one
// long key cannot turn into gigabytes of copied keys.
#ifndef FATHOM_HOST_FORMATS_KEY_PATH_H
#define FATHOM_HOST_FORMATS_KEY_PATH_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/str.h"

enum { KEY_PATH_MAX_BYTES = 1000, FLATTEN_MAX_DEPTH = 32 };

struct key_path {
    char text[KEY_PATH_MAX_BYTES];
    ptrdiff_t n;
    ptrdiff_t prefix; // bytes of `text` that no dot follows
};

// `prefix` is put before every key as it is.
bool key_path_init(struct key_path *k, struct str prefix, struct str where,
                   struct error *e) MUST_USE;

// Refuses a part that is empty, holds a NUL or makes the key too long.
bool key_path_push(struct key_path *k, struct str part, struct str where, struct error *e) MUST_USE;
bool key_path_push_index(struct key_path *k, ptrdiff_t index, struct str where,
                         struct error *e) MUST_USE;

void key_path_cut(struct key_path *k, ptrdiff_t n); // back to an earlier length
struct str key_path_str(const struct key_path *k);  // valid until the next push or cut

#endif
