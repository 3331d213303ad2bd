// Tables of what was found: a row a cell with what it took, and, of several models, the published
// form with GPUs and sequence parallel sizes as rows and models as columns.
#include "core/report/probe.h"

#include "core/base/units.h"

static struct str count_text(struct arena *a, uint64_t count)
{
    return str_format(a, "%llu", (unsigned long long)count);
}

void report_probe_line(struct buf *b, const struct probe_cell *c)
{
    buf_put_z(b, "model_name = ");
    put_plain(b, c->model);
    buf_printf(b, ", trainer_gpu_num = %llu, sp_num = %llu, ", (unsigned long long)c->gpus,
               (unsigned long long)c->sp);
    if (c->cp > 1) // which the published test does not have
        buf_printf(b, "cp_num = %llu, ", (unsigned long long)c->cp);
    buf_printf(b, "max_model_len = %llu\n", (unsigned long long)c->end.longest);
}

// "92160*" beyond the positions of the model, "-" where nothing fits, "?" where it is not
// known.
static struct str length_text(struct arena *a, const struct probe_cell *c, bool known,
                              uint64_t length)
{
    if (!known)
        return STR("?");
    if (!length)
        return STR("-");
    bool beyond = c->max_position && length > c->max_position;
    return str_format(a, "%llu%s", (unsigned long long)length, beyond ? "*" : "");
}

static struct str found_text(struct arena *a, const struct probe_cell *c)
{
    if (!c->possible)
        return STR_NONE;
    return length_text(a, c, c->settled && c->end.state == HUNT_DONE, c->end.longest);
}

static bool is_spread(const struct probe_story *s)
{
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (s->cells[i].cp > 1)
            return true;
    return false;
}

// The sizes of a cell, CP among them where a cell of the story has it.
static ptrdiff_t put_size_columns(struct column *columns, bool spread)
{
    columns[0] = (struct column){"GPUs", true, 0, false};
    columns[1] = (struct column){"SP", true, 0, false};
    columns[2] = (struct column){"CP", true, 0, false};
    return spread ? 3 : 2;
}

static void put_sizes(struct table *t, struct arena *a, const struct probe_cell *c, bool spread)
{
    table_cell(t, count_text(a, c->gpus));
    table_cell(t, count_text(a, c->sp));
    if (spread)
        table_cell(t, count_text(a, c->cp));
}

static void print_table(struct buf *b, const struct view *v, const struct probe_story *s)
{
    static const struct column found[] = {{"longest", true, 0, false},
                                          {"predicted", true, 1, false},
                                          {"launches", true, 2, false},
                                          {"linear", true, 3, false},
                                          {"seconds", true, 4, false}};
    struct column columns[TABLE_MAX_COLUMNS] = {{"model", false, 0, false}};
    bool spread = is_spread(s);
    ptrdiff_t count = 1 + put_size_columns(columns + 1, spread);
    for (ptrdiff_t i = 0; i < COUNT_OF(found); i++)
        columns[count++] = found[i];
    struct table t = table_in(b->arena, columns, count);
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct probe_cell *c = &s->cells[i];
        if (!c->possible)
            continue;
        table_cell(&t, c->model);
        put_sizes(&t, b->arena, c, spread);
        table_cell(&t, found_text(b->arena, c));
        table_cell(&t, length_text(b->arena, c, c->predicted, c->expected));
        table_cell(&t, count_text(b->arena, c->launches + c->known));
        table_cell(&t, count_text(b->arena, c->linear_launches));
        table_cell(&t, count_text(b->arena, c->seconds));
    }
    table_print(&t, b, v);
}

static bool is_first_of_model(const struct probe_story *s, ptrdiff_t index)
{
    for (ptrdiff_t i = 0; i < index; i++)
        if (str_equal(s->cells[i].model, s->cells[index].model))
            return false;
    return true;
}

static const struct probe_cell *cell_of(const struct probe_story *s, const struct probe_cell *row,
                                        struct str model)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct probe_cell *c = &s->cells[i];
        if (str_equal(c->model, model) && c->gpus == row->gpus && c->sp == row->sp &&
            c->cp == row->cp)
            return c;
    }
    return NULL;
}

