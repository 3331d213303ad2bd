// The program with calls that fail on demand: the linker leads each of these functions here first
// (--wrap), so that those of SQLite, jansson and libyaml fail too, and a sanitizer still sees all.
//
//     FAULT=KIND:N    the N-th call of that kind fails, once, whichever process makes it
//     FAULT=KIND:N+   it and all that follow
//     FAULT_REPORT=F  a line is added to F for the first that failed
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <poll.h>

struct fault {
    atomic_long calls; // of all processes
    long wanted;       // 0: none fails
    bool lasting;
    char kind[16], report[256];
};

static struct fault *fault;

int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *from, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

__attribute__((constructor)) static void read_wish(void)
{
    const char *wish = getenv("FAULT"), *report = getenv("FAULT_REPORT");
    const char *colon = wish ? strchr(wish, ':') : NULL;
    if (!colon || !report)
        return;
    struct fault *f =
        __real_mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f == MAP_FAILED)
        _exit(99);
    char *rest;
    (void)snprintf(f->kind, sizeof f->kind, "%.*s", (int)(colon - wish), wish);
    (void)snprintf(f->report, sizeof f->report, "%s", report);
    f->wanted = strtol(colon + 1, &rest, 10);
    f->lasting = *rest == '+';
    fault = f;
}

