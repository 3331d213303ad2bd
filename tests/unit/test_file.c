// Reading and writing real files in a fresh folder of the temporary directory.
#include "host/files/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/compiler.h"
#include "host/files/encoding.h"
#include "host/files/folder.h"
#include "host/system/memory.h"
#include "tests/support/t.h"
#include "tests/support/temp.h"

static void put(struct arena a, struct str path, struct str content)
{
    FILE *f = fopen(str_z(&a, path), "wb");
    CHECK(f);
    if (f) {
        CHECK_U64(fwrite(content.p, 1, (size_t)content.n, f), (uint64_t)content.n);
        CHECK(fclose(f) == 0);
    }
}

static int entries(struct arena a, struct str folder)
{
    int count = -2;
    DIR *listing = opendir(str_z(&a, folder));
    CHECK(listing);
    while (listing && readdir(listing))
        count++;
    if (listing)
        closedir(listing);
    return count;
}

static void check_read_fails(struct arena *a, struct str path, enum error_code code,
                             const char *message)
{
    struct error e = {0};
    struct str out = STR("untouched");
    CHECK(!file_read(&out, a, path, 8, &e));
    CHECK_U64(e.code, code);
    CHECK_STR(str_from(e.message), message);
    CHECK(str_equal(str_from(e.where), path));
    CHECK_STR(out, "untouched");
}

TEST(file_read_whole)
{
    struct arena *a = test_arena();
    struct str path = path_join(a, temp_folder(a), STR("f"));
    put(*a, path, STR("ab\0cdefg"));
    struct error e = {0};
    struct str out;
    CHECK(file_read(&out, a, path, 8, &e));
    CHECK(str_equal(out, STR("ab\0cdefg")));
    put(*a, path, STR(""));
    CHECK(file_read(&out, a, path, 0, &e));
    CHECK_U64((uint64_t)out.n, 0);
}

TEST(file_read_failures)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a);
    struct str path = path_join(a, folder, STR("f"));
    check_read_fails(a, path, ERROR_BAD_INPUT, "there is no such file");
    check_read_fails(a, folder, ERROR_BAD_INPUT, "this is a folder, not a file");
    put(*a, path, STR("123456789"));
    check_read_fails(a, path, ERROR_BAD_INPUT,
                     "this file is larger than the 8 bytes that are accepted");
    check_read_fails(a, path_join(a, path, STR("x")), ERROR_BAD_INPUT, "there is no such file");
    check_read_fails(a, STR(""), ERROR_BAD_INPUT,
                     "a path must not be empty or hold a NUL character");
    struct error e = {0};
    struct str out;
    CHECK(!file_read(&out, a, STR("/dev/null\0x"), 8, &e));
    check_read_fails(a, STR("/proc/self/mem"), ERROR_IO,
                     "this file cannot be read (Input/output error)");
    if (geteuid() != 0) {
        chmod(str_z(a, path), 0);
        check_read_fails(a, path, ERROR_IO, "this file may not be read (Permission denied)");
    }
}

static struct str read_pipe(struct arena *a, const char *content, int64_t max, struct error *e)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], content, strlen(content)) == (ssize_t)strlen(content));
    close(ends[1]);
    struct str out = STR("untouched");
    bool ok = file_read(&out, a, str_format(a, "/dev/fd/%d", ends[0]), max, e);
    CHECK(ok == (e->code == ERROR_NONE));
    close(ends[0]);
    return out;
}

TEST(file_read_of_unknown_size)
{
    struct arena *a = test_arena();
    struct error e = {0};
    CHECK_STR(read_pipe(a, "through a pipe", 14, &e), "through a pipe");
    CHECK_STR(read_pipe(a, "through a pipe", 13, &e), "untouched");
    CHECK_STR(str_from(e.message), "this file is larger than the 13 bytes that are accepted");
    struct str out;
    struct error proc = {0};
    CHECK(file_read(&out, a, STR("/proc/self/stat"), 1 << 20, &proc));
    CHECK(out.n > 0);
}

TEST(file_read_parts)
{
    struct arena *a = test_arena();
    struct str path = path_join(a, temp_folder(a), STR("f"));
    put(*a, path, STR("0123456789"));
    struct error e = {0};
    struct str out;
    CHECK(file_read_part(&out, a, path, (struct file_part){2, 3}, &e));
    CHECK_STR(out, "234");
    CHECK(file_read_part(&out, a, path, (struct file_part){8, 100}, &e));
    CHECK_STR(out, "89");
    CHECK(file_read_part(&out, a, path, (struct file_part){50, 1}, &e));
    CHECK_STR(out, "");
    uint64_t bytes = 0;
    CHECK(file_size(&bytes, *a, path, &e));
    CHECK_U64(bytes, 10);
}

