// Opening a store. What works with it brings an older file up to date; what only reads it never
// changes the file: an older one is brought up to date in a copy in memory. A database that is not
// a store is refused before anything is written to it.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "host/files/file.h"
#include "host/files/folder.h"
#include "host/trials/store_sql.h"

enum { BUSY_MS = 10000, GLANCE_BUSY_MS = 200, LOCK_MS = 500, LOCK_STEP_MS = 20 };

// One text for each version of the schema, from the one before it. A text that was released stays
// as it is.
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

    "CREATE TABLE step ("
    "  attempt INTEGER NOT NULL REFERENCES attempt (id),"
    "  number INTEGER NOT NULL,"
    "  allocated_bytes INTEGER NOT NULL,"
    "  requested_bytes INTEGER NOT NULL,"
    "  reserved_bytes INTEGER NOT NULL,"
    "  end_allocated_bytes INTEGER NOT NULL,"
    "  retries INTEGER NOT NULL,"
    "  seconds REAL NOT NULL,"
    "  PRIMARY KEY (attempt, number)"
    ") STRICT, WITHOUT ROWID;"
    "ALTER TABLE cell ADD COLUMN config TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE attempt ADD COLUMN limit_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempt ADD COLUMN total_bytes INTEGER;",

    "ALTER TABLE attempt ADD COLUMN mark TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE attempt ADD COLUMN group_pid INTEGER;"
    "ALTER TABLE attempt ADD COLUMN group_started INTEGER;",
};

static const char *lock_name(struct arena *a, const struct store *s)
{
    return str_z(a, str_join(a, s->path, STR(".lock")));
}

// Readers hold it for a moment, to see whether anybody does.
static bool take_lock(struct store *s, struct arena scratch, struct error *e)
{
    s->lock = open(lock_name(&scratch, s), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock < 0)
        return FAIL(e, IO, s->path, "this store may not be written (%s)", strerror(errno));
    for (int ms = 0; ms < LOCK_MS; ms += LOCK_STEP_MS) {
        if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
            return true;
        usleep(LOCK_STEP_MS * 1000);
    }
    return FAIL(e, IO, s->path, "another fathom works with this store");
}

