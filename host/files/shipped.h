// The files of share/, which trials need at run time, as the program carries them.
#ifndef FATHOM_HOST_FILES_SHIPPED_H
#define FATHOM_HOST_FILES_SHIPPED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

struct shipped_file {
    const char *name;
    const unsigned char *bytes;
    size_t count;
};

extern const struct shipped_file
    shipped_files[]; // made from share/; ends with a row without a name

// Writes all of them into the folder, which is made.
bool shipped_write(struct arena scratch, struct str folder, struct error *e) MUST_USE;

#endif
