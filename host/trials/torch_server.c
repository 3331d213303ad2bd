// Starting the server and waiting for its "ready" line, which says which torch it is. Its socket,
// and what its trials need beside it, is in a folder of our own whose name begins with what belongs
// to the store: whoever works with the store next removes what a fathom that was killed has left.
#include "host/trials/torch_server.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "host/files/file.h"
#include "host/files/folder.h"
#include "host/formats/json_tree.h"

enum {
    LOOK_BYTES = 256 << 10,
    MOST_LOOKS = 64,
    TAIL_BYTES = 64 << 10,
    READY_MS = 300000,
    STEP_MS = 50,
    SERVER_GRACE_MS = 500
};

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

// How far the log has been read.
struct log_position {
    struct str path;
    int64_t offset;
};

// Where the line stands whole in the text; else how much of the text need not be read again.
static bool find_ready(struct str *line, ptrdiff_t *passed, struct str text)
{
    struct str words = STR("{\"fathom\": \"ready\"");
    const char *at = text.n ? memmem(text.p, (size_t)text.n, words.p, (size_t)words.n) : NULL;
    *passed = at ? at - text.p : text.n - words.n;
    if (!at)
        return false;
    struct str_cut end = str_cut(str_slice(text, *passed, text.n), '}');
    if (end.found)
        *line = str_slice(text, *passed, *passed + end.head.n + 1);
    return end.found;
}

// Reads on from where it stopped: libraries may say any amount before it, and end no line.
static bool is_ready(struct torch_server *s, struct arena *a, struct log_position *log)
{
    for (int i = 0; i < MOST_LOOKS; i++) {
        struct error ignored = {0};
        struct arena before = *a;
        struct str text, line;
        ptrdiff_t passed;
        if (!file_read_part(&text, a, log->path, (struct file_part){log->offset, LOOK_BYTES},
                            &ignored)) {
            *a = before;
            return false;
        }
        if (find_ready(&line, &passed, text)) {
            s->torch = version_of(a, line);
            return true;
        }
        *a = before;
        log->offset += passed > 0 ? passed : 0;
        if (text.n < LOOK_BYTES)
            return false;
    }
    return false;
}

static struct str end_of(struct arena *a, struct str log)
{
    struct error ignored = {0};
    struct str text = STR_NONE;
    uint64_t bytes = 0;
    if (!file_size(&bytes, *a, log, &ignored))
        return text;
    struct file_part tail = {bytes > TAIL_BYTES ? (int64_t)bytes - TAIL_BYTES : 0, TAIL_BYTES};
    (void)!file_read_part(&text, a, log, tail, &ignored);
    return text;
}

static bool did_not_start(struct arena a, struct str log, struct error *e)
{
    struct str_cut last = str_cut_last(str_trim(end_of(&a, log)), '\n');
    struct str said = last.found ? last.tail : last.head;
    FAIL(e, CHILD, log, "the torch worker did not start: %.*s", STR_ARGS(str_short(said)));
    return HINT(e, "--python names a Python that has torch and transformers");
}

static bool make_folder(struct torch_server *s, struct arena *a, struct str store, struct error *e)
{
    struct stat found = {0};
    struct sockaddr_un address;
    struct str name = STR("socket");
    (void)stat(str_z(a, store), &found);
    struct str prefix = str_format(a, "fathom-%llx-%llx-", (unsigned long long)found.st_dev,
                                   (unsigned long long)found.st_ino);
    private_folders_remove(*a, prefix);
    if (!private_folder_make(&s->folder, a, prefix, (ptrdiff_t)sizeof address.sun_path - name.n - 2,
                             e))
        return false;
    s->socket = path_join(a, s->folder, name);
    return true;
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
    struct log_position position = {.path = log};
    uint64_t until = monotonic_ms() + READY_MS;
    while (monotonic_ms() < until) {
        struct pollfd fd = {s->interrupts->fd, POLLIN, 0};
        if (is_ready(s, a, &position))
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
