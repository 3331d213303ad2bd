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

static bool flatten_file(struct settings *file, struct str path, struct error *e)
{
    struct str text;
    struct str source = str_is(path, "-") ? STR("/dev/stdin") : path;
    if (!file_read(&text, file->arena, source, REQUEST_MAX_BYTES, e) ||
        !flatten(file, without_byte_order_mark(text), path, e))
        return false;
    variables_resolve(file);
    return true;
}

// Where a script sources another that is there, beside it or where it says, that one is read, too:
// first, as its words come first.
static bool read_sourced(struct settings *out, struct foreign *f, struct settings *file,
                         struct str path, struct error *e)
{
    struct arena *a = out->arena;
    for (ptrdiff_t i = 0; i < file->count; i++) {
        struct setting *item = &file->items[i];
        struct str_cut folder = str_cut_last(path, '/');
        bool beside = !str_starts(item->value, STR("/")) && folder.found;
        struct settings sourced = settings_in(a);
        if (!str_starts(item->key, STR("sourced")) || !str_ends(item->value, STR(".sh")))
            continue;
        struct str place = beside ? path_join(a, folder.head, item->value) : item->value;
        if (path_kind(*a, place) != PATH_FILE)
            continue;
        if (!flatten_file(&sourced, place, e) || !foreign_read(out, f, &sourced, e))
            return false;
        item->key = str_format(a, "read.%.*s", STR_ARGS(item->key));
    }
    return true;
}

static bool read_file(struct settings *out, struct foreign *f, struct str path, struct error *e)
{
    struct settings file = settings_in(out->arena);
    return flatten_file(&file, path, e) && read_sourced(out, f, &file, path, e) &&
           foreign_read(out, f, &file, e);
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