static void check_refused(struct arena *a, struct str path, const char *message)
{
    struct str out;
    uint64_t bytes;
    struct error read = {0}, part = {0}, size = {0}, open = {0};
    CHECK(!file_read(&out, a, path, 8, &read));
    CHECK_STR(str_from(read.message), message);
    CHECK(!file_read_part(&out, a, path, (struct file_part){0, 8}, &part));
    CHECK_STR(str_from(part.message), message);
    CHECK(!file_size(&bytes, *a, path, &size));
    CHECK_STR(str_from(size.message), message);
    CHECK(file_open(*a, path, &open) < 0);
    CHECK_STR(str_from(open.message), message);
    CHECK_U64(open.code, ERROR_BAD_INPUT);
}

TEST(what_is_no_file_is_refused_at_once)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a), path = path_join(a, folder, STR("pipe"));
    CHECK(mkfifo(str_z(a, path), 0600) == 0);
    check_refused(a, path, "this is a named pipe, not a file");
    CHECK(path_is_odd(*a, path) && !path_is_odd(*a, folder));
    path = path_join(a, folder, STR("socket"));
    CHECK(mknod(str_z(a, path), S_IFSOCK | 0600, 0) == 0);
    check_refused(a, path, "this is a socket, not a file");
    check_refused(a, STR("/dev/zero"), "this is a device, not a file");
    check_refused(a, STR("/dev/null"), "this is a device, not a file");
    check_refused(a, STR("/dev/fd/999999999"), "nothing is open there");
    check_refused(a, STR("/dev/fd/9999999999"), "there is no such file");
}

TEST(a_descriptor_that_was_given_may_be_anything)
{
    struct arena *a = test_arena();
    int ends[2];
    struct error e = {0};
    struct str out;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(write(ends[1], "socket", 6) == 6);
    close(ends[1]);
    CHECK(file_read(&out, a, str_format(a, "/dev/fd/%d", ends[0]), 8, &e));
    CHECK_STR(out, "socket");
    close(ends[0]);
    struct str path = path_join(a, temp_folder(a), STR("pipe"));
    CHECK(mkfifo(str_z(a, path), 0600) == 0);
    int both = open(str_z(a, path), O_RDWR | O_CLOEXEC);
    int end = open(str_z(a, path), O_RDONLY | O_CLOEXEC);
    CHECK(write(both, "pipe", 4) == 4);
    close(both); // nobody writes any more: opening it again would wait for ever
    CHECK(file_read(&out, a, str_format(a, "/proc/self/fd/%d", end), 8, &e));
    CHECK_STR(out, "pipe");
    close(end);
}

// ------------------------------------------------------------------ folders

enum { MANY = 400, SWAPS = 3 };

static struct str many_files(struct arena *a, struct str folder, const char *name)
{
    struct str path = path_join(a, folder, str_from(name));
    CHECK(mkdir(str_z(a, path), 0700) == 0);
    for (int i = 0; i < MANY; i++) {
        struct arena scratch = *a;
        put(scratch, str_format(&scratch, "%.*s/%d", STR_ARGS(path), i), STR("x"));
    }
    return path;
}

// Somebody else: at the first file that goes, the folder becomes a link to another one.
static void swap_at_first_removal(struct arena a, struct str folder, struct str other)
{
    char event[4096];
    int watch = inotify_init1(IN_CLOEXEC);
    const char *name = str_z(&a, folder);
    bool ready = inotify_add_watch(watch, name, IN_DELETE) >= 0;
    kill(getppid(), SIGUSR1);
    if (ready && read(watch, event, sizeof event) > 0 &&
        rename(name, str_z(&a, str_join(&a, folder, STR("-aside")))) == 0)
        (void)!symlink(str_z(&a, other), name);
    _exit(0);
}

TEST(a_folder_that_is_swapped_while_it_is_removed_leads_nowhere)
{
    for (int i = 0; i < SWAPS; i++) {
        struct arena *a = test_arena();
        struct str folder = temp_folder(a);
        struct str mine = path_join(a, folder, STR("mine"));
        struct error e = {0};
        CHECK(mkdir(str_z(a, mine), 0700) == 0);
        struct str inner = many_files(a, mine, "inner"), other = many_files(a, folder, "other");
        sigset_t signals;
        int came;
        sigemptyset(&signals);
        sigaddset(&signals, SIGUSR1);
        sigprocmask(SIG_BLOCK, &signals, NULL);
        pid_t attacker = fork();
        if (attacker == 0)
            swap_at_first_removal(*a, inner, other);
        sigwait(&signals, &came);
        (void)!folder_remove(*a, mine, &e);
        kill(attacker, SIGKILL);
        waitpid(attacker, NULL, 0);
        CHECK_U64((uint64_t)entries(*a, other), MANY);
    }
}

