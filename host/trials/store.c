// Writing trials down and reading them again. Statements are texts beside their use.
#include <time.h>

#include "core/base/num.h"
#include "host/trials/store_sql.h"

#define ENDED_BEFORE "fathom ended before this trial did"

enum { SETTLE_MS = 60000, SETTLE_STEP_MS = 20 };

// ------------------------------------------------------------------ writing

bool store_cell(int64_t *id, struct store *s, const struct cell_record *c, struct error *e)
{
    struct statement t = statement_of(
        s, "INSERT INTO cell (key, model, engine, card, gpus, sp, max_position, config)"
           " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key)"
           " DO UPDATE SET config = excluded.config WHERE config = ''");
    put_text(&t, c->key);
    put_text(&t, c->model);
    put_text(&t, c->engine);
    put_text(&t, c->card);
    put_count(&t, c->gpus);
    put_count(&t, c->sp);
    put_count(&t, c->max_position);
    put_text(&t, c->config);
    if (!statement_run(&t, e))
        return false;
    t = statement_of(s, "SELECT id FROM cell WHERE key = ?");
    put_text(&t, c->key);
    *id = statement_row(&t) ? number_at(&t, 0) : 0;
    return statement_finish(&t, e);
}

bool store_begin(int64_t *id, struct store *s, int64_t cell, const struct attempt_record *a,
                 struct error *e)
{
    struct statement t =
        statement_of(s, "INSERT INTO attempt (cell, context, try, state, log, command, timeout_ms,"
                        " started_ms, predicted_bytes, predicted_fits, limit_bytes)"
                        " VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?)");
    put_number(&t, cell);
    put_count(&t, a->context);
    put_number(&t, a->try);
    put_text(&t, a->log);
    put_text(&t, a->command);
    put_count(&t, a->timeout_ms);
    put_number(&t, a->started_ms);
    put_count(&t, a->predicted_bytes);
    put_number(&t, a->predicted_fits);
    put_count(&t, a->limit_bytes);
    if (!statement_run(&t, e))
        return false;
    *id = sqlite3_last_insert_rowid(s->db);
    return true;
}

bool store_keeper(struct store *s, int64_t attempt, struct process keeper, struct error *e)
{
    struct statement t =
        statement_of(s, "UPDATE attempt SET keeper_pid = ?, keeper_started = ? WHERE id = ?");
    put_number(&t, keeper.pid);
    put_number(&t, keeper.started);
    put_number(&t, attempt);
    return statement_run(&t, e);
}

bool store_mark(struct store *s, int64_t attempt, struct str mark, struct error *e)
{
    struct statement t = statement_of(s, "UPDATE attempt SET mark = ? WHERE id = ?");
    put_text(&t, mark);
    put_number(&t, attempt);
    return statement_run(&t, e);
}

bool store_group(struct store *s, int64_t attempt, struct process leader, struct error *e)
{
    struct statement t =
        statement_of(s, "UPDATE attempt SET group_pid = ?, group_started = ? WHERE id = ?");
    put_number(&t, leader.pid);
    put_number(&t, leader.started);
    put_number(&t, attempt);
    return statement_run(&t, e);
}

bool store_started(struct store *s, int64_t attempt, const struct attempt_record *a,
                   struct error *e)
{
    struct statement t =
        statement_of(s, "UPDATE attempt SET versions = ?, gpu = ?, total_bytes = ? WHERE id = ?");
    put_text(&t, a->versions);
    put_text(&t, a->gpu);
    put_count(&t, a->total_bytes);
    put_number(&t, attempt);
    return statement_run(&t, e);
}

