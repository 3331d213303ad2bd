// Reading the file a command works on.
#include "host/formats/document.h"

#include "core/trace/pickle.h"
#include "host/files/file.h"
#include "host/files/inflate.h"
#include "host/formats/json_tree.h"

#define DOCUMENT_MAX_BYTES (INT64_C(4) << 30)

// Whether a file may be one of ours, from its first bytes: gigabytes of anything else need not be
// read to be refused. A pipe has no beginning that could be looked at first.
static bool may_be_read(struct arena scratch, struct str path, struct error *e)
{
    enum { START_BYTES = 512 };
    struct str start;
    struct error ignored = {0};
    if (!file_read_part(&start, &scratch, path, (struct file_part){0, START_BYTES}, &ignored) ||
        pickle_begins(start) || is_packed(start))
        return true;
    for (ptrdiff_t i = 0; i < start.n; i++)
        if (!start.p[i])
            return FAIL(e, BAD_INPUT, path,
                        "this is neither a snapshot nor a trace: byte %td of it is zero", i + 1);
    return true;
}

bool document_read(struct str *bytes, const struct value **tree, struct arena *a, struct str path,
                   struct error *e)
{
    bool standard_input = str_is(path, "-");
    struct str name = standard_input ? STR("standard input") : path;
    struct str raw, plain;
    if (!standard_input && !may_be_read(*a, path, e))
        return false;
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
