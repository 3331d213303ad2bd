// Folders for tests that touch files: each is fresh, and all are removed when the program ends.
#ifndef FATHOM_TESTS_TEMP_H
#define FATHOM_TESTS_TEMP_H

#include "core/base/arena.h"
#include "core/base/str.h"

struct str temp_folder(struct arena *a);

#endif