bool store_step(struct store *s, int64_t attempt, const struct step_record *step, struct error *e)
{
    struct statement t = statement_of(
        s, "INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (attempt, number) DO"
           " UPDATE SET allocated_bytes = max(allocated_bytes, excluded.allocated_bytes),"
           " requested_bytes = max(requested_bytes, excluded.requested_bytes),"
           " reserved_bytes = max(reserved_bytes, excluded.reserved_bytes),"
           " end_allocated_bytes = max(end_allocated_bytes, excluded.end_allocated_bytes),"
           " retries = max(retries, excluded.retries), seconds = max(seconds, excluded.seconds)");
    put_number(&t, attempt);
    put_count(&t, step->number);
    put_count(&t, step->allocated_bytes);
    put_count(&t, step->requested_bytes);
    put_count(&t, step->reserved_bytes);
    put_count(&t, step->end_allocated_bytes);
    put_count(&t, step->retries);
    put_real(&t, step->seconds);
    return statement_run(&t, e);
}

bool store_finish(struct store *s, int64_t attempt, const struct attempt_record *a, struct error *e)
{
    struct statement t =
        statement_of(s, "UPDATE attempt SET state = 'finished', outcome = ?, status = ?,"
                        " detail = ?, ended_ms = ?, steps = ?, allocated_bytes = ?,"
                        " requested_bytes = ?, reserved_bytes = ?, retries = ? WHERE id = ?");
    put_text(&t, str_from(outcome_rows[a->outcome].name));
    put_number(&t, a->status);
    put_text(&t, a->detail);
    put_number(&t, a->ended_ms);
    put_count(&t, a->peaks.steps);
    put_count(&t, a->peaks.allocated_bytes);
    put_count(&t, a->peaks.requested_bytes);
    put_count(&t, a->peaks.reserved_bytes);
    put_count(&t, a->peaks.retries);
    put_number(&t, attempt);
    return statement_run(&t, e);
}

// ------------------------------------------------------------------ reading

// Failures for passing reasons count as long as nothing came after them.
static void forget_passing(struct trials *trials, const struct trial *next)
{
    bool passing = outcome_rows[next->outcome].transient;
    while (trials->count) {
        const struct trial *last = &trials->items[trials->count - 1];
        if (!outcome_rows[last->outcome].transient || (passing && last->context == next->context))
            return;
        trials->count--;
    }
}

bool store_trials(struct trials *trials, struct store *s, struct arena *a, int64_t cell,
                  struct error *e)
{
    struct statement t = statement_of(
        s,
        "SELECT context, outcome FROM attempt WHERE cell = ? AND state = 'finished' ORDER BY id");
    put_number(&t, cell);
    *trials = (struct trials){0};
    while (statement_row(&t)) {
        struct arena scratch = *a;
        struct trial found = {.context = (uint64_t)number_at(&t, 0)};
        bool known = outcome_from_name(&found.outcome, text_at(&t, &scratch, 1));
        const struct outcome_row *row = &outcome_rows[found.outcome];
        if (!known || (row->verdict == LENGTH_UNDECIDED && !row->transient))
            continue;
        forget_passing(trials, &found);
        trials->items =
            arena_grow(a, trials->items, sizeof found, trials->count, &trials->capacity);
        trials->items[trials->count++] = found;
    }
    return statement_finish(&t, e);
}

static void wait_for(struct process p)
{
    struct timespec step = {0, SETTLE_STEP_MS * 1000000L};
    for (int ms = 0; ms < SETTLE_MS && process_is_alive(p); ms += SETTLE_STEP_MS)
        nanosleep(&step, NULL);
}

bool store_has_log(bool *known, struct store *s, struct str log, struct error *e)
{
    struct statement t = statement_of(s, "SELECT 1 FROM attempt WHERE log = ?");
    put_text(&t, log);
    *known = statement_row(&t);
    return statement_finish(&t, e);
}

bool store_unsettled(struct process *keeper, struct store *s, struct error *e)
{
    struct statement t =
        statement_of(s, "SELECT keeper_pid, keeper_started FROM attempt WHERE state = 'running'");
    *keeper = (struct process){0};
    while (!keeper->pid && statement_row(&t)) {
        struct process p = {number_at(&t, 0), number_at(&t, 1)};
        *keeper = process_is_alive(p) ? p : (struct process){0};
    }
    return statement_finish(&t, e);
}

