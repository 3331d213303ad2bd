// Names on the hub and the layout of its cache (huggingface_hub, file_download.py):
// models--OWNER--NAME/refs/main holds a commit hash, snapshots/HASH/FILE is a link to a blob.
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "host/files/file.h"
#include "host/sources/hub.h"

enum { NAME_MAX_BYTES = 96, REF_MAX_BYTES = 256 };

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

// "--" is what the cache writes for "/", and the hub refuses it in names too.
static bool is_name(struct str name)
{
    if (!name.n || name.n > NAME_MAX_BYTES || name.p[0] == '.' || name.p[0] == '-')
        return false;
    for (ptrdiff_t i = 0; i < name.n; i++) {
        bool twice = i > 0 && name.p[i] == name.p[i - 1] && (name.p[i] == '.' || name.p[i] == '-');
        if (twice || !is_name_character(name.p[i]))
            return false;
    }
    return true;
}

bool hub_is_id(struct str text)
{
    struct str_cut parts = str_cut(text, '/');
    return parts.found && is_name(parts.head) && is_name(parts.tail);
}

static bool snapshot_has(struct str *path, struct arena *a, struct str snapshot, struct str file)
{
    struct str candidate = path_join(a, snapshot, file);
    if (path_kind(*a, candidate) != PATH_FILE)
        return false;
    *path = candidate;
    return true;
}

static bool main_snapshot(struct str *path, struct arena *a, struct str model, struct str file)
{
    struct error ignored = {0};
    struct str hash;
    if (!file_read(&hash, a, path_join(a, model, STR("refs/main")), REF_MAX_BYTES, &ignored))
        return false;
    hash = str_trim(hash);
    if (!is_name(hash))
        return false;
    struct str snapshots = path_join(a, model, STR("snapshots"));
    return snapshot_has(path, a, path_join(a, snapshots, hash), file);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static bool newest_snapshot(struct str *path, struct arena *a, struct str model, struct str file)
{
    struct str folder = path_join(a, model, STR("snapshots"));
    DIR *listing = opendir(str_z(a, folder));
    if (!listing)
        return false;
    bool found = false;
    struct timespec newest = {0};
    const struct dirent *entry;
    // readdir shares nothing between streams, and this stream is ours alone.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    while ((entry = readdir(listing)) != NULL) {
        struct str name = str_from(entry->d_name), candidate;
        struct stat status;
        struct str snapshot = path_join(a, folder, name);
        if (!is_name(name) || !snapshot_has(&candidate, a, snapshot, file) ||
            stat(str_z(a, snapshot), &status) != 0)
            continue;
        if (!found || is_later(&status.st_mtim, &newest)) {
            *path = candidate;
            newest = status.st_mtim;
            found = true;
        }
    }
    closedir(listing);
    return found;
}

bool hub_cached(struct str *path, struct arena *a, const struct hub_options *o, struct str id,
                struct str file)
{
    if (!o->cache_folder.n || !hub_is_id(id) || !is_name(file))
        return false;
    struct str_cut parts = str_cut(id, '/');
    struct str folder =
        str_format(a, "models--%.*s--%.*s", STR_ARGS(parts.head), STR_ARGS(parts.tail));
    struct str model = path_join(a, o->cache_folder, folder);
    return main_snapshot(path, a, model, file) || newest_snapshot(path, a, model, file);
}
