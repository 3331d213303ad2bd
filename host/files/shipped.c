// Putting shipped files where an interpreter can read them.
#include "host/files/shipped.h"

#include "host/files/file.h"
#include "host/files/folder.h"

bool shipped_write(struct arena scratch, struct str folder, struct error *e)
{
    for (const struct shipped_file *f = shipped_files; f->name; f++) {
        struct arena a = scratch;
        struct str path = path_join(&a, folder, str_from(f->name));
        struct str content = {(const char *)f->bytes, (ptrdiff_t)f->count};
        if (!folder_make(a, str_cut_last(path, '/').head, e) ||
            !file_write(a, path, content, FILE_REPLACE, e))
            return false;
    }
    return true;
}
