// dlopen and dlsym. ISO C has no conversion from an object pointer to a function pointer, so the
// bytes are copied, as POSIX has it.
#include "host/system/library.h"

#include <dlfcn.h>
#include <string.h>

void *library_open(const char *const *names, ptrdiff_t count)
{
    void *library = NULL;
    for (ptrdiff_t i = 0; i < count && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

const char *library_bind(void *api, void *library, const struct library_symbol *symbols,
                         ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address && !symbols[i].optional)
            return symbols[i].name;
        memcpy((char *)api + symbols[i].offset, (const void *)&address, sizeof address);
    }
    return NULL;
}
