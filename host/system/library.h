// Shared libraries that may not be there, loaded when they are needed: a program that never
// downloads needs no libcurl, and one on a laptop no NVIDIA driver.
#ifndef FATHOM_HOST_SYSTEM_LIBRARY_H
#define FATHOM_HOST_SYSTEM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
    const char *name;
    size_t offset; // of the function pointer in the caller's struct
    bool optional; // left NULL when the library lacks it
};

// The first of the names that can be loaded, or NULL.
void *library_open(const char *const *names, ptrdiff_t count);

// Fills the function pointers of `api`; the name of the first one missing, or NULL when all are
// there.
const char *library_bind(void *api, void *library, const struct library_symbol *symbols,
                         ptrdiff_t count);

#endif
