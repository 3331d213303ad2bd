// Folders by path: made with those above them, removed with all that is in them, and folders of our
// own in a place that others may write to as well.
#ifndef FATHOM_HOST_FILES_FOLDER_H
#define FATHOM_HOST_FILES_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"

// With the folders above it; one that is there already is left as it is.
bool folder_make(struct arena scratch, struct str path, struct error *e) MUST_USE;

// With everything in it. Links are removed, not followed, even those that somebody puts there
// meanwhile. One that is not there is fine.
bool folder_remove(struct arena scratch, struct str path, struct error *e) MUST_USE;

// A new folder that nobody else can enter, in TMPDIR, /tmp or XDG_RUNTIME_DIR: the first where
// there can be one whose path is no longer than `most`. Its name begins with `prefix` and cannot be
// known beforehand.
bool private_folder_make(struct str *path, struct arena *a, struct str prefix, ptrdiff_t most,
                         struct error *e) MUST_USE;

// Those of this prefix that are ours, as far as they can be removed; what others have put there
// under such a name is left alone.
void private_folders_remove(struct arena scratch, struct str prefix);

#endif