static void report(const char *function)
{
    char line[64];
    int fd = __real_open(fault->report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int n = snprintf(line, sizeof line, "%s\n", function);
    if (fd < 0 || __real_write(fd, line, (size_t)n) != n)
        _exit(99);
    close(fd);
}

static bool fails(const char *kind, const char *function)
{
    if (!fault || strcmp(fault->kind, kind) != 0)
        return false;
    int before = errno;
    long call = atomic_fetch_add(&fault->calls, 1) + 1;
    if (call == fault->wanted)
        report(function);
    errno = before;
    return call == fault->wanted || (fault->lasting && call > fault->wanted);
}

// One row a function: when its kind fails, errno and what it returns.
#define FAILING(kind, reason, failed, type, name, parameters, arguments) \
    type __real_##name parameters;                                       \
    type __wrap_##name parameters;                                       \
    type __wrap_##name parameters                                        \
    {                                                                    \
        if (!fails(kind, #name))                                         \
            return __real_##name arguments;                              \
        errno = reason;                                                  \
        return failed;                                                   \
    }

FAILING("malloc", ENOMEM, NULL, void *, malloc, (size_t n), (n))
FAILING("malloc", ENOMEM, NULL, void *, calloc, (size_t n, size_t each), (n, each))
FAILING("malloc", ENOMEM, NULL, void *, realloc, (void *old, size_t n), (old, n))
FAILING("malloc", ENOMEM, NULL, char *, strdup, (const char *s), (s))
FAILING("malloc", ENOMEM, NULL, char *, realpath, (const char *path, char *to), (path, to))
// NOLINTBEGIN(readability-function-size): six parameters, as the system has it
FAILING("memory", ENOMEM, MAP_FAILED, void *, mmap,
        (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
        (at, bytes, protection, flags, fd, offset))
FAILING("memory", ENOMEM, MAP_FAILED, void *, mmap64,
        (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
        (at, bytes, protection, flags, fd, offset))
// NOLINTEND(readability-function-size)
FAILING("memory", EAGAIN, EAGAIN, int, pthread_create,
        (pthread_t * t, const pthread_attr_t *how, void *(*run)(void *), void *with),
        (t, how, run, with))
FAILING("fork", EAGAIN, -1, pid_t, fork, (void), ())
FAILING("fork", EAGAIN, -1, int, execvp, (const char *file, char *const *words), (file, words))
FAILING("pipe", EMFILE, -1, int, pipe2, (int *ends, int flags), (ends, flags))
FAILING("pipe", EMFILE, -1, int, socketpair, (int domain, int type, int protocol, int *ends),
        (domain, type, protocol, ends))
FAILING("pipe", EMFILE, -1, int, signalfd, (int fd, const sigset_t *which, int flags),
        (fd, which, flags))
FAILING("pipe", EMFILE, -1, int, dup2, (int from, int to), (from, to))
FAILING("malloc", ENOMEM, -1, int, setenv, (const char *name, const char *value, int over),
        (name, value, over))
FAILING("open", EMFILE, NULL, DIR *, opendir, (const char *path), (path))
FAILING("open", EMFILE, NULL, DIR *, fdopendir, (int fd), (fd))
FAILING("mkdir", EACCES, NULL, char *, mkdtemp, (char *name), (name))
FAILING("fsync", EIO, -1, int, fsync, (int fd), (fd))
FAILING("fsync", EIO, -1, int, fdatasync, (int fd), (fd))
FAILING("rename", EIO, -1, int, rename, (const char *from, const char *to), (from, to))
FAILING("rename", EIO, -1, int, renameat2,
        (int at, const char *from, int there, const char *to, unsigned flags),
        (at, from, there, to, flags))
FAILING("rename", EIO, -1, int, link, (const char *from, const char *to), (from, to))
FAILING("mkdir", EACCES, -1, int, mkdir, (const char *path, mode_t mode), (path, mode))
FAILING("stat", EIO, -1, int, stat, (const char *path, struct stat *s), (path, s))
FAILING("stat", EIO, -1, int, fstat, (int fd, struct stat *s), (fd, s))
FAILING("stat", EIO, -1, int, stat64, (const char *path, struct stat *s), (path, s))
FAILING("stat", EIO, -1, int, fstat64, (int fd, struct stat *s), (fd, s))
FAILING("stat", EIO, -1, int, lstat64, (const char *path, struct stat *s), (path, s))
FAILING("seek", EIO, -1, off_t, lseek, (int fd, off_t to, int from), (fd, to, from))
FAILING("read", EIO, -1, ssize_t, pread64, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
FAILING("write", ENOSPC, -1, int, ftruncate64, (int fd, off_t n), (fd, n))
FAILING("eintr", EINTR, -1, int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
FAILING("eintr", EINTR, -1, pid_t, waitpid, (pid_t pid, int *status, int how), (pid, status, how))

int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    unsigned mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    if (!fails("open", "open"))
        return __real_open(path, flags, mode);
    errno = EMFILE;
    return -1;
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    unsigned mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    if (!fails("open", "open64"))
        return __real_open64(path, flags, mode);
    errno = EMFILE;
    return -1;
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    unsigned mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    if (!fails("open", "openat"))
        return __real_openat(folder, path, flags, mode);
    errno = EMFILE;
    return -1;
}

ssize_t __real_read(int fd, void *to, size_t bytes);
ssize_t __wrap_read(int fd, void *to, size_t bytes);
ssize_t __wrap_read(int fd, void *to, size_t bytes)
{
    bool interrupted = fails("eintr", "read");
    if (!interrupted && !fails("read", "read"))
        return __real_read(fd, to, bytes > 1 && fails("short", "read") ? bytes / 2 : bytes);
    errno = interrupted ? EINTR : EIO;
    return -1;
}

// What is said about a failure must not fail itself, or nobody could look at it.
ssize_t __wrap_write(int fd, const void *from, size_t bytes);
ssize_t __wrap_write(int fd, const void *from, size_t bytes)
{
    bool interrupted = fails("eintr", "write");
    if (!interrupted && (fd == STDERR_FILENO || !fails("write", "write")))
        return __real_write(fd, from, bytes > 1 && fails("short", "write") ? bytes / 2 : bytes);
    errno = interrupted ? EINTR : ENOSPC;
    return -1;
}

ssize_t __real_pwrite64(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at)
{
    if (!fails("write", "pwrite64"))
        return __real_pwrite64(fd, from,
                               bytes > 1 && fails("short", "pwrite64") ? bytes / 2 : bytes, at);
    errno = ENOSPC;
    return -1;
}

// SQLite itself gives up in the middle of a statement: it undoes it and knows why.
static int give_up(void *unused)
{
    (void)unused;
    return 1;
}

int __real_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
    sqlite3 *db = sqlite3_db_handle(statement);
    if (fails("sqlite", "sqlite3_step"))
        sqlite3_progress_handler(db, 1, give_up, NULL);
    int code = __real_sqlite3_step(statement);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    return code;
}

typedef int row_function(void *context, int count, char **values, char **names);
int __real_sqlite3_exec(sqlite3 *db, const char *sql, row_function *row, void *context,
                        char **message);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, row_function *row, void *context,
                        char **message);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, row_function *row, void *context,
                        char **message)
{
    if (fails("sqlite", "sqlite3_exec"))
        sqlite3_progress_handler(db, 1, give_up, NULL);
    int code = __real_sqlite3_exec(db, sql, row, context, message);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    return code;
}
