// The store of trials: what survives, what is refused.
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/files/file.h"
#include "host/trials/descendants.h"
#include "host/trials/store.h"
#include "tests/support/t.h"
#include "tests/support/temp.h"

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

// Everything in a store.
static struct store_content content_of(struct store *s, struct arena *a)
{
    struct store_content all = {0};
    struct error e = {0};
    CHECK(store_read(&all, s, a, (struct store_part){0}, &e));
    return all;
}

// The only attempt of the only cell, or one of which nothing is known.
static struct attempt_record only_attempt(struct store *s, struct arena *a)
{
    struct store_content all = content_of(s, a);
    CHECK_U64((uint64_t)all.count, 1);
    CHECK_U64(all.count ? (uint64_t)all.cells[0].attempt_count : 0, 1);
    return all.count && all.cells[0].attempt_count ? all.cells[0].attempts[0]
                                                   : (struct attempt_record){0};
}

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
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e));
    CHECK(add_trial(s, cell, 4096, OUTCOME_FITS, &e));
    store_close(s);
    CHECK(store_open(&s, &a, path, STORE_READ, &e));
    struct attempt_record t = only_attempt(s, &a);
    CHECK_STR(t.detail, "it's \"said\"; --");
    CHECK_U64(t.peaks.allocated_bytes, UINT64_C(5000000000));
    CHECK_STR(content_of(s, &a).cells[0].model, "tiny");
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

TEST(tries_count_until_something_else_is_decided)
{
    static const struct {
        uint64_t context;
        enum outcome outcome;
        uint64_t count; // of what is known after it
    } rows[] = {
        {1024, OUTCOME_DEVICE_ERROR, 1}, {1024, OUTCOME_INTERRUPTED, 1}, {1024, OUTCOME_STOPPED, 2},
        {1024, OUTCOME_FITS, 1},         {2048, OUTCOME_TIMEOUT, 2},     {4096, OUTCOME_TIMEOUT, 2},
        {4096, OUTCOME_FAILED, 2},       {2048, OUTCOME_GPU_MEMORY, 2},
    };
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    int64_t cell = 0;
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e));
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct trials trials = {0};
        CHECK(add_trial(s, cell, rows[i].context, rows[i].outcome, &e));
        CHECK(store_trials(&trials, s, &a, cell, &e));
        CHECK_U64((uint64_t)trials.count, rows[i].count);
    }
    store_close(s);
}

TEST(logs_are_known)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    int64_t cell = 0;
    bool known = true;
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e));
    CHECK(store_has_log(&known, s, STR("logs/x.log"), &e) && !known);
    CHECK(add_trial(s, cell, 1024, OUTCOME_FITS, &e));
    CHECK(store_has_log(&known, s, STR("logs/x.log"), &e) && known);
    store_close(s);
}

static int64_t unsettled(struct store *s)
{
    struct process found = {0};
    struct error e = {0};
    return store_unsettled(&found, s, &e) ? found.pid : -1;
}

TEST(a_keeper_that_still_ends_its_trial_is_found)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    int64_t cell = 0;
    struct attempt_record running = {.context = 4096, .try = 1};
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e) &&
          store_begin(&running.id, s, cell, &running, &e));
    CHECK(unsettled(s) == 0);
    CHECK(store_keeper(s, running.id, process_of(getpid()), &e));
    CHECK(unsettled(s) == getpid());
    struct process former = process_of(getpid());
    former.started--; // another process had our number
    CHECK(store_keeper(s, running.id, former, &e));
    CHECK(unsettled(s) == 0);
    store_close(s);
}

static struct str trace_text(struct arena *a, const struct traces *t)
{
    return str_format(a, "%llu %lld %.*s %.*s %lld %lld", (unsigned long long)t->context,
                      (long long)t->started_ms, STR_ARGS(t->log), STR_ARGS(t->mark),
                      (long long)t->leader.pid, (long long)t->leader.started);
}

