// System calls on files, each failure turned into one sentence. Reading loops until the end rather
// than trusting a size, because pipes and files under /proc have none. Only descriptors that we
// were given may be pipes, devices or sockets: what such a path holds may never come.
#include "host/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/compiler.h"

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

bool path_is_odd(struct arena scratch, struct str path)
{
    struct stat status;
    return path.n && !holds_nul(path) && stat(str_z(&scratch, path), &status) == 0 &&
           !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

struct str path_join(struct arena *a, struct str folder, struct str name)
{
    const char *slash = folder.n && folder.p[folder.n - 1] != '/' ? "/" : "";
    return str_format(a, "%.*s%s%.*s", STR_ARGS(folder), slash, STR_ARGS(name));
}

struct str path_real(struct arena *a, struct str path)
{
    struct arena scratch = *a;
    char room[PATH_MAX];
    const char *found = holds_nul(path) ? NULL : realpath(str_z(&scratch, path), room);
    return found ? str_copy(a, str_from(found)) : STR_NONE;
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
    case EBADF:
        return FAIL(e, BAD_INPUT, path, "nothing is open there");
    default:
        return FAIL(e, IO, path, "this file cannot be opened (%s)", strerror(reason));
    }
}

// The number of a descriptor that this process was given, by the names that shells have for them;
// -1: the path is none.
static int given_descriptor(struct str path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    enum { MOST_DIGITS = 9 };
    struct str digits = STR_NONE;
    int number = 0;
    if (str_is(path, "/dev/stdin"))
        return STDIN_FILENO;
    for (ptrdiff_t i = 0; i < COUNT_OF(folders); i++)
        if (str_starts(path, str_from(folders[i])))
            digits = str_slice(path, (ptrdiff_t)strlen(folders[i]), path.n);
    for (ptrdiff_t i = 0; i < digits.n; i++) {
        if (!char_is_digit(digits.p[i]) || i == MOST_DIGITS)
            return -1;
        number = 10 * number + (digits.p[i] - '0');
    }
    return digits.n ? number : -1;
}

static bool is_no_file(struct str path, mode_t mode, struct error *e)
{
    if (S_ISDIR(mode))
        return FAIL(e, BAD_INPUT, path, "this is a folder, not a file");
    FAIL(e, BAD_INPUT, path, "this is %s, not a file",
         S_ISFIFO(mode)   ? "a named pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device");
    return S_ISFIFO(mode) ? HINT(e, "what comes through it can be standard input") : false;
}

static bool allows(const struct stat *status, bool given, struct str path, struct error *e)
{
    bool fine = given ? !S_ISDIR(status->st_mode) : S_ISREG(status->st_mode);
    return fine || is_no_file(path, status->st_mode, e);
}

// Waits for nobody: a named pipe without a writer is opened at once, only to be refused.
static int open_at_once(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;
    if (flags >= 0)
        (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
}

// The descriptor, or -1 with *e set.
static int open_file(struct stat *status, struct arena scratch, struct str path, struct error *e)
{
    if (!path.n || holds_nul(path)) {
        FAIL(e, BAD_INPUT, path, "a path must not be empty or hold a NUL character");
        return -1;
    }
    int given = given_descriptor(path);
    int fd = given >= 0 ? fcntl(given, F_DUPFD_CLOEXEC, 0) : open_at_once(str_z(&scratch, path));
    if (fd < 0) {
        int reason = errno;
        bool odd = reason == ENXIO && stat(str_z(&scratch, path), status) == 0; // a socket
        (void)(odd ? is_no_file(path, status->st_mode, e) : cannot_open(path, reason, e));
        return -1;
    }
    if (fstat(fd, status) != 0)
        FAIL(e, IO, path, "this file cannot be examined (%s)", strerror(errno));
    else if (allows(status, given >= 0, path, e))
        return fd;
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
    if (reason == EFBIG)
        return FAIL(e, IO, path, "files may not become so large here (ulimit -f)");
    return FAIL(e, IO, path, "this file cannot be written (%s)", strerror(reason));
}
