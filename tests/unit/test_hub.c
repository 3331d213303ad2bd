// The hub against a real HTTP server (tests/support/hub_server.py), and the cache against a real
// folder.
#include "host/sources/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/files/file.h"
#include "tests/support/t.h"
#include "tests/support/temp.h"

#ifndef HUB_SERVER
#define HUB_SERVER "tests/support/hub_server.py"
#endif

static pid_t server;
static int port, other_port;

static void stop_server(void)
{
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
}

static void run_server(int out)
{
    dup2(out, STDOUT_FILENO);
    execlp("python3", "python3", HUB_SERVER, (char *)NULL);
    _exit(127);
}

// Started by the first test that needs it, stopped when the program ends.
static bool server_ready(void)
{
    if (server)
        return port > 0;
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    int ends[2];
    char line[64] = {0};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    server = fork();
    if (server == 0)
        run_server(ends[1]);
    close(ends[1]);
    if (atexit(stop_server) != 0)
        return false;
    FILE *f = fdopen(ends[0], "r");
    bool told = f && fgets(line, sizeof line, f);
    char *end = line;
    if (told) {
        port = (int)strtol(line, &end, 10);
        other_port = (int)strtol(end, NULL, 10);
    }
    bool closed = f && fclose(f) == 0;
    return closed && port > 0 && other_port > 0;
}

static struct hub_options options(struct arena *a)
{
    return (struct hub_options){.endpoint = str_format(a, "http://127.0.0.1:%d/", port),
                                .token = STR("hf_secret"),
                                .connect_timeout_s = 5,
                                .total_timeout_s = 10};
}

struct fetched {
    struct str body;
    struct error error;
};

static struct fetched fetch_with(struct arena *a, const struct hub_options *o, const char *id)
{
    struct fetched f = {.body = STR("untouched")};
    struct hub_file wanted = {str_from(id), STR("config.json")};
    bool ok = hub_fetch(&f.body, a, o, wanted, &f.error);
    CHECK(ok == (f.error.code == ERROR_NONE));
    if (!ok)
        CHECK_STR(f.body, "untouched");
    return f;
}

static struct fetched fetch(const char *id)
{
    struct arena *a = test_arena();
    CHECK(server_ready());
    struct hub_options o = options(a);
    return fetch_with(a, &o, id);
}

static bool holds(struct str text, const char *part)
{
    return memmem(text.p, (size_t)text.n, part, strlen(part)) != NULL;
}

static void fails(const char *id, enum error_code code, const char *message)
{
    struct fetched f = fetch(id);
    CHECK_U64(f.error.code, code);
    CHECK_STR(str_from(f.error.message), message);
}

TEST(hub_fetch_sends_token_and_agent)
{
    struct fetched f = fetch("test/ok");
    CHECK_STR(f.body, "{\"path\": \"/test/ok/resolve/main/config.json\", "
                      "\"authorization\": \"Bearer hf_secret\", \"agent\": \"fathom\"}");
    struct arena *a = test_arena();
    struct hub_options o = options(a);
    o.token = STR_NONE;
    f = fetch_with(a, &o, "test/ok");
    CHECK(holds(f.body, "\"authorization\": null"));
}

TEST(hub_token_stays_with_its_host)
{
    struct fetched f = fetch("test/same");
    CHECK_STR(f.body, "{\"path\": \"/seen\", \"authorization\": \"Bearer hf_secret\", "
                      "\"agent\": \"fathom\"}");
    f = fetch("test/other");
    CHECK_STR(f.body, "{\"path\": \"/seen\", \"authorization\": null, \"agent\": \"fathom\"}");
    f = fetch("test/userinfo");
    CHECK(holds(f.body, "\"path\": \"/seen\", \"authorization\": "));
    CHECK(!holds(f.body, "hf_secret"));
    f = fetch("test/backslash");
    CHECK(!holds(f.body, "hf_secret"));
    f = fetch("test/there-and-back"); // whoever was in between chose the path
    CHECK_STR(f.body, "{\"path\": \"/seen\", \"authorization\": null, \"agent\": \"fathom\"}");
}