// A row for each combination that the first model was tried with.
static void print_by_model(struct buf *b, const struct view *v, const struct probe_story *s)
{
    struct column columns[TABLE_MAX_COLUMNS];
    struct str models[TABLE_MAX_COLUMNS];
    bool spread = is_spread(s);
    ptrdiff_t sizes = put_size_columns(columns, spread), count = sizes;
    for (ptrdiff_t i = 0; i < s->count && count < TABLE_MAX_COLUMNS; i++)
        if (is_first_of_model(s, i)) {
            models[count] = s->cells[i].model;
            columns[count++] = (struct column){str_z(b->arena, s->cells[i].model), true, 0, false};
        }
    if (count < sizes + 2)
        return;
    struct table t = table_in(b->arena, columns, count);
    for (ptrdiff_t i = 0; i < s->count && str_equal(s->cells[i].model, models[sizes]); i++) {
        if (!s->cells[i].possible)
            continue;
        put_sizes(&t, b->arena, &s->cells[i], spread);
        for (ptrdiff_t column = sizes; column < count; column++) {
            const struct probe_cell *c = cell_of(s, &s->cells[i], models[column]);
            table_cell(&t, c ? found_text(b->arena, c) : STR_NONE);
        }
    }
    table_print(&t, b, v);
    buf_char(b, '\n');
}

struct totals {
    uint64_t cells, launches, known, linear, right;
};

static struct totals totals_of(const struct probe_story *s)
{
    struct totals t = {0};
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct probe_cell *c = &s->cells[i];
        bool done = c->possible && c->settled && c->end.state == HUNT_DONE;
        t.cells += done;
        t.launches += c->launches;
        t.known += c->known;
        t.linear += done ? c->linear_launches : 0;
        t.right += done && c->predicted && c->expected == c->end.longest;
    }
    return t;
}

static void print_refusals(struct buf *b, const struct probe_story *s)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct probe_cell *c = &s->cells[i];
        if (!c->possible)
            buf_printf(b, "not tried: %.*s: %.*s\n", STR_ARGS(c->title), STR_ARGS(c->refusal));
    }
}

void report_probe(struct buf *b, const struct view *v, const struct probe_story *s)
{
    struct totals t = totals_of(s);
    buf_char(b, '\n');
    print_table(b, v, s);
    buf_char(b, '\n');
    print_by_model(b, v, s);
    print_refusals(b, s);
    buf_printf(b,
               "%llu launches now and %llu before, for %llu cells; the linear order takes %llu. "
               "%llu predictions right. %llu s.\n",
               (unsigned long long)t.launches, (unsigned long long)t.known,
               (unsigned long long)t.cells, (unsigned long long)t.linear,
               (unsigned long long)t.right, (unsigned long long)s->seconds);
}

static void begin_cell_json(struct json_out *j, const struct probe_cell *c, const char *state)
{
    json_out_object(j);
    json_out_field_str(j, "model", c->model);
    json_out_field_str(j, "card", c->card);
    json_out_field_u64(j, "gpus", c->gpus);
    json_out_field_u64(j, "sp", c->sp);
    json_out_field_u64(j, "cp", c->cp);
    json_out_field_str(j, "state", str_from(c->possible ? state : "impossible"));
    if (!c->possible)
        json_out_field_str(j, "why", c->refusal);
}

static void put_cell_json(struct json_out *j, const struct probe_cell *c)
{
    static const char *const states[] = {
        [HUNT_TRY] = "unfinished", [HUNT_DONE] = "done", [HUNT_STOPPED] = "stopped"};
    begin_cell_json(j, c, c->settled ? states[c->end.state] : "unfinished");
    if (c->end.state == HUNT_STOPPED)
        json_out_field_str(j, "why", str_from(outcome_rows[c->end.reason].name));
    if (c->possible) {
        json_out_field_u64(j, "max_context", c->end.longest);
        json_out_field_u64(j, "fails_at", c->end.fails_at);
        json_out_field_u64(j, "launches", c->launches);
        json_out_field_u64(j, "known", c->known);
        json_out_field_u64(j, "linear_launches", c->linear_launches);
        json_out_field_u64(j, "seconds", c->seconds);
    }
    if (c->predicted)
        json_out_field_u64(j, "predicted", c->expected);
    json_out_object_end(j);
}

void report_probe_json(struct json_out *j, const struct probe_story *s)
{
    struct totals t = totals_of(s);
    json_out_key(j, "cells");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < s->count; i++)
        put_cell_json(j, &s->cells[i]);
    json_out_array_end(j);
    json_out_field_u64(j, "launches", t.launches);
    json_out_field_u64(j, "known", t.known);
    json_out_field_u64(j, "linear_launches", t.linear);
    json_out_field_u64(j, "seconds", s->seconds);
}

void report_plan_json(struct json_out *j, const struct probe_story *s)
{
    json_out_key(j, "cells");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct probe_cell *c = &s->cells[i];
        begin_cell_json(j, c, "planned");
        if (c->predicted)
            json_out_field_u64(j, "predicted", c->expected);
        if (c->possible) {
            json_out_key(j, "commands");
            json_out_array(j);
            for (ptrdiff_t k = 0; k < c->command_count; k++)
                json_out_str(j, c->commands[k]);
            json_out_array_end(j);
        }
        json_out_object_end(j);
    }
    json_out_array_end(j);
}
