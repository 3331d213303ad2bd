// Removing goes by open folders, never by paths: whoever swaps a folder for a link while we are in
// it leads nowhere.
#include "host/files/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/compiler.h"

enum { MOST_LEVELS = 128 };

static bool is_path(struct str path)
{
    return path.n && !memchr(path.p, 0, (size_t)path.n);
}

bool folder_make(struct arena scratch, struct str path, struct error *e)
{
    if (!is_path(path))
        return FAIL(e, BAD_INPUT, path, "a path must not be empty or hold a NUL character");
    char *name = str_z(&scratch, path);
    struct stat status;
    for (ptrdiff_t i = 1; i <= path.n; i++) {
        if (i < path.n && name[i] != '/')
            continue;
        name[i] = 0;
        if (mkdir(name, 0777) != 0 && errno != EEXIST)
            return FAIL(e, IO, path, "this folder cannot be made (%s)", strerror(errno));
        name[i] = i < path.n ? '/' : 0;
    }
    if (stat(name, &status) != 0 || !S_ISDIR(status.st_mode))
        return FAIL(e, BAD_INPUT, path, "this is not a folder");
    return true;
}

// ------------------------------------------------------------------ removing

static DIR *open_folder(int parent, const char *name, int flags)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !folder)
        close(fd);
    return folder;
}

// The next name in it that is no way to itself or up.
static const char *next_name(DIR *folder)
{
    struct dirent *found;
    do
        found = readdir(folder);
    while (found && (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0));
    return found ? found->d_name : NULL;
}

static bool remove_in(int parent, const char *name, int level);

// Looks again until nothing is there: a folder that changes while it is read may hide names.
static bool remove_content(DIR *folder, int level)
{
    ptrdiff_t removed;
    int place = dirfd(folder);
    if (place < 0)
        return false;
    do {
        removed = 0;
        rewinddir(folder);
        for (const char *name; (name = next_name(folder)); removed++)
            if (!remove_in(place, name, level))
                return false;
    } while (removed);
    return true;
}

// What is not there any more is fine. errno says what is wrong.
static bool remove_in(int parent, const char *name, int level)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno != EISDIR)
        return false;
    if (level == MOST_LEVELS) {
        errno = ENAMETOOLONG;
        return false;
    }
    DIR *folder = open_folder(parent, name, O_NOFOLLOW);
    if (!folder)
        return errno == ENOENT;
    bool ok = remove_content(folder, level + 1);
    int reason = errno;
    closedir(folder);
    errno = reason;
    return ok && (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT);
}

bool folder_remove(struct arena scratch, struct str path, struct error *e)
{
    struct str given = path;
    while (str_ends(path, STR("/")))
        path = str_slice(path, 0, path.n - 1);
    if (!is_path(path))
        return true;
    struct str_cut cut = str_cut_last(path, '/');
    struct str above = !cut.found ? STR(".") : cut.head.n ? cut.head : STR("/");
    int parent = open(str_z(&scratch, above), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return errno == ENOENT || errno == ENOTDIR ||
               FAIL(e, IO, given, "this folder cannot be removed (%s)", strerror(errno));
    bool ok = remove_in(parent, str_z(&scratch, cut.found ? cut.tail : cut.head), 0);
    int reason = errno;
    close(parent);
    return ok || FAIL(e, IO, given, "this folder cannot be removed (%s)", strerror(reason));
}

// ------------------------------------------------------------------ folders of our own

// /run/user is the last resort although nobody else writes there: it is taken away when its user
// logs out, and what was started with nohup goes on.
static const char *const places[] = {"TMPDIR", "", "XDG_RUNTIME_DIR"};

static struct str place_at(ptrdiff_t i)
{
    return *places[i] ? str_from(getenv(places[i])) : STR("/tmp");
}

// Where others may write, only the sticky bit keeps them from moving what is ours.
static bool is_safe(int place)
{
    struct stat status;
    return fstat(place, &status) == 0 &&
           (!(status.st_mode & (S_IWGRP | S_IWOTH)) || (status.st_mode & S_ISVTX));
}

static bool is_ours(int place, const char *name)
{
    struct stat status;
    return fstatat(place, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && !(status.st_mode & (S_IRWXG | S_IRWXO));
}

// Sets errno where there can be none.
static bool make_in(struct str *path, struct arena *a, struct str place, struct str prefix)
{
    char *name = str_z(a, str_format(a, "%.*s/%.*sXXXXXX", STR_ARGS(place), STR_ARGS(prefix)));
    int folder = open(str_z(a, place), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return false;
    errno = EPERM;
    bool ok = is_safe(folder) && mkdtemp(name) && is_ours(folder, name + place.n + 1);
    int reason = errno;
    close(folder);
    errno = reason;
    if (ok)
        *path = str_from(name);
    return ok;
}

bool private_folder_make(struct str *path, struct arena *a, struct str prefix, ptrdiff_t most,
                         struct error *e)
{
    int reason = ENAMETOOLONG;
    struct str tried = STR_NONE;
    for (ptrdiff_t i = 0; i < COUNT_OF(places); i++) {
        struct str place = place_at(i);
        if (!place.n || place.n + 1 + prefix.n + 6 > most)
            continue;
        if (make_in(path, a, place, prefix))
            return true;
        if (!tried.n) {
            tried = place;
            reason = errno;
        }
    }
    FAIL(e, IO, tried, "no folder of our own can be made here (%s)", strerror(reason));
    return HINT(e, "TMPDIR names another place");
}

static void remove_from(struct arena scratch, struct str place, struct str prefix)
{
    DIR *folder = place.n ? open_folder(AT_FDCWD, str_z(&scratch, place), 0) : NULL;
    if (!folder)
        return;
    int fd = dirfd(folder);
    for (const char *name; fd >= 0 && (name = next_name(folder));)
        if (str_starts(str_from(name), prefix) && is_ours(fd, name))
            (void)!remove_in(fd, name, 0);
    closedir(folder);
}

void private_folders_remove(struct arena scratch, struct str prefix)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(places); i++)
        remove_from(scratch, place_at(i), prefix);
}