TEST(hub_redirects_are_bounded_and_stay_on_the_web)
{
    struct fetched f = fetch("test/five");
    CHECK(holds(f.body, "\"path\": \"/seen\""));
    fails("test/six", ERROR_IO, "the hub redirects config.json more than 5 times");
    fails("test/loop", ERROR_IO, "the hub redirects config.json more than 5 times");
    fails("test/file-scheme", ERROR_IO,
          "the hub redirects config.json to an address that is not safe");
    fails("test/nowhere", ERROR_IO, "the hub redirects config.json to an address that is not safe");
}

TEST(hub_statuses)
{
    fails("test/private", ERROR_BAD_INPUT,
          "the hub says test/private is private, gated or not there");
    struct fetched f = fetch("test/gated");
    CHECK_U64(f.error.code, ERROR_BAD_INPUT);
    CHECK_STR(str_from(f.error.hint), "set HF_TOKEN to a token that may read it");
    fails("test/none", ERROR_BAD_INPUT, "the hub knows no model test/none");
    fails("test/nofile", ERROR_BAD_INPUT, "test/nofile has no file config.json on the hub");
    fails("test/broken", ERROR_IO, "the hub answered with status 500 when asked for test/broken");
}

TEST(hub_bad_answers)
{
    fails("test/large", ERROR_IO, "the hub's answer for config.json is larger than 16 MiB");
    fails("test/large-chunked", ERROR_IO, "the hub's answer for config.json is larger than 16 MiB");
    fails("test/truncated", ERROR_IO,
          "the download of config.json broke off (Transferred a partial file)");
    struct fetched f = fetch("test/garbage");
    CHECK_U64(f.error.code, ERROR_IO);
    CHECK(str_starts(str_from(f.error.message), STR("cannot reach http://127.0.0.1:")));
}

TEST(hub_timeouts)
{
    static const char *const slow[] = {"test/slow", "test/slow-body"};
    for (int i = 0; i < 2; i++) {
        CHECK(server_ready());
        struct arena *a = test_arena();
        struct hub_options o = options(a);
        o.total_timeout_s = 2;
        time_t start = time(NULL);
        struct fetched f = fetch_with(a, &o, slow[i]);
        CHECK(time(NULL) - start < 10);
        CHECK_U64(f.error.code, ERROR_IO);
        CHECK(holds(str_from(f.error.message), "(Timeout was reached)"));
    }
}

TEST(hub_cannot_be_reached)
{
    struct arena *a = test_arena();
    struct hub_options o = options(a);
    o.endpoint = STR("http://127.0.0.1:1");
    struct fetched f = fetch_with(a, &o, "test/ok");
    CHECK_U64(f.error.code, ERROR_IO);
    CHECK_STR(str_from(f.error.message),
              "cannot reach http://127.0.0.1:1 to fetch test/ok (Couldn't connect to server)");
    CHECK_STR(str_from(f.error.hint), "give a folder or config.json instead");
}

TEST(hub_password_is_sent_and_never_said)
{
    CHECK(server_ready());
    struct arena *a = test_arena();
    struct hub_options o = options(a);
    o.token = STR_NONE;
    o.endpoint = str_format(a, "http://user:pass@127.0.0.1:%d/", port);
    struct fetched f = fetch_with(a, &o, "test/ok");
    CHECK(holds(f.body, "\"authorization\": \"Basic dXNlcjpwYXNz\""));
    f = fetch_with(a, &o, "test/other");
    CHECK(holds(f.body, "\"authorization\": null"));
}

TEST(hub_password_is_in_no_message)
{
    struct arena *a = test_arena();
    struct hub_options o = options(a);
    static const char *const closed[][2] = {
        {"http://user:pass@127.0.0.1:1", "cannot reach http://127.0.0.1:1 to fetch test/ok ("},
        {"http://user:pa@ss@127.0.0.1:1", "cannot reach http://127.0.0.1:1 to fetch test/ok ("},
        {"http://user:pa/ss@127.0.0.1:1", "cannot reach http://127.0.0.1:1 to fetch test/ok ("},
        {"user:pass@127.0.0.1:1", "the hub's address must begin with https://"},
    };
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        o.endpoint = str_from(closed[i][0]);
        struct fetched f = fetch_with(a, &o, "test/ok");
        CHECK(str_starts(str_from(f.error.message), str_from(closed[i][1])));
        CHECK(!holds(str_from(f.error.where), "pa") && !holds(str_from(f.error.hint), "pa"));
    }
}