// Of what was running, and of the newest, which may have ended.
TEST(traces_of_trials_are_kept)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    struct traces *found = NULL;
    ptrdiff_t count = -1;
    int64_t cell = 0;
    struct attempt_record running = {
        .context = 4096, .try = 1, .started_ms = 17, .log = STR("logs/x.log")};
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e));
    CHECK(store_traces(&found, &count, s, &a, &e) && count == 0);
    CHECK(store_begin(&running.id, s, cell, &running, &e) &&
          store_mark(s, running.id, STR("A=1"), &e) &&
          store_group(s, running.id, (struct process){7, 8}, &e));
    CHECK(add_trial(s, cell, 1024, OUTCOME_FITS, &e) && add_trial(s, cell, 2048, OUTCOME_FITS, &e));
    CHECK(store_traces(&found, &count, s, &a, &e) && count == 2);
    CHECK_STR(trace_text(&a, &found[0]), "4096 17 logs/x.log A=1 7 8");
    CHECK_U64(found[1].context, 2048);
    store_close(s);
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

// ------------------------------------------------------------------ steps

static const struct step_record two_steps[] = {
    {1, UINT64_C(69020871680), UINT64_C(69019829256), UINT64_C(83338723328), 8412330496, 3, 13.523},
    {2, UINT64_C(73789271552), UINT64_C(73788228620), UINT64_C(83336626176), 8412330496, 6, 7.725},
};

static const struct attempt_record place = {.versions = {"torch 2.11.0", 12},
                                            .gpu = {"NVIDIA H200", 11},
                                            .total_bytes = UINT64_C(150109880320)};

// A trial that runs, its first step told; the store stays open.
static struct store *first_step_of(int64_t *id, struct arena *a, struct str path)
{
    struct attempt_record t = {.context = 4096, .try = 1, .limit_bytes = UINT64_C(83360609280)};
    struct error e = {0};
    struct store *s = NULL;
    int64_t cell = 0;
    CHECK(store_open(&s, a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e) &&
          store_begin(id, s, cell, &t, &e) && store_started(s, *id, &place, &e) &&
          store_step(s, *id, &two_steps[0], &e));
    return s;
}

TEST(steps_are_seen_while_a_trial_runs)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    int64_t id = 0;
    struct store *s = first_step_of(&id, &a, path), *reader = NULL;
    CHECK(store_open(&reader, &a, path, STORE_READ, &e));
    struct attempt_record seen = only_attempt(reader, &a);
    CHECK(!seen.finished && seen.step_count == 1);
    CHECK_STR(seen.gpu, "NVIDIA H200");
    store_close(reader);
    store_close(s);
}

TEST(a_killed_trial_keeps_its_steps)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    int64_t id = 0;
    ptrdiff_t count = 0;
    struct store *s = first_step_of(&id, &a, path);
    struct step_record rank = two_steps[0]; // another rank had more in one respect
    rank.reserved_bytes++;
    rank.allocated_bytes--;
    CHECK(store_step(s, id, &two_steps[1], &e) && store_step(s, id, &rank, &e));
    store_close(s); // without an end
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_settle(&count, s, &e) && count == 1);
    struct attempt_record kept = only_attempt(s, &a);
    CHECK(kept.finished && kept.outcome == OUTCOME_INTERRUPTED);
    CHECK_U64((uint64_t)kept.step_count, 2);
    if (!kept.steps || kept.step_count != 2)
        return;
    CHECK_U64(kept.steps[0].reserved_bytes, two_steps[0].reserved_bytes + 1);
    CHECK_U64(kept.steps[0].allocated_bytes, two_steps[0].allocated_bytes);
    CHECK_U64(kept.steps[1].end_allocated_bytes, UINT64_C(8412330496));
    CHECK(kept.steps[1].seconds == 7.725 && kept.steps[1].number == 2);
    CHECK_U64(kept.peaks.steps, 2);
    CHECK_U64(kept.peaks.allocated_bytes, two_steps[1].allocated_bytes);
    CHECK_U64(kept.limit_bytes, UINT64_C(83360609280));
    CHECK_U64(kept.total_bytes, UINT64_C(150109880320));
    store_close(s);
}

