// Reading the file a command works on.
#include "host/formats/document.h"

#include "host/files/file.h"
#include "host/files/inflate.h"
#include "host/formats/json_tree.h"

#define DOCUMENT_MAX_BYTES (INT64_C(4) << 30)

bool document_read(struct str *bytes, const struct value **tree, struct arena *a, struct str path,
                   struct error *e)
{
    bool standard_input = str_is(path, "-");
    struct str name = standard_input ? STR("standard input") : path;
    struct str raw, plain;
    if (!file_read(&raw, a, standard_input ? STR("/dev/stdin") : path, DOCUMENT_MAX_BYTES, e) ||
        !inflate_if_packed(&plain, a, raw, name, e))
        return false;
    struct str start = str_trim(str_slice(plain, 0, plain.n < 100 ? plain.n : 100));
    if (str_starts(start, STR("{"))) {
        struct value *root = NEW(a, struct value, 1);
        if (!json_tree(root, a, plain, name, e))
            return false;
        *tree = root;
    }
    *bytes = plain;
    return true;
}
