// System calls on files, each failure turned into one sentence. Reading loops until the end rather
// than trusting a size, because pipes and files under /proc have none.
#include "host/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"

enum { CHUNK_BYTES = 64 * 1024, TEMPORARY_NAMES = 100 };

static bool holds_nul(struct str path)
{
    return path.n && memchr(path.p, 0, (size_t)path.n);
}

enum path_kind path_kind(struct arena scratch, struct str path)
{
    struct stat status;
    if (!path.n || holds_nul(path) || stat(str_z(&scratch, path), &status) != 0)
        return PATH_NONE;
    return S_ISDIR(status.st_mode) ? PATH_FOLDER : PATH_FILE;
}

struct str path_join(struct arena *a, struct str folder, struct str name)
{
    const char *slash = folder.n && folder.p[folder.n - 1] != '/' ? "/" : "";
    return str_format(a, "%.*s%s%.*s", STR_ARGS(folder), slash, STR_ARGS(name));
}

struct str path_real(struct arena *a, struct str path)
{
    struct arena scratch = *a;
    char *found = holds_nul(path) ? NULL : realpath(str_z(&scratch, path), NULL);
    struct str real = found ? str_copy(a, str_from(found)) : path;
    free(found);
    return real;
}

static bool cannot_open(struct str path, int reason, struct error *e)
{
    switch (reason) {
    case ENOENT:
    case ENOTDIR:
        return FAIL(e, BAD_INPUT, path, "there is no such file");
    case EACCES:
    case EPERM:
        return FAIL(e, IO, path, "this file may not be read (%s)", strerror(reason));
    default:
        return FAIL(e, IO, path, "this file cannot be opened (%s)", strerror(reason));
    }
}

// The descriptor, or -1 with *e set.
static int open_file(struct stat *status, struct arena scratch, struct str path, struct error *e)
{
    if (!path.n || holds_nul(path)) {
        FAIL(e, BAD_INPUT, path, "a path must not be empty or hold a NUL character");
        return -1;
    }
    int fd = open(str_z(&scratch, path), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        cannot_open(path, errno, e);
        return -1;
    }
    if (fstat(fd, status) != 0) {
        FAIL(e, IO, path, "this file cannot be examined (%s)", strerror(errno));
    } else if (S_ISDIR(status->st_mode)) {
        FAIL(e, BAD_INPUT, path, "this is a folder, not a file");
    } else {
        return fd;
    }
    close(fd);
    return -1;
}

int file_open(struct arena scratch, struct str path, struct error *e)
{
    struct stat status;
    return open_file(&status, scratch, path, e);
}

static ssize_t read_again(int fd, char *to, size_t bytes)
{
    ssize_t got;
    do
        got = read(fd, to, bytes);
    while (got < 0 && errno == EINTR);
    return got;
}

// Reads to the end of the file or to `most` bytes, whichever comes first.
static bool read_into(struct buf *content, int fd, int64_t most, struct str path, struct error *e)
{
    char chunk[CHUNK_BYTES];
    while (content->n < most) {
        int64_t left = most - content->n;
        ssize_t got = read_again(fd, chunk, left < CHUNK_BYTES ? (size_t)left : sizeof chunk);
        if (got < 0)
            return FAIL(e, IO, path, "this file cannot be read (%s)", strerror(errno));
        if (got == 0)
            return true;
        buf_put(content, (struct str){chunk, got});
    }
    return true;
}

bool file_read(struct str *out, struct arena *a, struct str path, int64_t max_bytes,
               struct error *e)
{
    ASSERT(max_bytes >= 0 && max_bytes < INT64_MAX);
    struct stat status = {0};
    int fd = open_file(&status, *a, path, e);
    if (fd < 0)
        return false;
    struct buf content = buf_in(a);
    bool ok = true;
    if (!S_ISREG(status.st_mode) || status.st_size <= max_bytes)
        ok = read_into(&content, fd, max_bytes + 1, path, e);
    close(fd);
    if (ok && (content.n > max_bytes || (S_ISREG(status.st_mode) && status.st_size > max_bytes)))
        ok = FAIL(e, BAD_INPUT, path, "this file is larger than the %lld bytes that are accepted",
                  (long long)max_bytes);
    if (ok)
        *out = buf_str(&content);
    return ok;
}