TEST(a_part_is_read)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    int64_t cell = 0, other = 0;
    struct store_content part = {0};
    struct cell_record four = one_cell;
    four.key = STR("engine=torch\ngpus=4\n");
    four.gpus = 4;
    four.config = STR("{\"a\": 1}");
    CHECK(store_open(&s, &a, path, STORE_WORK, &e) && store_cell(&cell, s, &one_cell, &e) &&
          store_cell(&other, s, &four, &e) && add_trial(s, cell, 4096, OUTCOME_FITS, &e) &&
          add_trial(s, other, 4096, OUTCOME_FITS, &e) &&
          add_trial(s, other, 8192, OUTCOME_FITS, &e));
    CHECK(store_read(&part, s, &a, (struct store_part){.gpus = 4, .context = 8192}, &e));
    CHECK(part.count == 1 && part.cells[0].id == other && part.cells[0].attempt_count == 1);
    CHECK_U64(part.cells[0].attempts[0].context, 8192);
    CHECK_STR(part.cells[0].config, "{\"a\": 1}");
    CHECK(store_read(&part, s, &a, (struct store_part){.gpus = 2, .context = 8192}, &e));
    CHECK_U64((uint64_t)part.count, 0);
    store_close(s);
}

// ------------------------------------------------------------------ older files

// The first version of the schema, as it was released, and a trial in it.
static const char first_version[] =
    "PRAGMA journal_mode = WAL;"
    "CREATE TABLE cell (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, model TEXT NOT NULL,"
    " engine TEXT NOT NULL, card TEXT NOT NULL, gpus INTEGER NOT NULL, sp INTEGER NOT NULL,"
    " max_position INTEGER NOT NULL) STRICT;"
    "CREATE TABLE attempt (id INTEGER PRIMARY KEY, cell INTEGER NOT NULL REFERENCES cell (id),"
    " context INTEGER NOT NULL, try INTEGER NOT NULL,"
    " state TEXT NOT NULL CHECK (state IN ('running', 'finished')), outcome TEXT, status INTEGER,"
    " detail TEXT, log TEXT NOT NULL, command TEXT NOT NULL, versions TEXT, gpu TEXT,"
    " timeout_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER,"
    " keeper_pid INTEGER, keeper_started INTEGER, predicted_bytes INTEGER NOT NULL,"
    " predicted_fits INTEGER NOT NULL, steps INTEGER, allocated_bytes INTEGER,"
    " requested_bytes INTEGER, reserved_bytes INTEGER, retries INTEGER,"
    " CHECK ((state = 'finished') = (outcome IS NOT NULL))) STRICT;"
    "CREATE INDEX attempt_of_cell ON attempt (cell, id);"
    "PRAGMA user_version = 1;"
    "INSERT INTO cell VALUES (1, 'engine=torch' || char(10), 'Qwen3-0.6B', 'torch', 'A100-80G', 2,"
    " 1, 40960);"
    "INSERT INTO attempt VALUES (1, 1, 24576, 1, 'finished', 'fits', 0, '', 'l.log', 'python3',"
    " 'torch 2.11.0+cu130, transformers 5.17.0', 'NVIDIA H200', 120000, 1794734039107,"
    " 1794734063532, 474, 4002, 83317751808, 1, 2, 73789271552, 73788228620, 83338723328, 6);";

