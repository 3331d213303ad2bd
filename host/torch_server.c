// Starting the server and waiting for its "ready" line, which says which torch it is.
#include "host/torch_server.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/file.h"
#include "host/json_tree.h"

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

bool torch_server_start(struct torch_server *s, struct arena *a,
                        const struct trial_request *request, const struct probe_options *o,
                        struct error *e)
{
    struct trial_request r = *request;
    struct launch *l = NEW(a, struct launch, 1);
    const char *folder = getenv("TMPDIR");
    struct str log = path_join(a, o->log_folder, STR("torch_server.log"));
    r.socket =
        str_format(a, "%s/fathom-%ld.sock", folder && *folder ? folder : "/tmp", (long)getpid());
    torch_server(l, a, &r);
    struct keeper_job job = {.arguments = l->arguments,
                             .environment = l->environment,
                             .log = log,
                             .grace_ms = SERVER_GRACE_MS,
                             .interrupts = -1};
    unlink(str_z(a, r.socket));
    if (!keeper_begin(&s->keeper, *a, &job, e))
        return false;
    s->socket = r.socket;
    for (int ms = 0; ms < READY_MS; ms += STEP_MS) {
        struct pollfd fd = {s->interrupts, POLLIN, 0};
        if (is_ready(s, a, log))
            return true;
        if (waitpid(s->keeper.pid, NULL, WNOHANG) != 0) {
            s->keeper.pid = 0;
            return did_not_start(*a, log, e);
        }
        if (poll(&fd, 1, STEP_MS) > 0)
            return FAIL(e, CHILD, STR_NONE, "interrupted before the first trial");
    }
    return did_not_start(*a, log, e);
}

void torch_server_end(struct torch_server *s)
{
    keeper_end(&s->keeper);
    if (!s->socket.n)
        return;
    char name[512];
    int n = snprintf(name, sizeof name, "%.*s", STR_ARGS(s->socket));
    if (n > 0 && n < (int)sizeof name)
        unlink(name);
}
