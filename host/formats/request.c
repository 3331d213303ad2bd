// What kind of file it is, its name says, or its first line; which framework's, core finds out.
#include "host/formats/request.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "host/files/file.h"
#include "host/formats/json_in.h"
#include "host/formats/variables.h"
#include "host/formats/yaml_in.h"

enum { REQUEST_MAX_BYTES = 1 << 20, MOST_FILES = 64, MOST_READ = 128, DEEPEST = 4 };

#define SCRIPTS   ".sh .sbatch .slurm"
#define DOCUMENTS ".yaml .yml .json"

struct request {
    struct settings *out;
    struct foreign *found;
    int files; // read so far, with those that others name
};

static struct str without_byte_order_mark(struct str text)
{
    bool marked = str_starts(text, STR("\xEF\xBB\xBF"));
    return marked ? str_slice(text, 3, text.n) : text;
}

static bool ends_with_one_of(struct str name, const char *endings)
{
    struct words ending = words_of(endings, ' ');
    while (words_next(&ending))
        if (str_ends(name, ending.word))
            return true;
    return false;
}

static bool flatten(struct settings *file, struct str text, struct str path, struct error *e)
{
    if (ends_with_one_of(path, SCRIPTS) || str_starts(text, STR("#!")))
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

static bool is_regular(struct arena scratch, struct str path)
{
    return path_kind(scratch, path) == PATH_FILE && !path_is_odd(scratch, path);
}

// A regular file of this name, beside the one that names it or else from the current folder.
static bool find_named(struct str *place, struct arena *a, struct str name, struct str path)
{
    struct str_cut folder = str_cut_last(path, '/');
    bool beside = !str_starts(name, STR("/")) && folder.found;
    *place = beside ? path_join(a, folder.head, name) : name;
    if (is_regular(*a, *place))
        return true;
    *place = name;
    return beside && is_regular(*a, name);
}

static bool names_file(const struct foreign *f, const struct setting *item)
{
    if (str_starts(item->key, STR("sourced")) || str_starts(item->key, STR("started.")))
        return ends_with_one_of(item->value, SCRIPTS " " DOCUMENTS);
    return foreign_wants(f, item->key) && ends_with_one_of(item->value, DOCUMENTS);
}

// What a file names and is there is read, too: first, as the words of what names it win.
static bool read_file(struct request *r, struct str path, int depth, struct error *e)
{
    struct arena *a = r->out->arena;
    struct settings file = settings_in(a);
    if (++r->files > MOST_READ)
        return FAIL(e, BAD_INPUT, path, "more than %d files are not read", MOST_READ);
    if (!flatten_file(&file, path, e))
        return false;
    for (ptrdiff_t i = 0; depth < DEEPEST && i < file.count; i++) {
        struct setting *item = &file.items[i];
        struct str place;
        if (!names_file(r->found, item) || !find_named(&place, a, item->value, path))
            continue;
        if (!read_file(r, place, depth + 1, e))
            return false;
        if (str_starts(item->key, STR("s"))) // sourced or started
            item->key = str_format(a, "read.%.*s", STR_ARGS(item->key));
    }
    return foreign_read(r->out, r->found, &file, e);
}

static bool is_request(struct str name)
{
    return (ends_with_one_of(name, SCRIPTS) || ends_with_one_of(name, DOCUMENTS)) &&
           !str_starts(name, STR("."));
}

static int by_name(const void *left, const void *right)
{
    const struct str *a = left, *b = right;
    ptrdiff_t n = a->n < b->n ? a->n : b->n;
    int order = n ? memcmp(a->p, b->p, (size_t)n) : 0;
    return order ? order : (a->n > b->n) - (a->n < b->n);
}

static bool read_folder(struct request *r, struct str path, struct error *e)
{
    struct arena *a = r->out->arena;
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
        if (!read_file(r, path_join(a, path, names[i]), 0, e))
            return false;
    return true;
}

static bool read_one(struct request *r, struct str path, struct error *e)
{
    ptrdiff_t before = r->out->count + r->found->taken;
    bool script = ends_with_one_of(path, SCRIPTS);
    return read_file(r, path, 0, e) &&
           (!script || r->out->count + r->found->taken > before ||
            FAIL(e, UNSUPPORTED, path, "no command in this script starts a trainer that is read"));
}

bool request_read(struct settings *out, struct foreign *f, struct str path, struct error *e)
{
    bool folder = path_kind(*out->arena, path) == PATH_FOLDER;
    struct request r = {out, f, 0};
    return folder ? read_folder(&r, path, e) : read_one(&r, path, e);
}