bool store_traces(struct traces **out, ptrdiff_t *count, struct store *s, struct arena *a,
                  struct error *e)
{
    ptrdiff_t capacity = 0;
    struct statement t =
        statement_of(s, "SELECT context, started_ms, log, mark, group_pid, group_started"
                        " FROM attempt WHERE state = 'running'"
                        " OR id = (SELECT max(id) FROM attempt) ORDER BY id");
    *out = NULL;
    *count = 0;
    while (statement_row(&t)) {
        struct traces found = {.context = count_at(&t, 0),
                               .started_ms = number_at(&t, 1),
                               .leader = {number_at(&t, 4), number_at(&t, 5)}};
        found.log = text_at(&t, a, 2);
        found.mark = text_at(&t, a, 3);
        *out = arena_grow(a, *out, sizeof found, *count, &capacity);
        (*out)[(*count)++] = found;
    }
    return statement_finish(&t, e);
}

bool store_settle(ptrdiff_t *count, struct store *s, struct error *e)
{
    struct statement t =
        statement_of(s, "SELECT keeper_pid, keeper_started FROM attempt WHERE state = 'running'");
    for (*count = 0; statement_row(&t); ++*count)
        wait_for((struct process){number_at(&t, 0), number_at(&t, 1)});
    if (!statement_finish(&t, e))
        return false;
    return *count == 0 ||
           store_execute(
               s,
               "UPDATE attempt SET state = 'finished', outcome = 'interrupted',"
               " detail = '" ENDED_BEFORE "',"
               " (steps, allocated_bytes, requested_bytes, reserved_bytes, retries) ="
               " (SELECT count(*), max(allocated_bytes), max(requested_bytes),"
               " max(reserved_bytes), max(retries) FROM step WHERE step.attempt = attempt.id)"
               " WHERE state = 'running'",
               e);
}

static struct attempt_record attempt_at(struct statement *t, struct arena *a)
{
    struct attempt_record r = {
        .id = number_at(t, 0),
        .context = count_at(t, 1),
        .try = (int)number_at(t, 2),
        .status = (int)number_at(t, 4),
        .timeout_ms = count_at(t, 10),
        .started_ms = number_at(t, 11),
        .ended_ms = number_at(t, 12),
        .predicted_bytes = count_at(t, 13),
        .predicted_fits = number_at(t, 14) != 0,
        .peaks = {count_at(t, 15), count_at(t, 16), count_at(t, 17), count_at(t, 18),
                  count_at(t, 19)},
        .limit_bytes = count_at(t, 20),
        .total_bytes = count_at(t, 21),
    };
    r.finished = outcome_from_name(&r.outcome, text_at(t, a, 3));
    r.detail = text_at(t, a, 5);
    r.log = text_at(t, a, 6);
    r.command = text_at(t, a, 7);
    r.versions = text_at(t, a, 8);
    r.gpu = text_at(t, a, 9);
    return r;
}

static bool read_steps(struct attempt_record *r, struct store *s, struct arena *a, struct error *e)
{
    ptrdiff_t capacity = 0;
    struct statement t =
        statement_of(s, "SELECT number, allocated_bytes, requested_bytes, reserved_bytes,"
                        " end_allocated_bytes, retries, seconds FROM step WHERE attempt = ?"
                        " ORDER BY number");
    put_number(&t, r->id);
    while (statement_row(&t)) {
        r->steps = arena_grow(a, r->steps, sizeof *r->steps, r->step_count, &capacity);
        r->steps[r->step_count++] = (struct step_record){.number = count_at(&t, 0),
                                                         .allocated_bytes = count_at(&t, 1),
                                                         .requested_bytes = count_at(&t, 2),
                                                         .reserved_bytes = count_at(&t, 3),
                                                         .end_allocated_bytes = count_at(&t, 4),
                                                         .retries = count_at(&t, 5),
                                                         .seconds = real_at(&t, 6)};
    }
    return statement_finish(&t, e);
}

// As store_settle will write it down: nobody is there any more who could say how it ended.
static void show_settled(struct attempt_record *r)
{
    r->finished = true;
    r->outcome = OUTCOME_INTERRUPTED;
    r->detail = STR(ENDED_BEFORE);
}

