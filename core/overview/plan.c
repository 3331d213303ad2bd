// See plan.h. The answer first, then what was decided against.
#include "core/overview/plan.h"

#include "core/overview/max.h"
#include "core/plan/batch.h"
#include "core/report/predict.h"
#include "core/report/step_time.h"
#include "core/report/verdict.h"

struct str options_text(struct arena *a, struct str words)
{
    struct buf b = buf_in(a);
    struct words w = words_of(str_z(a, words), ' ');
    while (words_next(&w)) {
        struct str_cut cut = str_cut(w.word, '=');
        if (w.word.n)
            buf_printf(&b, "%s--%.*s %.*s", b.n ? " " : "", STR_ARGS(cut.head), STR_ARGS(cut.tail));
    }
    return buf_str(&b);
}

static struct str seconds_text(struct arena *a, double seconds)
{
    struct buf b = buf_in(a);
    put_seconds(&b, seconds);
    return buf_str(&b);
}

static struct str gib_text(struct arena *a, uint64_t bytes)
{
    struct buf b = buf_in(a);
    put_gib(&b, bytes);
    return buf_str(&b);
}

// "+12 %", against the best; nothing is "-0 %".
static struct str against(struct arena *a, double seconds, double best)
{
    double more = 100 * (seconds / best - 1);
    return str_format(a, "%+.0f %%", more < 0 && more > -0.5 ? 0 : more);
}

// ------------------------------------------------------------------ the best

static void put_data(struct buf *b, const struct plan_shown *s)
{
    const struct plan_candidate *c = s->story->plan.best;
    const struct data *d = &s->story->data;
    struct split split = {c->batch, c->accum, c->family->data_parallel};
    struct training_time t =
        training_time_of(d, s->job->recipe, split, c->family->gpus, c->prediction.time.seconds);
    buf_put_z(b, "data: ");
    buf_count(b, d->size, d->grouped ? "prompt" : batch_unit(s->job));
    if (d->answers > 1)
        buf_printf(b, " with %llu answers each", (unsigned long long)d->answers);
    if (d->rows) {
        buf_put_z(b, " packed into ");
        buf_count(b, d->rows, "row");
    }
    buf_put_z(b, " in ");
    buf_count(b, t.steps_per_epoch, "step");
    buf_printf(b, " an epoch (%s), ",
               d->grouped ? remainder_of_answers.text : remainder_rows[s->job->recipe].text);
    if (d->epochs > 1)
        buf_printf(b, "%llu epochs, ", (unsigned long long)d->epochs);
    buf_printf(b, "%.2f hours%s, %.1f GPU hours", t.hours,
               c->prediction.time.beside ? " of updates" : "", t.gpu_hours);
    if (d->priced)
        buf_printf(b, ", %.2f at %g a GPU hour", t.cost, d->price);
}

// "2 sequences x 8 micro-batches x 1 rank"
static void put_split(struct buf *out, const struct plan_shown *s)
{
    const struct plan_candidate *best = s->story->plan.best;
    buf_count(out, best->batch, batch_unit(s->job));
    buf_put_z(out, " x ");
    buf_count(out, best->accum, "micro-batch");
    buf_put_z(out, " x ");
    buf_count(out, best->family->data_parallel, "rank");
    buf_char(out, '\n');
}

