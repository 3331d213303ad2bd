// Reading and writing real files in a fresh folder of the temporary directory.
#include "host/files/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/compiler.h"
#include "host/files/encoding.h"
#include "host/system/memory.h"
#include "tests/t.h"
#include "tests/temp.h"

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
    struct error zero = {0};
    struct str out;
    CHECK(!file_read(&out, a, STR("/dev/zero"), 1 << 20, &zero));
    CHECK_STR(str_from(zero.message),
              "this file is larger than the 1048576 bytes that are accepted");
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
    CHECK(!file_size(&bytes, *a, STR("/dev/zero"), &e));
    CHECK_STR(str_from(e.message), "this is not a regular file");
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
    CHECK_STR(path_real(a, STR("not there")), "not there");
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