TEST(folders_are_removed_with_all_that_is_in_them)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a), mine = path_join(a, folder, STR("mine")), deep = mine;
    struct error e = {0};
    for (int i = 0; i < 100; i++)
        deep = path_join(a, deep, STR("d"));
    CHECK(folder_make(*a, deep, &e));
    CHECK(symlink(str_z(a, folder), str_z(a, path_join(a, deep, STR("up")))) == 0 &&
          mkfifo(str_z(a, path_join(a, deep, STR("pipe"))), 0600) == 0);
    put(*a, path_join(a, folder, STR("kept")), STR("x"));
    CHECK(folder_remove(*a, str_join(a, mine, STR("//")), &e));
    CHECK_U64((uint64_t)entries(*a, folder), 1);
}

TEST(what_is_not_there_need_not_be_removed)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a), mine = path_join(a, folder, STR("mine"));
    struct str kept = path_join(a, folder, STR("kept"));
    struct error e = {0};
    put(*a, kept, STR("x"));
    CHECK(folder_remove(*a, mine, &e));
    CHECK(folder_remove(*a, path_join(a, kept, STR("x/y")), &e));
    CHECK(symlink(str_z(a, kept), str_z(a, mine)) == 0);
    CHECK(folder_remove(*a, mine, &e));
    CHECK_U64((uint64_t)entries(*a, folder), 1);
}

TEST(private_folders_are_nobody_elses)
{
    struct arena *a = test_arena();
    struct str place = temp_folder(a), first = {0}, second = {0};
    struct error e = {0};
    struct stat status = {0};
    setenv("TMPDIR", str_z(a, place), 1);
    CHECK(private_folder_make(&first, a, STR("mine-"), 100, &e) &&
          private_folder_make(&second, a, STR("mine-"), 100, &e));
    CHECK(str_starts(first, place) && !str_equal(first, second));
    CHECK(stat(str_z(a, first), &status) == 0);
    CHECK_U64(status.st_mode & 07777, 0700);
    put(*a, path_join(a, place, STR("mine-file")), STR("x"));
    struct str open_to_all = path_join(a, place, STR("mine-open"));
    CHECK(mkdir(str_z(a, open_to_all), 0755) == 0 &&
          symlink(str_z(a, open_to_all), str_z(a, path_join(a, place, STR("mine-link")))) == 0);
    private_folders_remove(*a, STR("mine-"));
    CHECK_U64((uint64_t)entries(*a, place), 3);
    unsetenv("TMPDIR");
}

// Where others could move it, or its path is too long, there is none.
TEST(private_folders_have_a_safe_place)
{
    static const struct {
        mode_t mode;
        ptrdiff_t most;
        bool there;
    } rows[] = {{0777, 100, false},
                {0770, 100, false},
                {01777, 100, true},
                {0755, 100, true},
                {0755, 40, false}};
    struct arena *a = test_arena();
    struct str place = temp_folder(a), path = {0};
    struct error e = {0};
    setenv("TMPDIR", str_z(a, place), 1);
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        CHECK(chmod(str_z(a, place), rows[i].mode) == 0);
        CHECK(private_folder_make(&path, a, STR("fathom-test-mine-"), rows[i].most, &e));
        CHECK_U64(str_starts(path, place), rows[i].there);
        private_folders_remove(*a, STR("fathom-test-mine-"));
    }
    CHECK(!private_folder_make(&path, a, STR("fathom-test-mine-"), 10, &e));
    unsetenv("TMPDIR");
}

TEST(file_kinds_and_joins)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a);
    CHECK_U64(path_kind(*a, folder), PATH_FOLDER);
    CHECK_U64(path_kind(*a, path_join(a, folder, STR("no"))), PATH_NONE);
    CHECK_U64(path_kind(*a, STR("/dev/null")), PATH_FILE);
    CHECK_U64(path_kind(*a, STR("")), PATH_NONE);
    CHECK_U64(path_kind(*a, STR("/\0x")), PATH_NONE);
    CHECK_STR(path_join(a, STR("/"), STR("x")), "/x");
    CHECK_STR(path_join(a, STR("d"), STR("x")), "d/x");
    CHECK_STR(path_join(a, STR(""), STR("x")), "x");
    CHECK_STR(path_real(a, STR("/dev/../dev//null")), "/dev/null");
    CHECK_STR(path_real(a, STR("not there")), "");
}

