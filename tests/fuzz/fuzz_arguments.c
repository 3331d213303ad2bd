// Any bytes, split at line feeds, as the program's arguments. What is accepted belongs to the
// command; what is refused is bad input with a message.
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { MOST_ARGUMENTS = 64 };

static char block[4 << 20];

static void check_options(const struct options *o)
{
    ASSERT(o->version || o->command);
    for (ptrdiff_t i = 0; i < o->settings.count; i++)
        ASSERT(command_takes(o->command, o->settings.items[i].key));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena a = arena_over(block, sizeof block, NULL);
    const char *argv[MOST_ARGUMENTS] = {"fathom"};
    int argc = 1;
    char *text = NEW(&a, char, (ptrdiff_t)size + 1);
    if (size)
        memcpy(text, data, size);
    for (char *next = text; next && argc < MOST_ARGUMENTS; argc++) {
        argv[argc] = next;
        next = strchr(next, '\n');
        if (next)
            *next++ = 0;
    }
    struct options o;
    struct error e = {0};
    bool ok = options_read(&o, &a, argc, argv, &e);
    ASSERT(ok == (e.code == ERROR_NONE));
    ASSERT(ok || (e.code == ERROR_BAD_INPUT && e.message[0]));
    if (ok)
        check_options(&o);
    return 0;
}
