// SQLite behind store.h. Statements are texts beside their use; values are bound, never pasted.
#include "host/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "host/file.h"

enum { BUSY_MS = 10000, SETTLE_MS = 60000, SETTLE_STEP_MS = 20, MOST_ATTEMPTS = 1 << 20 };

struct store {
    sqlite3 *db;
    int lock; // -1 where only read
    struct str path;
};

// One text for each version of the schema, from the one before it.
static const char *const migrations[] = {
    "CREATE TABLE cell ("
    "  id INTEGER PRIMARY KEY,"
    "  key TEXT NOT NULL UNIQUE,"
    "  model TEXT NOT NULL,"
    "  engine TEXT NOT NULL,"
    "  card TEXT NOT NULL,"
    "  gpus INTEGER NOT NULL,"
    "  sp INTEGER NOT NULL,"
    "  max_position INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE attempt ("
    "  id INTEGER PRIMARY KEY,"
    "  cell INTEGER NOT NULL REFERENCES cell (id),"
    "  context INTEGER NOT NULL,"
    "  try INTEGER NOT NULL,"
    "  state TEXT NOT NULL CHECK (state IN ('running', 'finished')),"
    "  outcome TEXT,"
    "  status INTEGER,"
    "  detail TEXT,"
    "  log TEXT NOT NULL,"
    "  command TEXT NOT NULL,"
    "  versions TEXT,"
    "  gpu TEXT,"
    "  timeout_ms INTEGER NOT NULL,"
    "  started_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER,"
    "  keeper_pid INTEGER,"
    "  keeper_started INTEGER,"
    "  predicted_bytes INTEGER NOT NULL,"
    "  predicted_fits INTEGER NOT NULL,"
    "  steps INTEGER,"
    "  allocated_bytes INTEGER,"
    "  requested_bytes INTEGER,"
    "  reserved_bytes INTEGER,"
    "  retries INTEGER,"
    "  CHECK ((state = 'finished') = (outcome IS NOT NULL))"
    ") STRICT;"
    "CREATE INDEX attempt_of_cell ON attempt (cell, id);",
};

// ------------------------------------------------------------------ failures and statements

static bool failed(const struct store *s, struct error *e)
{
    int code = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;
    switch (code & 0xFF) {
    case SQLITE_FULL:
        return FAIL(e, IO, s->path, "the disk is full, so the store cannot be written");
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return FAIL(e, IO, s->path, "this store may not be written");
    case SQLITE_CANTOPEN:
        return FAIL(e, IO, s->path, "this store cannot be opened or made");
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return FAIL(e, BAD_INPUT, s->path, "this file is not a store of trials, or it is damaged");
    default:
        return FAIL(e, IO, s->path, "the store failed (%s)",
                    s->db ? sqlite3_errmsg(s->db) : "no memory");
    }
}

static bool execute(struct store *s, const char *sql, struct error *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || failed(s, e);
}

// A statement with its next free parameter.
struct statement {
    struct store *store;
    sqlite3_stmt *sql;
    int next;
    bool ok;
};

static struct statement prepare(struct store *s, const char *sql)
{
    struct statement t = {.store = s, .next = 1};
    t.ok = sqlite3_prepare_v2(s->db, sql, -1, &t.sql, NULL) == SQLITE_OK;
    return t;
}

static void put_number(struct statement *t, int64_t value)
{
    t->ok = t->ok && sqlite3_bind_int64(t->sql, t->next++, value) == SQLITE_OK;
}

static void put_text(struct statement *t, struct str text)
{
    t->ok = t->ok && sqlite3_bind_text(t->sql, t->next++, text.n ? text.p : "", (int)text.n,
                                       SQLITE_TRANSIENT) == SQLITE_OK;
}

// Whether there is a row; false at the end and after a failure, which `finish` tells apart.
static bool next_row(struct statement *t)
{
    int code = t->ok ? sqlite3_step(t->sql) : SQLITE_ERROR;
    t->ok = t->ok && (code == SQLITE_ROW || code == SQLITE_DONE);
    return code == SQLITE_ROW;
}

static bool finish(struct statement *t, struct error *e)
{
    bool ok = t->ok || failed(t->store, e);
    sqlite3_finalize(t->sql);
    return ok;
}

static bool run(struct statement *t, struct error *e)
{
    next_row(t);
    return finish(t, e);
}

static int64_t number_at(struct statement *t, int column)
{
    return sqlite3_column_int64(t->sql, column);
}

static struct str text_at(struct statement *t, struct arena *a, int column)
{
    const unsigned char *text = sqlite3_column_text(t->sql, column);
    struct str s = {(const char *)text, sqlite3_column_bytes(t->sql, column)};
    return text ? str_copy(a, s) : STR_NONE;
}

// ------------------------------------------------------------------ opening

static bool take_lock(struct store *s, struct arena scratch, struct error *e)
{
    const char *name = str_z(&scratch, str_join(&scratch, s->path, STR(".lock")));
    s->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock < 0)
        return FAIL(e, IO, s->path, "this store may not be written (%s)", strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    return FAIL(e, IO, s->path, "another fathom works with this store");
}