static void make_database(struct arena scratch, struct str path, const char *sql)
{
    sqlite3 *db;
    CHECK(sqlite3_open(str_z(&scratch, path), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

static int64_t version_of(struct arena scratch, struct str path)
{
    sqlite3 *db;
    sqlite3_stmt *sql = NULL;
    CHECK(sqlite3_open(str_z(&scratch, path), &db) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &sql, NULL) == SQLITE_OK);
    int64_t version = sqlite3_step(sql) == SQLITE_ROW ? sqlite3_column_int64(sql, 0) : -1;
    sqlite3_finalize(sql);
    sqlite3_close(db);
    return version;
}

static void check_old_trial(struct arena *a, struct store *s)
{
    struct attempt_record t = only_attempt(s, a);
    CHECK_U64(t.peaks.reserved_bytes, UINT64_C(83338723328));
    CHECK_U64(t.peaks.steps, 2);
    CHECK_U64((uint64_t)t.step_count, 0);
    CHECK_U64(t.limit_bytes, 0);
    CHECK_STR(t.gpu, "NVIDIA H200");
}

TEST(an_older_store_is_read_as_it_is)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db")), before, after;
    struct error e = {0};
    struct store *s = NULL;
    make_database(a, path, first_version);
    CHECK(file_read(&before, &a, path, 1 << 20, &e));
    CHECK(store_open(&s, &a, path, STORE_GLANCE, &e));
    check_old_trial(&a, s);
    store_close(s);
    CHECK(file_read(&after, &a, path, 1 << 20, &e) && str_equal(before, after));
    CHECK_U64((uint64_t)version_of(a, path), 1);
}

TEST(an_older_store_is_brought_up_to_date)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    int64_t cell = 0;
    struct trials trials = {0};
    struct attempt_record t = {.context = 28672, .try = 1};
    struct cell_record same = one_cell;
    same.config = STR("{}");
    make_database(a, path, first_version);
    CHECK(store_open(&s, &a, path, STORE_WORK, &e));
    check_old_trial(&a, s);
    // Its cell is the same, and its trials count.
    CHECK(store_cell(&cell, s, &same, &e) && store_trials(&trials, s, &a, cell, &e) && cell == 1 &&
          trials.count == 1 && store_begin(&t.id, s, cell, &t, &e) &&
          store_step(s, t.id, &two_steps[0], &e) && store_finish(s, t.id, &t, &e));
    store_close(s);
    CHECK_U64((uint64_t)version_of(a, path), 3);
    CHECK(store_open(&s, &a, path, STORE_READ, &e));
    struct store_content all = content_of(s, &a);
    CHECK(all.count == 1 && all.cells[0].attempt_count == 2 &&
          all.cells[0].attempts[1].step_count == 1);
    CHECK_STR(all.cells[0].config, "{}");
    store_close(s);
}

// ------------------------------------------------------------------ what is refused

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
    make_database(a, path,
                  "PRAGMA user_version = 99; CREATE TABLE cell (x); CREATE TABLE attempt (x);");
    refused(&a, path, STORE_WORK, ERROR_UNSUPPORTED, "this store was made by a newer fathom");
    refused(&a, path, STORE_READ, ERROR_UNSUPPORTED, "this store was made by a newer fathom");
}

TEST(another_programs_database_is_left_alone)
{
    static const char *const others[] = {
        "CREATE TABLE bookmark (url TEXT);", // a fresh store has no version either
        "PRAGMA user_version = 1; CREATE TABLE cell (x);",
        "PRAGMA user_version = 42; CREATE TABLE bookmark (url TEXT);"};
    for (ptrdiff_t i = 0; i < COUNT_OF(others); i++) {
        struct arena a = fresh();
        struct str path = path_join(&a, temp_folder(&a), STR("other.db")), before, after;
        struct error e = {0};
        make_database(a, path, others[i]);
        CHECK(file_read(&before, &a, path, 1 << 20, &e));
        for (enum store_access access = STORE_GLANCE; access <= STORE_WORK; access++)
            refused(&a, path, access, ERROR_BAD_INPUT,
                    "this is a database, but not a store of trials");
        CHECK(file_read(&after, &a, path, 1 << 20, &e) && str_equal(before, after));
    }
}

static bool reads(struct arena scratch, struct str path, struct error *e)
{
    struct store *s = NULL;
    struct store_content all;
    if (!store_open(&s, &scratch, path, STORE_READ, e))
        return false;
    bool ok = store_read(&all, s, &scratch, (struct store_part){0}, e);
    store_close(s);
    return ok;
}