// Where only ranks that share sequences make up the batch.
static void report_indivisible(struct buf *out, const struct view *v, const struct plan *p)
{
    unsigned long long gpus = p->best->family->gpus, batch = p->request.global_batch;
    struct buf b = buf_in(out->arena);
    if (p->best->family->alone < 0 || batch % gpus == 0)
        return;
    buf_printf(&b,
               "%llu is no multiple of %llu GPUs, so that only ranks that share sequences make "
               "it up; with %llu",
               batch, gpus, (batch / gpus + 1) * gpus);
    if (batch > gpus)
        buf_printf(&b, " or %llu", batch / gpus * gpus);
    buf_put_z(&b, " all strategies could");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void report_best(struct buf *out, const struct view *v, const struct plan_shown *s)
{
    const struct plan *p = &s->story->plan;
    const struct prediction *best = &p->best->prediction;
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "best for %s: ", plan_goal_words[p->request.goal]);
    put_seconds(&b, best->time.seconds);
    buf_put_z(&b, best->time.beside ? " an update, safe with " : " a step, safe with ");
    put_gib(&b, best->verdict.free_bytes);
    buf_put_z(&b, " to spare");
    put_ink(out, v, INK_GOOD, buf_str(&b));
    struct str machine = machine_text(out->arena, &s->job->hardware);
    buf_printf(out, "\n  %.*s, %llu tokens on %.*s: ", STR_ARGS(str_short(s->job->model.name)),
               (unsigned long long)s->job->context, STR_ARGS(machine));
    put_split(out, s);
    report_job(out, v, s->job);
    report_indivisible(out, v, p);
    struct str emit =
        s->emit.n ? s->emit : STR("no files: slime ships no arguments for this model");
    buf_printf(out, "\n  %.*s\n  %.*s\n\n", STR_ARGS(s->predict), STR_ARGS(emit));
    report_time(out, v, &best->time);
    b = buf_in(out->arena);
    buf_put_z(&b, "memory: ");
    put_gib(&b, best->reserved_bytes);
    buf_put_z(&b, " reserved of the ");
    put_gib(&b, best->limit_bytes);
    buf_put_z(&b, " that torch may take");
    buf_wrapped(out, buf_str(&b), 2, v->width);
    report_host(out, v, best->host_bytes, &best->verdict.wanted);
    if (s->story->data.size) {
        b = buf_in(out->arena);
        put_data(&b, s);
        buf_wrapped(out, buf_str(&b), 2, v->width);
    }
    report_unmeasured(out, v, s->job);
}

// ------------------------------------------------------------------ the others

static struct str verdict_text(const struct plan_row *row)
{
    enum grade grade = row->prediction.verdict.grade;
    return grade == GRADE_NO ? STR("does not fit") : str_from(grade_name(grade));
}

static void table_row(struct table *t, const struct plan_row *row, double best_s)
{
    const struct prediction *p = &row->prediction;
    struct arena *a = t->arena;
    bool timed = p->fits && !p->time.unknown;
    table_cell(t, timed ? seconds_text(a, p->time.seconds) : STR("-"));
    table_cell(t, timed ? against(a, p->time.seconds, best_s) : STR_NONE);
    table_cell(t, p->fits ? gib_text(a, p->reserved_bytes) : STR("-"));
    table_cell(t, verdict_text(row));
}

// What is ranked by.
static const char *time_unit(const struct plan_story *s)
{
    return s->plan.best->prediction.time.beside ? "an update" : "a step";
}

// Whether something that trains the same and is safe is as fast: then the best is the simpler.
static bool is_matched(const struct plan_story *s)
{
    double seconds = s->plan.best->prediction.time.seconds;
    for (int i = 0; i < s->row_count; i++) {
        const struct plan_row *row = &s->rows[i];
        const struct prediction *p = &row->prediction;
        if (row->possible && p->verdict.grade == GRADE_SAFE && !row->otherwise &&
            p->time.seconds <= seconds * PLAN_SAME)
            return s->plan.request.goal == GOAL_SPEED;
    }
    return false;
}

