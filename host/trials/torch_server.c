// Starting the server and waiting for its "ready" line, which says which torch it is. Its socket,
// and what its trials need beside it, is in a folder whose name belongs to the store: whoever works
// with the store next removes what a fathom that was killed has left there.
#include "host/trials/torch_server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "host/files/file.h"
#include "host/formats/json_tree.h"

enum { LOG_BYTES = 1 << 20, READY_MS = 300000, STEP_MS = 50, SERVER_GRACE_MS = 500 };

// "2.11" of "2.11.0+cu130".
static struct str version_of(struct arena *a, struct str line)
{
    struct error ignored = {0};
    struct value v;
    struct str text;
    if (!json_tree(&v, a, line, STR_NONE, &ignored) || !value_str(&text, value_get(&v, "torch")))
        return STR_NONE;
    struct str_cut major = str_cut(text, '.');
    struct str minor = str_cut(major.tail, '.').head;
    return str_format(a, "%.*s.%.*s", STR_ARGS(major.head), STR_ARGS(minor));
}

static bool is_ready(struct torch_server *s, struct arena *a, struct str log)
{
    struct error ignored = {0};
    struct str text;
    struct arena before = *a;
    if (!file_read(&text, a, log, LOG_BYTES, &ignored)) {
        *a = before;
        return false;
    }
    for (struct str_cut line = str_cut(text, '\n'); line.found; line = str_cut(line.tail, '\n')) {
        if (str_starts(line.head, STR("{\"fathom\": \"ready\""))) {
            s->torch = version_of(a, line.head);
            return true;
        }
    }
    *a = before;
    return false;
}

static bool did_not_start(struct arena a, struct str log, struct error *e)
{
    struct error ignored = {0};
    struct str text = STR_NONE;
    (void)!file_read(&text, &a, log, LOG_BYTES, &ignored);
    struct str_cut last = str_cut_last(str_trim(text), '\n');
    struct str said = last.found ? last.tail : last.head;
    FAIL(e, CHILD, log, "the torch worker did not start: %.*s", STR_ARGS(str_short(said)));
    return HINT(e, "--python names a Python that has torch and transformers");
}

static bool make_folder(struct torch_server *s, struct arena *a, struct str store, struct error *e)
{
    struct stat found = {0};
    struct sockaddr_un address;
    const char *given = getenv("TMPDIR");
    bool usable = given && *given && strlen(given) + 64 < sizeof address.sun_path;
    (void)stat(str_z(a, store), &found);
    s->folder = str_format(a, "%s/fathom-%ld-%llx-%llx", usable ? given : "/tmp", (long)getuid(),
                           (unsigned long long)found.st_dev, (unsigned long long)found.st_ino);
    s->socket = path_join(a, s->folder, STR("socket"));
    if (!folder_remove(*a, s->folder, e))
        return false;
    return mkdir(str_z(a, s->folder), 0700) == 0 ||
           FAIL(e, IO, s->folder, "this folder cannot be made (%s)", strerror(errno));
}

bool torch_server_start(struct torch_server *s, struct arena *a,
                        const struct trial_request *request, const struct probe_options *o,
                        struct error *e)
{
    struct trial_request r = *request;
    struct launch *l = NEW(a, struct launch, 1);
    struct str log = path_join(a, o->log_folder, STR("torch_server.log"));
    if (!make_folder(s, a, o->store, e))
        return false;
    r.socket = s->socket;
    torch_server(l, a, &r);
    struct keeper_job job = {.arguments = l->arguments,
                             .environment = l->environment,
                             .log = log,
                             .grace_ms = SERVER_GRACE_MS,
                             .interrupts = -1};
    if (!keeper_begin(&s->keeper, *a, &job, e))
        return HINT(e, "--python names a Python that has torch and transformers");
    for (int ms = 0; ms < READY_MS; ms += STEP_MS) {
        struct pollfd fd = {s->interrupts->fd, POLLIN, 0};
        if (is_ready(s, a, log))
            return true;
        if (!keeper_is_alive(&s->keeper))
            return did_not_start(*a, log, e);
        if (poll(&fd, 1, STEP_MS) > 0 && interrupts_pending(s->interrupts))
            return FAIL(e, CHILD, STR_NONE, "interrupted before the first trial");
    }
    return did_not_start(*a, log, e);
}

void torch_server_end(struct torch_server *s, struct arena scratch)
{
    struct error ignored = {0};
    keeper_end(&s->keeper);
    if (s->folder.n)
        (void)!folder_remove(scratch, s->folder, &ignored);
}
