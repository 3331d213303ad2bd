// The store of trials: what survives, what is refused.
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/descendants.h"
#include "host/file.h"
#include "host/store.h"
#include "tests/t.h"
#include "tests/temp.h"

static char block[8 << 20];

static struct arena fresh(void)
{
    return arena_over(block, sizeof block, NULL);
}

static const struct cell_record one_cell = {.key = {"engine=torch\n", 13},
                                            .model = {"tiny", 4},
                                            .engine = {"torch", 5},
                                            .gpus = 2,
                                            .sp = 1,
                                            .max_position = 4096};

static bool add_trial(struct store *s, int64_t cell, uint64_t context, enum outcome outcome,
                      struct error *e)
{
    struct attempt_record a = {.context = context, .try = 1, .outcome = outcome};
    a.log = STR("logs/x.log");
    a.detail = STR("it's \"said\"; --");
    a.peaks = (struct peaks){2, UINT64_C(5000000000), 2, 3, 4};
    return store_begin(&a.id, s, cell, &a, e) && store_finish(s, a.id, &a, e);
}

TEST(trials_come_back_in_their_order)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("deep/er/probe.db"));
    struct error e = {0};
    struct store *s;
    int64_t cell = 0, same = 1;
    struct trials trials = {0};
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e) &&
          store_cell(&same, s, &one_cell, &e));
    CHECK_U64((uint64_t)cell, (uint64_t)same);
    // A timeout decides nothing, so it is not recalled.
    CHECK(add_trial(s, cell, 4096, OUTCOME_FITS, &e) &&
          add_trial(s, cell, 8192, OUTCOME_TIMEOUT, &e) &&
          add_trial(s, cell, 8192, OUTCOME_GPU_MEMORY, &e));
    store_close(s);
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_trials(&trials, s, &a, cell, &e));
    CHECK(trials.items && trials.count == 2 && trials.items[0].context == 4096 &&
          trials.items[1].outcome == OUTCOME_GPU_MEMORY);
    store_close(s);
}

TEST(a_store_is_read_whole)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    int64_t cell = 0;
    ptrdiff_t count = 0;
    struct cell_record *cells = NULL;
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e));
    CHECK(add_trial(s, cell, 4096, OUTCOME_FITS, &e));
    store_close(s);
    CHECK(store_open(&s, &a, path, STORE_READ, &e));
    CHECK(store_read(&cells, &count, s, &a, &e));
    CHECK_U64((uint64_t)count, 1);
    CHECK_U64((uint64_t)cells[0].attempt_count, 1);
    CHECK_STR(cells[0].attempts[0].detail, "it's \"said\"; --");
    CHECK_U64(cells[0].attempts[0].peaks.allocated_bytes, UINT64_C(5000000000));
    CHECK_STR(cells[0].model, "tiny");
    store_close(s);
}

TEST(what_was_running_is_settled)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    int64_t cell = 0;
    ptrdiff_t count = 0;
    struct trials trials = {0};
    struct attempt_record running = {.context = 4096, .try = 1};
    pid_t keeper = fork();
    if (keeper == 0) {
        usleep(300000);
        _exit(0);
    }
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e) &&
          store_begin(&running.id, s, cell, &running, &e) &&
          store_keeper(s, running.id, process_of(keeper), &e));
    store_close(s);
    uint64_t began = monotonic_ms();
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_settle(&count, s, &e));
    CHECK_U64((uint64_t)count, 1);
    CHECK(monotonic_ms() - began >= 100); // waited for the keeper
    CHECK(store_settle(&count, s, &e) && count == 0);
    CHECK(store_trials(&trials, s, &a, cell, &e));
    CHECK_U64((uint64_t)trials.count, 0);
    store_close(s);
    waitpid(keeper, NULL, 0);
}

TEST(one_at_a_time)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *first, *second;
    CHECK(store_open(&first, &a, path, STORE_WORK, &e));
    CHECK(!store_open(&second, &a, path, STORE_WORK, &e));
    CHECK_STR(str_from(e.message), "another fathom works with this store");
    store_close(first);
}

static void refused(struct arena *a, struct str path, enum store_access access,
                    enum error_code code, const char *message)
{
    struct error e = {0};
    struct store *s;
    CHECK(!store_open(&s, a, path, access, &e));
    CHECK(e.code == code);
    CHECK_STR(str_from(e.message), message);
}

TEST(what_is_no_store)
{
    struct arena a = fresh();
    struct str folder = temp_folder(&a);
    struct error e = {0};
    refused(&a, path_join(&a, folder, STR("none.db")), STORE_READ, ERROR_BAD_INPUT,
            "there is no such store of trials");
    struct str text = path_join(&a, folder, STR("text.db"));
    CHECK(file_write(a, text, STR("this is some text and no database at all, I am afraid\n"),
                     FILE_REPLACE, &e));
    refused(&a, text, STORE_WORK, ERROR_BAD_INPUT,
            "this file is not a store of trials, or it is damaged");
    refused(&a, STR("/proc/1/none/probe.db"), STORE_WORK, ERROR_IO,
            "this folder cannot be made (No such file or directory)");
}

TEST(a_newer_store_is_left_alone)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    sqlite3 *db;
    CHECK(sqlite3_open(str_z(&a, path), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, "PRAGMA user_version = 99; CREATE TABLE t (x);", NULL, NULL, NULL) ==
          SQLITE_OK);
    sqlite3_close(db);
    refused(&a, path, STORE_WORK, ERROR_UNSUPPORTED, "this store was made by a newer fathom");
}