TEST(file_write_whole_or_not_at_all)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a), path = path_join(a, folder, STR("out")), out;
    struct error e = {0};
    mode_t old = umask(027);
    CHECK(file_write(*a, path, STR("first"), FILE_KEEP_EXISTING, &e));
    umask(old);
    struct stat status;
    CHECK(stat(str_z(a, path), &status) == 0);
    CHECK_U64(status.st_mode & 0777, 0640);
    CHECK(!file_write(*a, path, STR("second"), FILE_KEEP_EXISTING, &e));
    CHECK_U64(e.code, ERROR_BAD_INPUT);
    CHECK_STR(str_from(e.message), "this file exists already");
    e = (struct error){0};
    CHECK(file_read(&out, a, path, 100, &e));
    CHECK_STR(out, "first");
    CHECK(file_write(*a, path, STR("third"), FILE_REPLACE, &e));
    CHECK(file_read(&out, a, path, 100, &e));
    CHECK_STR(out, "third");
    CHECK_U64((uint64_t)entries(*a, folder), 1);
}

TEST(file_write_failures_leave_nothing_behind)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a);
    struct error e = {0};
    CHECK(!file_write(*a, folder, STR("x"), FILE_REPLACE, &e));
    CHECK_STR(str_from(e.message), "this is a folder, not a file");
    e = (struct error){0};
    CHECK(!file_write(*a, STR("/dev/null"), STR("x"), FILE_REPLACE, &e));
    CHECK_STR(str_from(e.message), "this is not a regular file and cannot be replaced");
    e = (struct error){0};
    CHECK(!file_write(*a, path_join(a, folder, STR("no/such")), STR("x"), FILE_REPLACE, &e));
    CHECK_U64(e.code, ERROR_IO);
    CHECK_U64((uint64_t)entries(*a, folder), 0);
    // A link to nothing passes the first look and is only met when the file moves into place.
    e = (struct error){0};
    struct str link = path_join(a, folder, STR("dangling"));
    CHECK(symlink("nowhere", str_z(a, link)) == 0);
    CHECK(!file_write(*a, link, STR("x"), FILE_KEEP_EXISTING, &e));
    CHECK_STR(str_from(e.message), "this file exists already");
    CHECK_U64((uint64_t)entries(*a, folder), 1);
}

TEST(host_memory_is_usable_and_given_back)
{
    struct host_memory m = {0};
    struct error e = {0};
    CHECK(host_memory_reserve(&m, &e));
    CHECK(m.bytes >= 16 << 20);
    struct arena a = host_arena(&m, NULL);
    char *p = NEW(&a, char, 1 << 20);
    p[(1 << 20) - 1] = 'x';
    CHECK(str_z(&a, STR("after"))[0] == 'a');
    host_memory_release(&m);
    CHECK(!m.block && m.bytes == 0);
    host_memory_release(&m);
}

// "a", e with an accent, a snowman, a musical clef in two halves, half a clef, "b".
TEST(utf16_in_pieces)
{
    static const char little[] = "\xFF\xFE"
                                 "a\0"
                                 "\xE9\0"
                                 "\x03\x26"
                                 "\x34\xD8\x1E\xDD"
                                 "\x34\xD8"
                                 "b\0";
    static const char wanted[] = "a\xC3\xA9\xE2\x98\x83\xF0\x9D\x84\x9E\xEF\xBF\xBD"
                                 "b";
    struct str text = {little, sizeof little - 1};
    CHECK(encoding_of(text) == ENCODING_UTF16_LE);
    for (ptrdiff_t piece = 1; piece <= text.n; piece++) {
        struct utf16 u = {0};
        char room[UTF16_GROWTH * (sizeof little + 1)];
        struct buf out = buf_in(test_arena());
        for (ptrdiff_t at = 0; at < text.n; at += piece)
            buf_put(&out,
                    utf16_decode(room, &u,
                                 str_slice(text, at, at + piece < text.n ? at + piece : text.n)));
        CHECK_STR(buf_str(&out), wanted);
    }
    struct utf16 big = {.big_endian = true};
    char room[UTF16_GROWTH * 8];
    CHECK_STR(utf16_decode(room, &big, (struct str){"\xFE\xFF\0a\x26\x03", 6}), "a\xE2\x98\x83");
}

TEST(what_is_no_text)
{
    static const struct {
        bool text;
        const char *bytes, *said;
    } rows[] = {
        {true, "a log\n", ""},
        {true, "BZh is a word\n", ""},
        {true, "PK is one too\n", ""},
        {true,
         "colours \033[31m and bars \b\b\r and some \001 more, which is long enough to judge\n",
         ""},
        {false,
         "\xFD"
         "7zXZ",
         "xz -dc"},
        {false, "\x28\xB5\x2F\xFD", "zstd -dc"},
        {false, "BZh91AY&SY", "bzip2 -dc"},
        {false, "PK\x03\x04", "unzip -p"},
        {false,
         "\001\002\003\004\005\006\001\002 and sixty more bytes of something that is half of a "
         "pickle",
         "no text"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct error e = {0};
        bool text = encoding_check(str_from(rows[i].bytes), STR("x"), &e);
        if (text != rows[i].text || !strstr(e.message, rows[i].said))
            test_failed(__FILE__, __LINE__, "row %td: %s", i, e.message);
    }
}
