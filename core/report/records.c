// The store's trials, one row each; a column is a row of a table here.
#include "core/base/units.h"
#include "core/draw/markup.h"
#include "core/probe/measured.h"
#include "core/report/probe.h"

struct row {
    const struct cell_record *cell;
    const struct attempt_record *attempt;
};

static struct str number(struct arena *a, uint64_t value)
{
    return value ? str_format(a, "%llu", (unsigned long long)value) : STR_NONE;
}

static struct str model_of(struct arena *a, struct row r)
{
    (void)a;
    return r.cell->model;
}

static struct str engine_of(struct arena *a, struct row r)
{
    (void)a;
    return r.cell->engine;
}

static struct str card_of(struct arena *a, struct row r)
{
    (void)a;
    return r.cell->card;
}

static struct str gpus_of(struct arena *a, struct row r)
{
    return number(a, r.cell->gpus);
}

static struct str sp_of(struct arena *a, struct row r)
{
    return number(a, r.cell->sp);
}

static struct str cp_of(struct arena *a, struct row r)
{
    (void)a;
    struct str cp = measured_setting(r.cell, "cp");
    return cp.n ? cp : STR("1");
}

static struct str context_of(struct arena *a, struct row r)
{
    return number(a, r.attempt->context);
}

static struct str try_of(struct arena *a, struct row r)
{
    return str_format(a, "%d", r.attempt->try);
}

static struct str outcome_text(struct arena *a, struct row r)
{
    (void)a;
    return str_from(r.attempt->finished ? outcome_rows[r.attempt->outcome].name : "running");
}

static struct str seconds_of(struct arena *a, struct row r)
{
    bool ended = r.attempt->ended_ms >= r.attempt->started_ms;
    return ended
               ? str_format(a, "%.1f", (double)(r.attempt->ended_ms - r.attempt->started_ms) / 1000)
               : STR_NONE;
}

static struct str status_of(struct arena *a, struct row r)
{
    return r.attempt->finished ? str_format(a, "%d", r.attempt->status) : STR_NONE;
}

static struct str expected_of(struct arena *a, struct row r)
{
    (void)a;
    if (!r.attempt->predicted_bytes)
        return STR_NONE;
    return str_from(r.attempt->predicted_fits ? "fits" : "fails");
}

// At the peak; what dies has none.
static struct str predicted_of(struct arena *a, struct row r)
{
    return r.attempt->predicted_fits ? number(a, r.attempt->predicted_bytes) : STR_NONE;
}

static struct str allocated_of(struct arena *a, struct row r)
{
    return number(a, r.attempt->peaks.allocated_bytes);
}

static struct str reserved_of(struct arena *a, struct row r)
{
    return number(a, r.attempt->peaks.reserved_bytes);
}

static struct str gpu_of(struct arena *a, struct row r)
{
    (void)a;
    return r.attempt->gpu;
}

static struct str versions_of(struct arena *a, struct row r)
{
    (void)a;
    return r.attempt->versions;
}

static struct str detail_of(struct arena *a, struct row r)
{
    (void)a;
    return r.attempt->detail;
}

// "recipe=trinity sp=2 ..."
static struct str settings_of(struct arena *a, struct row r)
{
    struct buf b = buf_in(a);
    struct words lines = words_of(str_z(a, r.cell->key), '\n');
    while (words_next(&lines))
        buf_printf(&b, "%s%.*s", b.n ? " " : "", STR_ARGS(lines.word));
    return buf_str(&b);
}

static struct str command_of(struct arena *a, struct row r)
{
    (void)a;
    return r.attempt->command;
}

static struct str log_of(struct arena *a, struct row r)
{
    (void)a;
    return r.attempt->log;
}

