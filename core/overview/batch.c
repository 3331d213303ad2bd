// See batch.h.
#include "core/overview/batch.h"

#include "core/overview/max.h"
#include "core/report/predict.h"
#include "core/report/step_time.h"

static void put_head(struct buf *out, const struct view *v, const struct batch_story *s)
{
    struct buf b = buf_in(out->arena);
    struct str machine = machine_text(out->arena, &s->job->hardware);
    buf_count(&b, s->global_batch, batch_unit(s->job));
    buf_printf(&b, " a step on %.*s: ", STR_ARGS(machine));
    if (s->row_count)
        buf_count(&b, (uint64_t)s->row_count, "way");
    else
        buf_put_z(&b, "cannot be made up");
    bool good = s->best || (s->counts_only && s->row_count);
    put_ink(out, v, good ? INK_GOOD : INK_BAD, buf_str(&b));
    buf_put_z(out, "\n");
    if (!s->counts_only)
        report_job(out, v, s->job);
    buf_char(out, '\n');
}

static void put_rule(struct buf *out, const struct view *v, const struct batch_story *s)
{
    const struct batch_rule *rule = batch_rule_of(s->job);
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "a batch is %s; %s", rule->equation, rule->checks);
    buf_wrapped(out, buf_str(&b), 2, v->width);
    if (!s->nearest_more)
        return;
    b = buf_in(out->arena);
    buf_printf(&b, "%llu is no multiple of %llu data-parallel ranks%s%s; ",
               (unsigned long long)s->global_batch, (unsigned long long)s->ranks,
               s->least_rows > 1 ? " with two rows each" : "",
               s->row_count ? ", so that only ranks that share sequences make it up" : "");
    if (s->nearest_less)
        buf_printf(&b, "%llu and ", (unsigned long long)s->nearest_less);
    buf_printf(&b, "%llu %s", (unsigned long long)s->nearest_more,
               s->nearest_less ? "are the nearest that are" : "is the smallest");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static struct str number(struct arena *a, uint64_t n)
{
    return str_format(a, "%llu", (unsigned long long)n);
}

static struct str sharing_text(struct arena *a, const struct batch_row *row)
{
    if (row->cp > 1)
        return str_format(a, "cp %llu", (unsigned long long)row->cp);
    return row->sp > 1 ? str_format(a, "sp %llu", (unsigned long long)row->sp) : STR("-");
}

static void put_predicted(struct table *t, const struct batch_story *s, const struct batch_row *row)
{
    const struct prediction *p = &row->prediction;
    bool timed = p->fits && !p->time.unknown;
    struct buf gib = buf_in(t->arena), seconds = buf_in(t->arena);
    put_gib(&gib, p->reserved_bytes);
    put_seconds(&seconds, p->time.seconds);
    if (s->counts_only) {
        if (s->data.size)
            table_cell(t, number(t->arena, row->training.steps_per_epoch));
        return;
    }
    table_cell(t, p->fits ? buf_str(&gib) : STR("-"));
    table_cell_z(t, p->verdict.grade == GRADE_NO ? "does not fit" : grade_name(p->verdict.grade));
    table_cell(t, timed ? buf_str(&seconds) : STR("-"));
    if (!s->data.size)
        return;
    table_cell(t, number(t->arena, row->training.steps_per_epoch));
    table_cell(t, timed ? str_format(t->arena, "%.2f", row->training.hours) : STR("-"));
    if (s->data.priced)
        table_cell(t, timed ? str_format(t->arena, "%.2f", row->training.cost) : STR("-"));
}

// What a step holds beside the update, where that alone is timed; NULL where it holds nothing.
static const char *beside_of(const struct batch_story *s)
{
    return s->row_count ? s->rows[0].prediction.time.beside : NULL;
}

static void put_rows(struct buf *out, const struct view *v, const struct batch_story *s)
{
    const char *timed = beside_of(s) ? "an update" : "a step";
    const struct column columns[] = {
        {.title = "batch", .right = true},    {.title = "accum", .right = true},
        {.title = "ranks", .right = true},    {.title = "shared"},
        {.title = "reserved", .right = true}, {.title = ""},
        {.title = timed, .right = true},      {.title = "steps", .right = true},
        {.title = "hours", .right = true},    {.title = "cost", .right = true}};
    static const struct column counts[] = {{.title = "batch", .right = true},
                                           {.title = "accum", .right = true},
                                           {.title = "ranks", .right = true},
                                           {.title = "shared"},
                                           {.title = "steps", .right = true}};
    int left_out = s->data.priced ? 0 : s->data.size ? 1 : 3;
    struct table t = table_in(out->arena, columns, COUNT_OF(columns) - left_out);
    if (s->counts_only)
        t = table_in(out->arena, counts, COUNT_OF(counts) - !s->data.size);
    for (ptrdiff_t i = 0; i < s->row_count; i++) {
        const struct batch_row *row = &s->rows[i];
        table_cell(&t, number(out->arena, row->batch));
        table_cell(&t, number(out->arena, row->accum));
        table_cell(&t, number(out->arena, row->data_parallel));
        table_cell(&t, sharing_text(out->arena, row));
        put_predicted(&t, s, row);
    }
    if (s->row_count)
        table_print(&t, out, v);
}

