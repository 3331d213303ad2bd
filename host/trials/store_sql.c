// SQLite's C interface, as far as the store needs it.
#include "host/trials/store_sql.h"

#include <errno.h>
#include <sys/resource.h>

// SQLite calls a full disk by that name only where it writes pages.
static bool is_full(const struct store *s)
{
    int code = sqlite3_errcode(s->db) & 0xFF, reason = sqlite3_system_errno(s->db);
    return (code == SQLITE_IOERR || code == SQLITE_CANTOPEN) &&
           (reason == ENOSPC || reason == EDQUOT);
}

// SQLite does not always keep the reason, so the limit is named wherever it can be one.
static bool is_limited(const struct store *s, struct rlimit *limit)
{
    return s->db && (sqlite3_errcode(s->db) & 0xFF) == SQLITE_IOERR && !is_full(s) &&
           getrlimit(RLIMIT_FSIZE, limit) == 0 && limit->rlim_cur != RLIM_INFINITY;
}

bool store_failed(const struct store *s, struct error *e)
{
    struct rlimit limit = {0};
    if (is_limited(s, &limit))
        return FAIL(e, IO, s->path,
                    "the store failed (%s); no file may exceed %llu bytes (ulimit -f)",
                    sqlite3_errmsg(s->db), (unsigned long long)limit.rlim_cur);
    int code = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;
    if (s->db && is_full(s))
        code = SQLITE_FULL;
    switch (code & 0xFF) {
    case SQLITE_FULL:
        return FAIL(e, IO, s->path, "the disk is full, so the store cannot be written");
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return FAIL(e, IO, s->path, "this store may not be written");
    case SQLITE_CANTOPEN:
        return FAIL(e, IO, s->path, "this store cannot be opened or made");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return FAIL(e, IO, s->path, "another program holds this store locked");
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return FAIL(e, BAD_INPUT, s->path, "this file is not a store of trials, or it is damaged");
    default:
        return FAIL(e, IO, s->path, "the store failed (%s)",
                    s->db ? sqlite3_errmsg(s->db) : "no memory");
    }
}

bool store_execute(struct store *s, const char *sql, struct error *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || store_failed(s, e);
}

struct statement statement_of(struct store *s, const char *sql)
{
    struct statement t = {.store = s, .next = 1};
    t.ok = sqlite3_prepare_v2(s->db, sql, -1, &t.sql, NULL) == SQLITE_OK;
    return t;
}

void put_number(struct statement *t, int64_t value)
{
    t->ok = t->ok && sqlite3_bind_int64(t->sql, t->next++, value) == SQLITE_OK;
}

void put_count(struct statement *t, uint64_t value)
{
    put_number(t, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

void put_real(struct statement *t, double value)
{
    t->ok = t->ok && sqlite3_bind_double(t->sql, t->next++, value) == SQLITE_OK;
}

void put_text(struct statement *t, struct str text)
{
    t->ok = t->ok && sqlite3_bind_text(t->sql, t->next++, text.n ? text.p : "", (int)text.n,
                                       SQLITE_TRANSIENT) == SQLITE_OK;
}

bool statement_row(struct statement *t)
{
    int code = t->ok ? sqlite3_step(t->sql) : SQLITE_ERROR;
    t->ok = t->ok && (code == SQLITE_ROW || code == SQLITE_DONE);
    return code == SQLITE_ROW;
}

bool statement_finish(struct statement *t, struct error *e)
{
    bool ok = t->ok || store_failed(t->store, e);
    sqlite3_finalize(t->sql);
    return ok;
}

bool statement_run(struct statement *t, struct error *e)
{
    statement_row(t);
    return statement_finish(t, e);
}

int64_t number_at(struct statement *t, int column)
{
    return sqlite3_column_int64(t->sql, column);
}

uint64_t count_at(struct statement *t, int column)
{
    int64_t number = number_at(t, column);
    return number > 0 ? (uint64_t)number : 0;
}

double real_at(struct statement *t, int column)
{
    return sqlite3_column_double(t->sql, column);
}

struct str text_at(struct statement *t, struct arena *a, int column)
{
    const unsigned char *text = sqlite3_column_text(t->sql, column);
    struct str s = {(const char *)text, sqlite3_column_bytes(t->sql, column)};
    return text ? str_copy(a, s) : STR_NONE;
}