static bool migrate(struct store *s, struct arena scratch, struct error *e)
{
    struct statement t = prepare(s, "PRAGMA user_version");
    int64_t version = next_row(&t) ? number_at(&t, 0) : 0;
    if (!finish(&t, e))
        return false;
    if (version > COUNT_OF(migrations))
        return FAIL(e, UNSUPPORTED, s->path, "this store was made by a newer fathom");
    for (; version < COUNT_OF(migrations); version++) {
        const char *text =
            str_z(&scratch,
                  str_format(&scratch, "BEGIN IMMEDIATE; %s PRAGMA user_version = %lld; COMMIT;",
                             migrations[version], (long long)version + 1));
        if (!execute(s, text, e))
            return false;
    }
    return true;
}

static bool open_database(struct store *s, struct arena scratch, enum store_access access,
                          struct error *e)
{
    bool work = access == STORE_WORK;
    if (!work && path_kind(scratch, s->path) != PATH_FILE)
        return FAIL(e, BAD_INPUT, s->path, "there is no such store of trials");
    struct str_cut folder = str_cut_last(s->path, '/');
    if (work && folder.found && folder.head.n && !folder_make(scratch, folder.head, e))
        return false;
    if (work && !take_lock(s, scratch, e))
        return false;
    int flags = work ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
    if (sqlite3_open_v2(str_z(&scratch, s->path), &s->db, flags, NULL) != SQLITE_OK)
        return failed(s, e);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    const char *ways =
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON";
    return (!work || execute(s, ways, e)) && migrate(s, scratch, e);
}

bool store_open(struct store **out, struct arena *a, struct str path, enum store_access access,
                struct error *e)
{
    struct store *s = NEW(a, struct store, 1);
    *s = (struct store){.lock = -1, .path = str_copy(a, path)};
    if (!open_database(s, *a, access, e)) {
        store_close(s);
        return false;
    }
    *out = s;
    return true;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    sqlite3_close(s->db);
    if (s->lock >= 0)
        close(s->lock);
}

// ------------------------------------------------------------------ writing

bool store_cell(int64_t *id, struct store *s, const struct cell_record *c, struct error *e)
{
    struct statement t =
        prepare(s, "INSERT INTO cell (key, model, engine, card, gpus, sp, max_position)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING");
    put_text(&t, c->key);
    put_text(&t, c->model);
    put_text(&t, c->engine);
    put_text(&t, c->card);
    put_number(&t, (int64_t)c->gpus);
    put_number(&t, (int64_t)c->sp);
    put_number(&t, (int64_t)c->max_position);
    if (!run(&t, e))
        return false;
    t = prepare(s, "SELECT id FROM cell WHERE key = ?");
    put_text(&t, c->key);
    *id = next_row(&t) ? number_at(&t, 0) : 0;
    return finish(&t, e);
}

bool store_begin(int64_t *id, struct store *s, int64_t cell, const struct attempt_record *a,
                 struct error *e)
{
    struct statement t =
        prepare(s, "INSERT INTO attempt (cell, context, try, state, log, command, timeout_ms,"
                   " started_ms, predicted_bytes, predicted_fits)"
                   " VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?)");
    put_number(&t, cell);
    put_number(&t, (int64_t)a->context);
    put_number(&t, a->try);
    put_text(&t, a->log);
    put_text(&t, a->command);
    put_number(&t, (int64_t)a->timeout_ms);
    put_number(&t, a->started_ms);
    put_number(&t, (int64_t)a->predicted_bytes);
    put_number(&t, a->predicted_fits);
    if (!run(&t, e))
        return false;
    *id = sqlite3_last_insert_rowid(s->db);
    return true;
}

bool store_keeper(struct store *s, int64_t attempt, struct process keeper, struct error *e)
{
    struct statement t =
        prepare(s, "UPDATE attempt SET keeper_pid = ?, keeper_started = ? WHERE id = ?");
    put_number(&t, keeper.pid);
    put_number(&t, keeper.started);
    put_number(&t, attempt);
    return run(&t, e);
}

bool store_finish(struct store *s, int64_t attempt, const struct attempt_record *a, struct error *e)
{
    struct statement t =
        prepare(s, "UPDATE attempt SET state = 'finished', outcome = ?, status = ?, detail = ?,"
                   " versions = ?, gpu = ?, ended_ms = ?, steps = ?, allocated_bytes = ?,"
                   " requested_bytes = ?, reserved_bytes = ?, retries = ? WHERE id = ?");
    put_text(&t, str_from(outcome_rows[a->outcome].name));
    put_number(&t, a->status);
    put_text(&t, a->detail);
    put_text(&t, a->versions);
    put_text(&t, a->gpu);
    put_number(&t, a->ended_ms);
    put_number(&t, (int64_t)a->peaks.steps);
    put_number(&t, (int64_t)a->peaks.allocated_bytes);
    put_number(&t, (int64_t)a->peaks.requested_bytes);
    put_number(&t, (int64_t)a->peaks.reserved_bytes);
    put_number(&t, (int64_t)a->peaks.retries);
    put_number(&t, attempt);
    return run(&t, e);
}