static const struct {
    const char *name;
    struct str (*text)(struct arena *a, struct row r);
    bool shown; // in the table for people too
} fields[] = {
    {"model", model_of, true},
    {"engine", engine_of, true},
    {"card", card_of, true},
    {"gpus", gpus_of, true},
    {"sp", sp_of, true},
    {"cp", cp_of, true},
    {"context", context_of, true},
    {"try", try_of, false},
    {"outcome", outcome_text, true},
    {"status", status_of, false},
    {"seconds", seconds_of, true},
    {"predicted", expected_of, false},
    {"predicted_reserved_bytes", predicted_of, false},
    {"allocated_bytes", allocated_of, false},
    {"reserved_bytes", reserved_of, false},
    {"gpu", gpu_of, false},
    {"versions", versions_of, false},
    {"detail", detail_of, false},
    {"settings", settings_of, false},
    {"command", command_of, false},
    {"log", log_of, false},
};

// ------------------------------------------------------------------ text

static struct str gib_text(struct arena *a, uint64_t bytes)
{
    return bytes ? bytes_text(a, bytes) : STR("-");
}

static struct str predicted_text(struct arena *a, const struct attempt_record *r)
{
    bool fails = r->predicted_bytes && !r->predicted_fits;
    return fails ? STR("fails") : gib_text(a, r->predicted_bytes);
}

void report_records(struct buf *b, const struct view *v, const struct records *r)
{
    static const struct column columns[] = {
        {"model", false, 0, false},    {"engine", false, 5, false},  {"card", false, 4, false},
        {"gpus", true, 0, false},      {"sp", true, 0, false},       {"cp", true, 6, false},
        {"context", true, 0, false},   {"outcome", false, 0, false}, {"seconds", true, 3, false},
        {"predicted", true, 2, false}, {"reserved", true, 1, false},
    };
    struct table t = table_in(b->arena, columns, COUNT_OF(columns));
    ptrdiff_t rows = 0;
    for (ptrdiff_t i = 0; i < r->count; i++) {
        for (ptrdiff_t k = 0; k < r->cells[i].attempt_count; k++, rows++) {
            struct row row = {&r->cells[i], &r->cells[i].attempts[k]};
            for (ptrdiff_t f = 0; f < COUNT_OF(fields); f++)
                if (fields[f].shown)
                    table_cell(&t, fields[f].text(b->arena, row));
            table_cell(&t, predicted_text(b->arena, row.attempt));
            table_cell(&t, gib_text(b->arena, row.attempt->peaks.reserved_bytes));
        }
    }
    if (rows)
        table_print(&t, b, v);
    else
        buf_put_z(b, "no trial has been made yet\n");
}

// ------------------------------------------------------------------ other forms

struct form {
    const char *before, *between, *after;
    void (*put)(struct buf *b, struct str s);
};

static const struct form csv = {"", ",", "\r\n", put_csv};
static const struct form markdown = {"| ", " | ", " |\n", put_markdown};

static void put_row(struct buf *b, const struct form *f, const struct row *row)
{
    buf_put_z(b, f->before);
    for (ptrdiff_t i = 0; i < COUNT_OF(fields); i++) {
        struct str text = row ? fields[i].text(b->arena, *row) : str_from(fields[i].name);
        f->put(b, text);
        buf_put_z(b, i + 1 < COUNT_OF(fields) ? f->between : f->after);
    }
}

static void put_rows(struct buf *b, const struct form *f, const struct records *r)
{
    for (ptrdiff_t i = 0; i < r->count; i++) {
        for (ptrdiff_t k = 0; k < r->cells[i].attempt_count; k++) {
            struct row row = {&r->cells[i], &r->cells[i].attempts[k]};
            put_row(b, f, &row);
        }
    }
}

void report_records_csv(struct buf *b, const struct records *r)
{
    put_row(b, &csv, NULL);
    put_rows(b, &csv, r);
}

void report_records_markdown(struct buf *b, const struct records *r)
{
    put_row(b, &markdown, NULL);
    for (ptrdiff_t i = 0; i < COUNT_OF(fields); i++)
        buf_put_z(b, i ? " --- |" : "| --- |");
    buf_char(b, '\n');
    put_rows(b, &markdown, r);
}

