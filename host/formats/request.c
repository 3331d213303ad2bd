// What kind of file it is, its name says; which framework's, core finds out.
#include "host/formats/request.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "host/files/file.h"
#include "host/formats/json_in.h"
#include "host/formats/variables.h"
#include "host/formats/yaml_in.h"

enum { REQUEST_MAX_BYTES = 1 << 20, MOST_FILES = 64 };

static struct str without_byte_order_mark(struct str text)
{
    bool marked = str_starts(text, STR("\xEF\xBB\xBF"));
    return marked ? str_slice(text, 3, text.n) : text;
}

static bool flatten(struct settings *file, struct str text, struct str path, struct error *e)
{
    if (str_ends(path, STR(".sh")))
        return script_flatten(file, text, path, e);
    if (str_ends(path, STR(".json")))
        return json_flatten(file, text, STR_NONE, path, e);
    return yaml_flatten(file, text, path, e);
}

static bool read_file(struct settings *out, struct foreign *f, struct str path, struct error *e)
{
    struct str text;
    struct settings file = settings_in(out->arena);
    struct str source = str_is(path, "-") ? STR("/dev/stdin") : path;
    if (!file_read(&text, out->arena, source, REQUEST_MAX_BYTES, e) ||
        !flatten(&file, without_byte_order_mark(text), path, e))
        return false;
    variables_resolve(&file);
    return foreign_read(out, f, &file, e);
}

static bool is_request(struct str name)
{
    static const char *const endings[] = {".yaml", ".yml", ".json", ".sh"};
    for (ptrdiff_t i = 0; i < COUNT_OF(endings); i++)
        if (str_ends(name, str_from(endings[i])))
            return !str_starts(name, STR("."));
    return false;
}

static int by_name(const void *left, const void *right)
{
    const struct str *a = left, *b = right;
    ptrdiff_t n = a->n < b->n ? a->n : b->n;
    int order = n ? memcmp(a->p, b->p, (size_t)n) : 0;
    return order ? order : (a->n > b->n) - (a->n < b->n);
}

static bool read_folder(struct settings *out, struct foreign *f, struct str path, struct error *e)
{
    struct arena *a = out->arena;
    struct str *names = NEW(a, struct str, MOST_FILES);
    ptrdiff_t count = 0;
    DIR *listing = opendir(str_z(a, path));
    const struct dirent *entry;
    // readdir shares nothing between streams, and this stream is ours alone.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    while (listing && count < MOST_FILES && (entry = readdir(listing)) != NULL)
        if (is_request(str_from(entry->d_name)))
            names[count++] = str_copy(a, str_from(entry->d_name));
    if (listing)
        closedir(listing);
    if (!count)
        return FAIL(e, BAD_INPUT, path, "there is no .yaml, .json or .sh in this folder");
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (ptrdiff_t i = 0; i < count; i++)
        if (!read_file(out, f, path_join(a, path, names[i]), e))
            return false;
    return true;
}

bool request_read(struct settings *out, struct foreign *f, struct str path, struct error *e)
{
    bool folder = path_kind(*out->arena, path) == PATH_FOLDER;
    return folder ? read_folder(out, f, path, e) : read_file(out, f, path, e);
}
