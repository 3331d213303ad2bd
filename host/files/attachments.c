// Writing an answer's files, all or none as far as can be seen beforehand.
#include "host/files/attachments.h"

#include "host/files/file.h"
#include "host/files/folder.h"

static bool all_are_new(struct arena scratch, const struct answer *a, struct error *e)
{
    for (ptrdiff_t i = 0; i < a->attachment_count; i++) {
        struct str path = a->attachments[i].path;
        if (path_kind(scratch, path) == PATH_NONE)
            continue;
        FAIL(e, BAD_INPUT, path, "this file exists already, and nothing was written");
        return HINT(e, "--force writes over it");
    }
    return true;
}

bool attachments_write(struct arena scratch, const struct answer *a, struct error *e)
{
    if (a->folder.n && !folder_make(scratch, a->folder, e))
        return false;
    if (a->keep_existing && !all_are_new(scratch, a, e))
        return false;
    for (ptrdiff_t i = 0; i < a->attachment_count; i++)
        if (!file_write(scratch, a->attachments[i].path, a->attachments[i].content,
                        a->keep_existing ? FILE_KEEP_EXISTING : FILE_REPLACE, e))
            return false;
    return true;
}