TEST(hub_options_are_checked_before_anything_is_sent)
{
    struct arena *a = test_arena();
    struct hub_options o = options(a);
    o.offline = true;
    struct fetched f = fetch_with(a, &o, "test/ok");
    CHECK_U64(f.error.code, ERROR_IO);
    CHECK_STR(str_from(f.error.message),
              "test/ok is not in the cache and downloads are turned off");
    o = options(a);
    o.token = STR("hf_x\r\nHost: evil");
    f = fetch_with(a, &o, "test/ok");
    CHECK_STR(str_from(f.error.message), "the token holds a character that no token has");
    o = options(a);
    o.endpoint = STR("file:///etc");
    f = fetch_with(a, &o, "test/ok");
    CHECK_STR(str_from(f.error.message), "the hub's address must begin with https://");
    o = options(a);
    f = fetch_with(a, &o, "../etc/passwd");
    CHECK_STR(str_from(f.error.message), "a model on the hub is named OWNER/NAME");
}

TEST(hub_ids)
{
    static const char *const good[] = {"Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B", "a/b",
                                       "A_1/x.y"};
    static const char *const bad[] = {"",     "gpt2", "a/",     "/b",    "a/b/c", "./b",
                                      "../b", "a/..", "a/b..c", "a b/c", "a/b?c", "a/b%2e",
                                      "a/-b", "a//b", "a/b--c", "a/b\n", "~/b",   "a/\xc3\xa9"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!hub_is_id(str_from(good[i])))
            test_failed(__FILE__, __LINE__, "'%s' is an id", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hub_is_id(str_from(bad[i])))
            test_failed(__FILE__, __LINE__, "'%s' is no id", bad[i]);
    CHECK(!hub_is_id(STR("a/b\0c")));
    char longest[99];
    memset(longest, 'n', sizeof longest);
    longest[1] = '/';
    CHECK(hub_is_id((struct str){longest, 98}));
    CHECK(!hub_is_id((struct str){longest, 99}));
}

static void put(struct arena a, struct str folder, const char *name, const char *content)
{
    struct str path = path_join(&a, folder, str_from(name));
    for (ptrdiff_t i = 1; i < path.n; i++)
        if (path.p[i] == '/')
            mkdir(str_z(&a, str_slice(path, 0, i)), 0777);
    struct error e = {0};
    CHECK(file_write(a, path, str_from(content), FILE_REPLACE, &e));
}

static void set_time(struct arena a, struct str folder, const char *name, time_t seconds)
{
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    CHECK(utimensat(AT_FDCWD, str_z(&a, path_join(&a, folder, str_from(name))), times, 0) == 0);
}

static struct str cached(struct arena *a, const struct hub_options *o, const char *id,
                         const char *file)
{
    struct str path = STR("untouched");
    bool found = hub_cached(&path, a, o, str_from(id), str_from(file));
    CHECK(found == !str_is(path, "untouched"));
    return found ? str_slice(path, o->cache_folder.n, path.n) : STR("(none)");
}

TEST(hub_cache)
{
    struct arena *a = test_arena();
    struct hub_options o = {.cache_folder = temp_folder(a)};
    CHECK_STR(cached(a, &o, "org/m", "config.json"), "(none)");
    put(*a, o.cache_folder, "models--org--m/snapshots/old/config.json", "1");
    put(*a, o.cache_folder, "models--org--m/snapshots/new/config.json", "2");
    put(*a, o.cache_folder, "models--org--m/snapshots/newest/other.json", "3");
    set_time(*a, o.cache_folder, "models--org--m/snapshots/old", 1000);
    set_time(*a, o.cache_folder, "models--org--m/snapshots/new", 2000);
    CHECK_STR(cached(a, &o, "org/m", "config.json"), "/models--org--m/snapshots/new/config.json");
    put(*a, o.cache_folder, "models--org--m/refs/main", "old\n");
    CHECK_STR(cached(a, &o, "org/m", "config.json"), "/models--org--m/snapshots/old/config.json");
    put(*a, o.cache_folder, "models--org--m/refs/main", "../snapshots/old");
    CHECK_STR(cached(a, &o, "org/m", "config.json"), "/models--org--m/snapshots/new/config.json");
    CHECK_STR(cached(a, &o, "org/m", "../old/config.json"), "(none)");
    CHECK_STR(cached(a, &o, "org", "config.json"), "(none)");
    o.cache_folder = STR_NONE;
    CHECK_STR(cached(a, &o, "org/m", "config.json"), "(none)");
}