bool store_is_worked_with(const struct store *s, struct arena scratch)
{
    int fd = open(lock_name(&scratch, s), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno != ENOENT;
    bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    close(fd);
    return held;
}

// ------------------------------------------------------------------ its name

// For SQLite, to which ":memory:" and "file:..." are no files.
static const char *file_name(struct arena *a, struct str path)
{
    return str_z(a, str_starts(path, STR("/")) ? path : str_join(a, STR("./"), path));
}

// With the files that SQLite has beside it: opening a pipe waits for whoever is at its other end.
static bool is_possible(const struct store *s, struct arena scratch, struct error *e)
{
    static const char *const parts[] = {"", "-wal", "-shm", "-journal", ".lock"};
    if (str_is(s->path, ":memory:"))
        return FAIL(e, BAD_INPUT, STR("--store"), "a store is a file: trials are kept");
    for (ptrdiff_t i = 0; i < COUNT_OF(parts); i++) {
        struct str part = str_join(&scratch, s->path, str_from(parts[i]));
        if (path_is_odd(scratch, part))
            return FAIL(e, BAD_INPUT, part, "this is not a regular file");
    }
    return true;
}

// ------------------------------------------------------------------ what the file is

// The schema's version; 0 for a database in which nothing is yet.
static bool identify(int64_t *version, struct store *s, struct error *e)
{
    struct statement t = statement_of(s, "SELECT user_version FROM pragma_user_version");
    *version = statement_row(&t) ? number_at(&t, 0) : 0;
    if (!statement_finish(&t, e))
        return false;
    t = statement_of(s, "SELECT count(*), count(*) FILTER (WHERE type = 'table' AND"
                        " name IN ('cell', 'attempt')) FROM sqlite_master");
    bool counted = statement_row(&t);
    int64_t things = counted ? number_at(&t, 0) : 0, ours = counted ? number_at(&t, 1) : 0;
    if (!statement_finish(&t, e))
        return false;
    if (*version ? ours < 2 : things > 0)
        return FAIL(e, BAD_INPUT, s->path, "this is a database, but not a store of trials");
    if (*version > COUNT_OF(migrations))
        return FAIL(e, UNSUPPORTED, s->path, "this store was made by a newer fathom");
    return true;
}

static bool migrate(struct store *s, struct arena scratch, int64_t version, struct error *e)
{
    for (; version < COUNT_OF(migrations); version++) {
        const char *text =
            str_z(&scratch,
                  str_format(&scratch, "BEGIN IMMEDIATE; %s PRAGMA user_version = %lld; COMMIT;",
                             migrations[version], (long long)version + 1));
        if (!store_execute(s, text, e))
            return false;
    }
    return true;
}

// ------------------------------------------------------------------ reading

// The file is read into memory and left alone from then on.
static bool copy_to_memory(struct store *s, struct error *e)
{
    struct store copy = {.path = s->path, .lock = -1};
    bool ok = sqlite3_open(":memory:", &copy.db) == SQLITE_OK;
    sqlite3_backup *b = ok ? sqlite3_backup_init(copy.db, "main", s->db, "main") : NULL;
    if (b)
        (void)sqlite3_backup_step(b, -1);
    ok = b && sqlite3_backup_finish(b) == SQLITE_OK;
    if (!ok) {
        (void)store_failed(&copy, e);
        sqlite3_close(copy.db);
        return false;
    }
    sqlite3_close(s->db);
    s->db = copy.db;
    return true;
}

// "file:NAME?immutable=1", which reads a file whose folder may not be written.
static const char *unchanging_name(struct arena *a, struct str path)
{
    struct buf b = buf_in(a);
    buf_put_z(&b, str_starts(path, STR("/")) ? "file://" : "file:./");
    for (ptrdiff_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        bool plain = c > ' ' && c < 127 && !strchr("%?#", c);
        if (plain)
            buf_char(&b, (char)c);
        else
            buf_printf(&b, "%%%02X", c);
    }
    buf_put_z(&b, "?immutable=1");
    return str_z(a, buf_str(&b));
}

static bool has_unwritten_part(struct arena scratch, struct str path)
{
    struct str log = str_join(&scratch, path, STR("-wal"));
    uint64_t bytes;
    struct error ignored = {0};
    return path_kind(scratch, log) == PATH_FILE &&
           (!file_size(&bytes, scratch, log, &ignored) || bytes > 0);
}

// SQLite wants a file of its own beside a store even to read it; where it can make none, the store
// is taken as it is.
static bool open_to_read(struct store *s, struct arena scratch, int busy_ms, struct error *e)
{
    if (path_kind(scratch, s->path) != PATH_FILE)
        return FAIL(e, BAD_INPUT, s->path, "there is no such store of trials");
    int code = sqlite3_open_v2(file_name(&scratch, s->path), &s->db, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(s->db, busy_ms);
        code = sqlite3_exec(s->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    }
    bool barred = (code & 0xFF) == SQLITE_CANTOPEN || (code & 0xFF) == SQLITE_READONLY;
    if (!barred)
        return code == SQLITE_OK || store_failed(s, e);
    if (has_unwritten_part(scratch, s->path))
        return FAIL(e, IO, s->path,
                    "this store was left unfinished in a folder that may not be written; a copy "
                    "with its -wal file can be read");
    sqlite3_close(s->db);
    s->db = NULL;
    return sqlite3_open_v2(unchanging_name(&scratch, s->path), &s->db,
                           SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK ||
           store_failed(s, e);
}

static bool open_reader(struct store *s, struct arena scratch, int busy_ms, struct error *e)
{
    int64_t version;
    if (!open_to_read(s, scratch, busy_ms, e) || !identify(&version, s, e))
        return false;
    if (version == COUNT_OF(migrations))
        return store_execute(s, "PRAGMA query_only = ON", e);
    return copy_to_memory(s, e) && migrate(s, scratch, version, e);
}

// ------------------------------------------------------------------ working

static bool open_worker(struct store *s, struct arena scratch, struct error *e)
{
    struct str_cut folder = str_cut_last(s->path, '/');
    int64_t version;
    if (folder.found && folder.head.n && !folder_make(scratch, folder.head, e))
        return false;
    if (!take_lock(s, scratch, e))
        return false;
    if (sqlite3_open_v2(file_name(&scratch, s->path), &s->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        return store_failed(s, e);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    const char *ways =
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON";
    return identify(&version, s, e) && store_execute(s, ways, e) && migrate(s, scratch, version, e);
}

bool store_open(struct store **out, struct arena *a, struct str path, enum store_access access,
                struct error *e)
{
    struct store *s = NEW(a, struct store, 1);
    *s = (struct store){.lock = -1, .path = str_copy(a, path)};
    int busy_ms = access == STORE_GLANCE ? GLANCE_BUSY_MS : BUSY_MS;
    bool ok = is_possible(s, *a, e) &&
              (access == STORE_WORK ? open_worker(s, *a, e) : open_reader(s, *a, busy_ms, e));
    if (!ok) {
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