static void show_peaks(struct attempt_record *r)
{
    struct peaks p = r->peaks;
    p.steps = (uint64_t)r->step_count;
    for (ptrdiff_t i = 0; i < r->step_count; i++) {
        const struct step_record *s = &r->steps[i];
        p.allocated_bytes = u64_most(p.allocated_bytes, s->allocated_bytes);
        p.requested_bytes = u64_most(p.requested_bytes, s->requested_bytes);
        p.reserved_bytes = u64_most(p.reserved_bytes, s->reserved_bytes);
        p.retries = u64_most(p.retries, s->retries);
    }
    r->peaks = p;
}

static bool read_attempts(struct cell_record *c, struct store *s, struct arena *a, uint64_t context,
                          struct error *e)
{
    ptrdiff_t capacity = 0;
    struct statement t =
        statement_of(s, "SELECT id, context, try, outcome, status, detail, log, command, versions,"
                        " gpu, timeout_ms, started_ms, ended_ms, predicted_bytes, predicted_fits,"
                        " steps, allocated_bytes, requested_bytes, reserved_bytes, retries,"
                        " limit_bytes, total_bytes, keeper_pid, keeper_started, group_pid,"
                        " group_started FROM attempt"
                        " WHERE cell = ?1 AND (?2 = 0 OR context = ?2) ORDER BY id");
    put_number(&t, c->id);
    put_count(&t, context);
    while (statement_row(&t)) {
        struct attempt_record r = attempt_at(&t, a);
        struct process keeper = {number_at(&t, 22), number_at(&t, 23)};
        struct process leader = {number_at(&t, 24), number_at(&t, 25)};
        bool runs = process_is_alive(keeper) || process_is_alive(leader);
        if (!r.finished && !runs && !store_is_worked_with(s, *a))
            show_settled(&r);
        c->attempts = arena_grow(a, c->attempts, sizeof r, c->attempt_count, &capacity);
        c->attempts[c->attempt_count++] = r;
    }
    bool ok = statement_finish(&t, e);
    for (ptrdiff_t i = 0; ok && i < c->attempt_count; i++)
        ok = read_steps(&c->attempts[i], s, a, e);
    for (ptrdiff_t i = 0; ok && i < c->attempt_count; i++)
        if (c->attempts[i].finished && !c->attempts[i].peaks.steps)
            show_peaks(&c->attempts[i]);
    return ok;
}

static struct cell_record cell_at(struct statement *t, struct arena *a)
{
    struct cell_record c = {.id = number_at(t, 0),
                            .gpus = count_at(t, 5),
                            .sp = count_at(t, 6),
                            .max_position = count_at(t, 7)};
    c.key = text_at(t, a, 1);
    c.model = text_at(t, a, 2);
    c.engine = text_at(t, a, 3);
    c.card = text_at(t, a, 4);
    c.config = text_at(t, a, 8);
    return c;
}

bool store_read(struct store_content *out, struct store *s, struct arena *a, struct store_part part,
                struct error *e)
{
    ptrdiff_t capacity = 0;
    struct statement t =
        statement_of(s, "SELECT id, key, model, engine, card, gpus, sp, max_position, config"
                        " FROM cell WHERE (?1 = 0 OR gpus = ?1) AND (?2 = 0 OR EXISTS"
                        " (SELECT 1 FROM attempt WHERE cell = cell.id AND context = ?2))"
                        " ORDER BY id");
    put_count(&t, part.gpus);
    put_count(&t, part.context);
    *out = (struct store_content){0};
    while (statement_row(&t)) {
        struct cell_record c = cell_at(&t, a);
        out->cells = arena_grow(a, out->cells, sizeof c, out->count, &capacity);
        out->cells[out->count++] = c;
    }
    if (!statement_finish(&t, e))
        return false;
    for (ptrdiff_t i = 0; i < out->count; i++)
        if (!read_attempts(&out->cells[i], s, a, part.context, e))
            return false;
    return true;
}