// Cut in many places: never a crash, and one sentence.
TEST(a_truncated_store)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db")), whole;
    struct error e = {0};
    int refusals = 0;
    make_database(a, path, first_version);
    CHECK(file_read(&whole, &a, path, 1 << 20, &e));
    for (ptrdiff_t n = 100; n < whole.n; n += 1000) {
        struct error cut = {0};
        CHECK(file_write(a, path, str_slice(whole, 0, n), FILE_REPLACE, &e));
        if (reads(a, path, &cut))
            continue;
        CHECK_STR(str_from(cut.message), "this file is not a store of trials, or it is damaged");
        refusals++;
    }
    CHECK(refusals > 5);
}

TEST(an_empty_file_has_no_trials)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    struct error e = {0};
    struct store *s = NULL;
    CHECK(file_write(a, path, STR_NONE, FILE_REPLACE, &e));
    CHECK(store_open(&s, &a, path, STORE_READ, &e));
    CHECK_U64((uint64_t)content_of(s, &a).count, 0);
    store_close(s);
}

TEST(a_locked_store_is_not_waited_for_long)
{
    struct arena a = fresh();
    struct str path = path_join(&a, temp_folder(&a), STR("probe.db"));
    sqlite3 *db;
    make_database(a, path, first_version);
    make_database(a, path, "PRAGMA journal_mode = DELETE;");
    CHECK(sqlite3_open(str_z(&a, path), &db) == SQLITE_OK &&
          sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK);
    uint64_t began = monotonic_ms();
    refused(&a, path, STORE_GLANCE, ERROR_IO, "another program holds this store locked");
    CHECK(monotonic_ms() - began < 3000);
    sqlite3_close(db);
}

// ------------------------------------------------------------------ a folder that may not be
// written

// Root may write anywhere, so the check is made by somebody else, in a process of its own.
static void as_nobody(bool (*check)(struct arena a, struct str path), struct arena a,
                      struct str path)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        _exit(check(a, path) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    CHECK_U64((uint64_t)status, 0);
}

static void set_mode(struct arena scratch, struct str folder, mode_t mode)
{
    CHECK(chmod(str_z(&scratch, folder), mode) == 0);
}

static bool can_be_read(struct arena a, struct str path)
{
    struct error e = {0};
    return reads(a, path, &e);
}

static bool may_not_work(struct arena a, struct str path)
{
    struct error e = {0};
    struct store *s = NULL;
    return !store_open(&s, &a, path, STORE_WORK, &e) &&
           str_is(str_from(e.message), "this store may not be written (Permission denied)");
}

static bool is_left_unfinished(struct arena a, struct str path)
{
    struct error e = {0};
    return !reads(a, path, &e) &&
           str_starts(str_from(e.message), STR("this store was left unfinished in a folder"));
}

TEST(an_older_store_in_such_a_folder)
{
    struct arena a = fresh();
    struct str folder = temp_folder(&a), path = path_join(&a, folder, STR("old.db"));
    make_database(a, path, first_version);
    set_mode(a, folder, 0555);
    as_nobody(can_be_read, a, path);
    as_nobody(may_not_work, a, path);
    set_mode(a, folder, 0755);
}

TEST(a_store_in_such_a_folder)
{
    struct arena a = fresh();
    struct str folder = temp_folder(&a), path = path_join(&a, folder, STR("a %20?#.db"));
    struct error e = {0};
    struct store *s = NULL;
    CHECK(store_open(&s, &a, path, STORE_WORK, &e));
    store_close(s);
    CHECK(unlink(str_z(&a, str_join(&a, path, STR(".lock")))) == 0);
    set_mode(a, folder, 0555);
    as_nobody(can_be_read, a, path);
    as_nobody(may_not_work, a, path);
    set_mode(a, folder, 0755);
    CHECK(file_write(a, str_join(&a, path, STR("-wal")), STR("the rest"), FILE_REPLACE, &e));
    set_mode(a, folder, 0555);
    as_nobody(is_left_unfinished, a, path);
    set_mode(a, folder, 0755);
}