static void put_largest(struct buf *b, const struct batch_story *s)
{
    buf_printf(b, "The largest micro-batch that is safe, whether it divides %llu or not: %llu",
               (unsigned long long)s->global_batch, (unsigned long long)s->largest_alone);
    if (s->largest_batch != s->largest_alone)
        buf_printf(b, " where a step has one, %llu where it has several",
                   (unsigned long long)s->largest_batch);
    buf_char(b, '.');
}

static void put_best(struct buf *out, const struct view *v, const struct batch_shown *shown)
{
    const struct batch_story *s = shown->story;
    struct buf b = buf_in(out->arena);
    if (s->counts_only) {
        buf_printf(&b, "Memory and time are not predicted: %s.", s->job->unmodelled.message);
    } else if (s->largest_batch || s->largest_alone) {
        put_largest(&b, s);
    } else {
        buf_put_z(&b, "No micro-batch is safe; 'fathom plan' looks for another way.");
    }
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&b), 2, v->width);
    if (s->data.size && s->row_count) {
        b = buf_in(out->arena);
        buf_put_z(&b, "Of ");
        buf_count(&b, s->data.size, batch_counts_answers(s->job) ? "prompt" : batch_unit(s->job));
        if (s->data.answers > 1)
            buf_printf(&b, " with %llu answers each", (unsigned long long)s->data.answers);
        if (s->data.rows) {
            buf_put_z(&b, " packed into ");
            buf_count(&b, s->data.rows, "row");
        }
        buf_printf(&b, ", %s.",
                   s->data.grouped ? remainder_of_answers.text
                                   : remainder_rows[s->job->recipe].text);
        buf_wrapped(out, buf_str(&b), 2, v->width);
    }
    if (beside_of(s)) {
        b = buf_in(out->arena);
        buf_printf(&b, "Times are of the update alone: %s.", beside_of(s));
        buf_wrapped(out, buf_str(&b), 2, v->width);
    }
    if (s->best)
        buf_printf(out, "\n  The %s that is safe:\n  %.*s\n",
                   s->best->prediction.time.unknown ? "largest of these" : "fastest",
                   STR_ARGS(shown->predict));
}

// ", take --cp 2": where ranks share sequences that did not.
static struct str shared_too(struct arena *a, const struct batch_story *s)
{
    uint64_t cp = s->best->cp, sp = s->best->sp;
    if (cp != s->job->ring)
        return str_format(a, ", take --cp %llu", (unsigned long long)cp);
    if (sp != s->job->ulysses)
        return str_format(a, ", take --sp %llu", (unsigned long long)sp);
    return STR_NONE;
}