static void report_others(struct buf *out, const struct view *v, const struct plan_shown *s)
{
    const struct column columns[] = {{.title = "why not"},
                                     {.title = time_unit(s->story), .right = true},
                                     {.title = "", .right = true},
                                     {.title = "reserved", .right = true},
                                     {.title = ""},
                                     {.title = "options", .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    double best_s = s->story->plan.best->prediction.time.seconds;
    if (!s->story->row_count)
        return;
    for (int i = 0; i < s->story->row_count; i++) {
        const struct plan_row *row = &s->story->rows[i];
        table_cell_z(&t, row->what);
        table_row(&t, row, best_s);
        table_cell(&t, row->options);
    }
    buf_char(out, '\n');
    table_print(&t, out, v);
    if (is_matched(s->story))
        buf_wrapped(
            out,
            STR("of what is as fast to 1 % the simplest is the best, and of those the fastest"), 2,
            v->width);
}

static void report_pareto(struct buf *out, const struct view *v, const struct plan_shown *s)
{
    const struct column columns[] = {{.title = "memory against time", .right = true},
                                     {.title = time_unit(s->story), .right = true},
                                     {.title = "", .right = true},
                                     {.title = "options", .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    const struct plan *p = &s->story->plan;
    double best_s = p->best->prediction.time.seconds;
    for (int i = 0; i < s->story->front.count; i++) {
        const struct plan_candidate *c = s->story->front.points[i];
        table_cell(&t, gib_text(out->arena, c->prediction.reserved_bytes));
        table_cell(&t, seconds_text(out->arena, c->prediction.time.seconds));
        table_cell(&t, against(out->arena, c->prediction.time.seconds, best_s));
        table_cell(&t, plan_options(out->arena, p, plan_words(out->arena, c)));
    }
    buf_char(out, '\n');
    table_print(&t, out, v);
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "%lld of %lld configurations were predicted", (long long)p->predicted,
               (long long)p->all);
    if (!p->request.exhaustive && p->predicted < p->all)
        buf_put_z(&b, "; no other is better for the goal, nor better than one of these by more "
                      "than 1 % in both memory and time");
    if (p->request.goal != GOAL_MEMORY)
        buf_put_z(&b, " (--goal memory goes on beyond twice the fastest time)");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void report_more(struct buf *out, const struct view *v, const struct plan_shown *s)
{
    const struct plan_change *m = &s->story->more;
    struct buf b = buf_in(out->arena);
    if (!m->words.n)
        return;
    struct str machine = str_cut(str_cut(m->words, ' ').head, '=').tail;
    if (!m->found) {
        buf_printf(&b, "On %.*s nothing is safe.", STR_ARGS(machine));
    } else {
        const struct plan_candidate *c = m->plan->best, *best = s->story->plan.best;
        double ratio = best->prediction.time.seconds / c->prediction.time.seconds;
        double gpus = (double)c->family->gpus / (double)best->family->gpus;
        buf_printf(&b, "On %.*s the same batch takes ", STR_ARGS(machine));
        put_seconds(&b, c->prediction.time.seconds);
        buf_printf(&b, " %s: %.2f times as fast with %g times the GPUs (%.*s).",
                   time_unit(s->story), ratio, gpus,
                   STR_ARGS(plan_options(out->arena, m->plan, plan_words(out->arena, c))));
    }
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void report_nothing(struct buf *out, const struct view *v, const struct plan_shown *s)
{
    const struct plan_story *story = s->story;
    static const struct column columns[] = {{.title = "what would do"},
                                            {.title = "a step", .right = true},
                                            {.title = "reserved", .right = true},
                                            {.title = "command", .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "no configuration is safe: %lld of %lld were predicted, the others cannot fit",
               (long long)story->plan.predicted, (long long)story->plan.all);
    put_ink(out, v, INK_BAD, buf_str(&b));
    buf_put_z(out, "\n");
    report_job(out, v, &story->plan.job);
    for (int i = 0; i < story->change_count; i++) {
        const struct plan_candidate *c = story->changes[i].plan->best;
        table_cell_z(&t, story->changes[i].what);
        table_cell(&t, seconds_text(out->arena, c->prediction.time.seconds));
        table_cell(&t, gib_text(out->arena, c->prediction.reserved_bytes));
        table_cell(&t, s->changes[i]);
    }
    buf_char(out, '\n');
    if (story->change_count)
        table_print(&t, out, v);
    else
        buf_put_z(out,
                  "  Nor with a shorter context, a smaller batch, more GPUs, adapters or a larger "
                  "card.\n");
}

void report_plan(struct buf *out, const struct view *v, const struct plan_shown *s)
{
    if (!s->story->plan.best) {
        report_nothing(out, v, s);
        return;
    }
    report_best(out, v, s);
    report_others(out, v, s);
    report_pareto(out, v, s);
    report_more(out, v, s);
}