// ------------------------------------------------------------------ reading

bool store_trials(struct trials *trials, struct store *s, struct arena *a, int64_t cell,
                  struct error *e)
{
    struct statement t = prepare(
        s,
        "SELECT context, outcome FROM attempt WHERE cell = ? AND state = 'finished' ORDER BY id");
    put_number(&t, cell);
    *trials = (struct trials){0};
    while (next_row(&t)) {
        struct arena scratch = *a;
        struct trial found = {.context = (uint64_t)number_at(&t, 0)};
        bool known = outcome_from_name(&found.outcome, text_at(&t, &scratch, 1));
        if (!known || outcome_rows[found.outcome].verdict == LENGTH_UNDECIDED)
            continue;
        trials->items =
            arena_grow(a, trials->items, sizeof found, trials->count, &trials->capacity);
        trials->items[trials->count++] = found;
    }
    return finish(&t, e);
}

static void wait_for(struct process p)
{
    struct timespec step = {0, SETTLE_STEP_MS * 1000000L};
    for (int ms = 0; ms < SETTLE_MS && process_is_alive(p); ms += SETTLE_STEP_MS)
        nanosleep(&step, NULL);
}

bool store_settle(ptrdiff_t *count, struct store *s, struct error *e)
{
    struct statement t =
        prepare(s, "SELECT keeper_pid, keeper_started FROM attempt WHERE state = 'running'");
    for (*count = 0; next_row(&t); ++*count)
        wait_for((struct process){number_at(&t, 0), number_at(&t, 1)});
    if (!finish(&t, e))
        return false;
    return *count == 0 ||
           execute(s,
                   "UPDATE attempt SET state = 'finished', outcome = 'interrupted',"
                   " detail = 'fathom ended before this trial did' WHERE state = 'running'",
                   e);
}

static struct attempt_record attempt_at(struct statement *t, struct arena *a)
{
    struct attempt_record r = {
        .id = number_at(t, 0),
        .context = (uint64_t)number_at(t, 1),
        .try = (int)number_at(t, 2),
        .status = (int)number_at(t, 4),
        .timeout_ms = (uint64_t)number_at(t, 10),
        .started_ms = number_at(t, 11),
        .ended_ms = number_at(t, 12),
        .predicted_bytes = (uint64_t)number_at(t, 13),
        .predicted_fits = number_at(t, 14) != 0,
        .peaks = {(uint64_t)number_at(t, 15), (uint64_t)number_at(t, 16),
                  (uint64_t)number_at(t, 17), (uint64_t)number_at(t, 18),
                  (uint64_t)number_at(t, 19)},
    };
    r.finished = outcome_from_name(&r.outcome, text_at(t, a, 3));
    r.detail = text_at(t, a, 5);
    r.log = text_at(t, a, 6);
    r.command = text_at(t, a, 7);
    r.versions = text_at(t, a, 8);
    r.gpu = text_at(t, a, 9);
    return r;
}

static bool read_attempts(struct cell_record *c, struct store *s, struct arena *a, struct error *e)
{
    ptrdiff_t capacity = 0;
    struct statement t =
        prepare(s, "SELECT id, context, try, outcome, status, detail, log, command, versions, gpu,"
                   " timeout_ms, started_ms, ended_ms, predicted_bytes, predicted_fits, steps,"
                   " allocated_bytes, requested_bytes, reserved_bytes, retries"
                   " FROM attempt WHERE cell = ? ORDER BY id");
    put_number(&t, c->id);
    while (next_row(&t)) {
        struct attempt_record r = attempt_at(&t, a);
        c->attempts = arena_grow(a, c->attempts, sizeof r, c->attempt_count, &capacity);
        c->attempts[c->attempt_count++] = r;
    }
    return finish(&t, e);
}

bool store_read(struct cell_record **cells, ptrdiff_t *count, struct store *s, struct arena *a,
                struct error *e)
{
    ptrdiff_t capacity = 0;
    struct statement t = prepare(
        s, "SELECT id, key, model, engine, card, gpus, sp, max_position FROM cell ORDER BY id");
    *cells = NULL;
    *count = 0;
    while (next_row(&t)) {
        struct cell_record c = {.id = number_at(&t, 0),
                                .gpus = (uint64_t)number_at(&t, 5),
                                .sp = (uint64_t)number_at(&t, 6),
                                .max_position = (uint64_t)number_at(&t, 7)};
        c.key = text_at(&t, a, 1);
        c.model = text_at(&t, a, 2);
        c.engine = text_at(&t, a, 3);
        c.card = text_at(&t, a, 4);
        *cells = arena_grow(a, *cells, sizeof c, *count, &capacity);
        (*cells)[(*count)++] = c;
    }
    if (!finish(&t, e))
        return false;
    for (ptrdiff_t i = 0; i < *count; i++)
        if (!read_attempts(&(*cells)[i], s, a, e))
            return false;
    return true;
}