static void put_was(struct buf *out, const struct view *v, const struct batch_story *s)
{
    struct buf b = buf_in(out->arena);
    if (!s->was.n)
        return;
    buf_printf(&b, "On %.*s it was %llu x %llu x ", STR_ARGS(str_plain(out->arena, s->was)),
               (unsigned long long)s->was_batch, (unsigned long long)s->was_accum);
    buf_count(&b, s->was_ranks, "rank");
    buf_put_z(&b, ". ");
    if (s->counts_only && s->row_count)
        buf_printf(&b, "Any of these rows keeps the batch; training is %s. ",
                   batch_rule_of(s->job)->equal);
    else if (s->best)
        buf_printf(
            &b,
            "Change --batch to %llu and --accum to %llu%.*s, and leave the learning rate and the "
            "schedule in steps: training is %s. ",
            (unsigned long long)s->best->batch, (unsigned long long)s->best->accum,
            STR_ARGS(shared_too(out->arena, s)), batch_rule_of(s->job)->equal);
    else if (!s->row_count)
        buf_put_z(&b, "It cannot be kept here: the batch, and with it the learning rate and the "
                      "number of steps, must change. ");
    buf_put_z(&b, "The order of the data differs with the number of ranks.");
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void put_evaluation(struct buf *out, const struct view *v, const struct batch_story *s)
{
    const struct evaluation *e = &s->evaluation;
    struct buf b = buf_in(out->arena);
    if (!e->batches)
        return;
    buf_put_z(&b, "An evaluation of ");
    buf_count(&b, e->size, batch_unit(s->job));
    buf_put_z(&b, " is ");
    buf_count(&b, e->batches, "batch");
    buf_printf(&b, " of %llu on each rank: ", (unsigned long long)e->batch);
    put_seconds(&b, e->seconds);
    if (e->every == 1)
        buf_put_z(&b, " after every step");
    else if (e->every)
        buf_printf(&b, " every %llu steps", (unsigned long long)e->every);
    if (e->times) {
        buf_put_z(&b, ", ");
        buf_count(&b, e->times, "time");
        buf_printf(&b, ": %.2f hours beside the %.2f of training",
                   (double)e->times * e->seconds / 3600, s->best->training.hours);
    }
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

void report_batch(struct buf *out, const struct view *v, const struct batch_shown *shown)
{
    const struct batch_story *s = shown->story;
    put_head(out, v, s);
    put_rows(out, v, s);
    if (s->row_count)
        put_best(out, v, shown);
    put_was(out, v, s);
    put_evaluation(out, v, s);
    buf_char(out, '\n');
    put_rule(out, v, s);
    if (!s->counts_only)
        report_unmeasured(out, v, s->job);
}

// ------------------------------------------------------------------ JSON

static void field_double(struct json_out *j, const char *key, bool known, double value)
{
    json_out_key(j, key);
    if (known)
        json_out_double(j, value);
    else
        json_out_null(j);
}

static void row_json(struct json_out *j, const struct batch_story *s, const struct batch_row *row)
{
    const struct prediction *p = &row->prediction;
    bool timed = p->fits && !p->time.unknown;
    json_out_object(j);
    json_out_field_u64(j, "batch", row->batch);
    json_out_field_u64(j, "accum", row->accum);
    json_out_field_u64(j, "data_parallel", row->data_parallel);
    json_out_field_u64(j, "cp", row->cp);
    json_out_field_u64(j, "sp", row->sp);
    json_out_field_u64(j, "global_batch", s->global_batch);
    if (s->counts_only) {
        if (s->data.size)
            json_out_field_u64(j, "steps_per_epoch", row->training.steps_per_epoch);
        json_out_object_end(j);
        return;
    }
    json_out_field_u64(j, "reserved_bytes", p->reserved_bytes);
    json_out_field_str(j, "verdict", str_from(grade_name(p->verdict.grade)));
    field_double(j, "step_s", timed, p->time.seconds);
    if (s->data.size) {
        json_out_field_u64(j, "steps_per_epoch", row->training.steps_per_epoch);
        field_double(j, "hours", timed, row->training.hours);
        if (s->data.priced)
            field_double(j, "cost", timed, row->training.cost);
    }
    json_out_object_end(j);
}

static void evaluation_json(struct json_out *j, const struct evaluation *e)
{
    if (!e->batches)
        return;
    json_out_key(j, "evaluation");
    json_out_object(j);
    json_out_field_u64(j, "batch", e->batch);
    json_out_field_u64(j, "batches", e->batches);
    field_double(j, "seconds", true, e->seconds);
    json_out_field_u64(j, "times", e->times);
    json_out_object_end(j);
}

void report_batch_json(struct json_out *j, const struct batch_shown *shown)
{
    const struct batch_story *s = shown->story;
    json_out_field_u64(j, "global_batch", s->global_batch);
    json_out_key(j, "rows");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < s->row_count; i++)
        row_json(j, s, &s->rows[i]);
    json_out_array_end(j);
    if (s->counts_only)
        json_out_field_str(j, "unpredicted", str_from(s->job->unmodelled.message));
    else
        json_out_field_u64(j, "largest_batch", s->largest_batch);
    json_out_field_u64(j, "largest_batch_alone", s->largest_alone);
    if (beside_of(s))
        json_out_field_str(j, "update_alone", str_from(beside_of(s)));
    if (s->best)
        json_out_field_str(j, "command", shown->predict);
    if (s->nearest_more) {
        json_out_field_u64(j, "nearest_less", s->nearest_less);
        json_out_field_u64(j, "nearest_more", s->nearest_more);
    }
    evaluation_json(j, &s->evaluation);
}