static void put_steps_json(struct json_out *j, const struct attempt_record *t)
{
    json_out_key(j, "steps");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < t->step_count; i++) {
        const struct step_record *s = &t->steps[i];
        json_out_object(j);
        json_out_field_u64(j, "step", s->number);
        json_out_field_u64(j, "allocated_bytes", s->allocated_bytes);
        json_out_field_u64(j, "requested_bytes", s->requested_bytes);
        json_out_field_u64(j, "reserved_bytes", s->reserved_bytes);
        json_out_field_u64(j, "end_allocated_bytes", s->end_allocated_bytes);
        json_out_field_u64(j, "retries", s->retries);
        json_out_key(j, "seconds");
        json_out_double(j, s->seconds);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

// What `fathom predict` takes to answer for the same trial, and the model's configuration where no
// name leads to it.
static void put_prediction_json(struct json_out *j, const struct row *row)
{
    struct settings *s = NEW(j->out->arena, struct settings, 1);
    struct error why = {0};
    *s = settings_in(j->out->arena);
    if (!measured_trial_settings(s, row->cell, row->attempt, &why)) {
        json_out_field_str(j, "unpredicted", str_from(why.message));
        return;
    }
    json_out_key(j, "predict");
    settings_json(j, s);
    if (!measured_setting(row->cell, "config").n || !row->cell->config.n)
        return;
    json_out_key(j, "config");
    json_out_literal(j, row->cell->config);
}

static void put_attempt_json(struct json_out *j, const struct row *row)
{
    const struct attempt_record *t = row->attempt;
    json_out_object(j);
    json_out_field_str(j, "model", row->cell->model);
    json_out_field_str(j, "engine", row->cell->engine);
    json_out_field_str(j, "card", row->cell->card);
    json_out_field_u64(j, "gpus", row->cell->gpus);
    json_out_field_u64(j, "sp", row->cell->sp);
    json_out_key(j, "cp");
    json_out_literal(j, cp_of(NULL, *row));
    json_out_field_str(j, "settings", row->cell->key);
    json_out_field_u64(j, "context", t->context);
    json_out_field_u64(j, "try", (uint64_t)t->try);
    json_out_field_str(j, "outcome", outcome_text(NULL, *row));
    json_out_field_u64(j, "status", (uint64_t)t->status);
    json_out_field_str(j, "detail", t->detail);
    json_out_field_u64(j, "started_ms", (uint64_t)t->started_ms);
    json_out_field_u64(j, "ended_ms", (uint64_t)t->ended_ms);
    if (t->predicted_bytes)
        json_out_field_bool(j, "predicted_fits", t->predicted_fits);
    if (t->predicted_fits)
        json_out_field_u64(j, "predicted_reserved_bytes", t->predicted_bytes);
    json_out_field_u64(j, "limit_bytes", t->limit_bytes);
    json_out_field_u64(j, "total_bytes", t->total_bytes);
    json_out_field_u64(j, "allocated_bytes", t->peaks.allocated_bytes);
    json_out_field_u64(j, "requested_bytes", t->peaks.requested_bytes);
    json_out_field_u64(j, "reserved_bytes", t->peaks.reserved_bytes);
    json_out_field_u64(j, "retries", t->peaks.retries);
    put_steps_json(j, t);
    put_prediction_json(j, row);
    json_out_field_str(j, "gpu", t->gpu);
    json_out_field_str(j, "versions", t->versions);
    json_out_field_str(j, "command", t->command);
    json_out_field_str(j, "log", t->log);
    json_out_object_end(j);
}

void report_records_json(struct json_out *j, const struct records *r)
{
    json_out_key(j, "attempts");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < r->count; i++) {
        for (ptrdiff_t k = 0; k < r->cells[i].attempt_count; k++) {
            struct row row = {&r->cells[i], &r->cells[i].attempts[k]};
            put_attempt_json(j, &row);
        }
    }
    json_out_array_end(j);
}
