// What the files of the store share: the open file, and statements whose values are bound, never
// pasted.
#ifndef FATHOM_HOST_TRIALS_STORE_SQL_H
#define FATHOM_HOST_TRIALS_STORE_SQL_H

#include <sqlite3.h>

#include "host/trials/store.h"

struct store {
    sqlite3 *db;
    int lock; // -1 where only read
    struct str path;
};

// Whether a fathom has its lock; one that cannot be asked about may have.
bool store_is_worked_with(const struct store *s, struct arena scratch);

// The sentence for what SQLite last ran into; always false.
bool store_failed(const struct store *s, struct error *e);

bool store_execute(struct store *s, const char *sql, struct error *e) MUST_USE;

// A statement with its next free parameter.
struct statement {
    struct store *store;
    sqlite3_stmt *sql;
    int next;
    bool ok;
};

struct statement statement_of(struct store *s, const char *sql);
void put_number(struct statement *t, int64_t value);
void put_count(struct statement *t, uint64_t value); // at most what SQLite's integers hold
void put_real(struct statement *t, double value);
void put_text(struct statement *t, struct str text);

// Whether there is a row; false at the end and after a failure, which the next tells apart.
bool statement_row(struct statement *t);
bool statement_finish(struct statement *t, struct error *e) MUST_USE;
bool statement_run(struct statement *t, struct error *e) MUST_USE; // without rows

int64_t number_at(struct statement *t, int column);
uint64_t count_at(struct statement *t, int column);
double real_at(struct statement *t, int column);
struct str text_at(struct statement *t, struct arena *a, int column);

#endif