bool file_read_part(struct str *out, struct arena *a, struct str path, struct file_part part,
                    struct error *e)
{
    ASSERT(part.offset >= 0 && part.bytes >= 0);
    struct stat status = {0};
    int fd = open_file(&status, *a, path, e);
    if (fd < 0)
        return false;
    struct buf content = buf_in(a);
    bool ok = lseek(fd, part.offset, SEEK_SET) >= 0 ||
              FAIL(e, IO, path, "this file cannot be read from its middle (%s)", strerror(errno));
    ok = ok && read_into(&content, fd, part.bytes, path, e);
    close(fd);
    if (ok)
        *out = buf_str(&content);
    return ok;
}

bool file_size(uint64_t *bytes, struct arena scratch, struct str path, struct error *e)
{
    struct stat status = {0};
    int fd = open_file(&status, scratch, path, e);
    if (fd < 0)
        return false;
    close(fd);
    if (!S_ISREG(status.st_mode))
        return FAIL(e, BAD_INPUT, path, "this is not a regular file");
    *bytes = (uint64_t)status.st_size;
    return true;
}

static bool write_all(int fd, struct str content)
{
    while (content.n) {
        ssize_t put = write(fd, content.p, (size_t)content.n);
        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0)
            content = str_slice(content, put, content.n);
    }
    return true;
}

// Not mkstemp: that gives mode 0600, and the result should have what the user's umask says.
static int create_temporary(char **name, struct arena *scratch, struct str path)
{
    int fd = -1;
    for (int i = 0; i < TEMPORARY_NAMES && fd < 0; i++) {
        struct str text = str_format(scratch, "%.*s.%ld-%d.tmp", STR_ARGS(path), (long)getpid(), i);
        *name = str_z(scratch, text);
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

static bool move_into_place(const char *temporary, const char *path, enum file_existing existing)
{
    if (existing == FILE_REPLACE)
        return rename(temporary, path) == 0;
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return true;
    // File systems without that flag (NFS) still refuse to link over a file that exists.
    bool unsupported = errno == EINVAL || errno == ENOSYS;
    return unsupported && link(temporary, path) == 0 && unlink(temporary) == 0;
}

static bool target_allows(const char *path, enum file_existing existing, struct str where,
                          struct error *e)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return true;
    if (S_ISDIR(status.st_mode))
        return FAIL(e, BAD_INPUT, where, "this is a folder, not a file");
    if (!S_ISREG(status.st_mode))
        return FAIL(e, BAD_INPUT, where, "this is not a regular file and cannot be replaced");
    if (existing == FILE_KEEP_EXISTING)
        return FAIL(e, BAD_INPUT, where, "this file exists already");
    return true;
}

bool file_write(struct arena scratch, struct str path, struct str content,
                enum file_existing existing, struct error *e)
{
    if (!path.n || holds_nul(path))
        return FAIL(e, BAD_INPUT, path, "a path must not be empty or hold a NUL character");
    const char *target = str_z(&scratch, path);
    if (!target_allows(target, existing, path, e))
        return false;
    char *temporary = NULL;
    int fd = create_temporary(&temporary, &scratch, path);
    if (fd < 0)
        return FAIL(e, IO, path, "this file cannot be created (%s)", strerror(errno));
    bool written = write_all(fd, content) && fsync(fd) == 0;
    int reason = errno;
    if (close(fd) != 0 && written) {
        written = false;
        reason = errno;
    }
    if (written && move_into_place(temporary, target, existing))
        return true;
    if (written)
        reason = errno;
    unlink(temporary);
    if (reason == EEXIST)
        return FAIL(e, BAD_INPUT, path, "this file exists already");
    if (reason == ENOSPC || reason == EDQUOT)
        return FAIL(e, IO, path, "the disk is full, so this file cannot be written");
    return FAIL(e, IO, path, "this file cannot be written (%s)", strerror(reason));
}

bool folder_make(struct arena scratch, struct str path, struct error *e)
{
    if (!path.n || holds_nul(path))
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

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

bool folder_remove(struct arena scratch, struct str path, struct error *e)
{
    enum { OPEN_FOLDERS = 16 };
    if (path_kind(scratch, path) == PATH_NONE ||
        nftw(str_z(&scratch, path), remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) == 0)
        return true;
    return FAIL(e, IO, path, "this folder cannot be removed (%s)", strerror(errno));
}
