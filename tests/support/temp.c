// mkdtemp, and nftw at exit.
#include "tests/support/temp.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

enum { FOLDERS_MAX = 64, OPEN_MAX_FOLDERS = 8 };

static char names[FOLDERS_MAX][32];
static int count;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_all(void)
{
    for (int i = 0; i < count; i++)
        nftw(names[i], remove_one, OPEN_MAX_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

struct str temp_folder(struct arena *a)
{
    ASSERT(count < FOLDERS_MAX);
    if (count == 0)
        ASSERT(atexit(remove_all) == 0);
    char *name = names[count];
    ASSERT(snprintf(name, sizeof names[0], "/tmp/fathom-test-XXXXXX") > 0 && mkdtemp(name));
    count++;
    return str_copy(a, str_from(name));
}
