// A plan as JSON.
#include "core/overview/plan.h"
#include "core/report/predict.h"
#include "core/report/step_time.h"

static void field_double(struct json_out *j, const char *key, double value)
{
    json_out_key(j, key);
    json_out_double(j, value);
}

static void prediction_json(struct json_out *j, const struct prediction *p)
{
    json_out_field_str(j, "verdict", str_from(grade_name(p->verdict.grade)));
    report_peak_json(j, p);
    json_out_field_u64(j, "reserved_bytes", p->reserved_bytes);
    json_out_field_u64(j, "host_bytes", p->host_bytes);
    report_time_json(j, &p->time);
}

static void training_json(struct json_out *j, const struct plan_shown *s)
{
    const struct plan_candidate *c = s->story->plan.best;
    const struct data *d = &s->story->data;
    struct split split = {c->batch, c->accum, c->family->data_parallel};
    struct training_time t =
        training_time_of(d, s->job->recipe, split, c->family->gpus, c->prediction.time.seconds);
    if (!d->size)
        return;
    json_out_field_u64(j, "steps_per_epoch", t.steps_per_epoch);
    json_out_field_u64(j, "steps", t.steps);
    field_double(j, "hours", t.hours);
    field_double(j, "gpu_hours", t.gpu_hours);
    if (d->priced)
        field_double(j, "cost", t.cost);
}

static void best_json(struct json_out *j, const struct plan_shown *s)
{
    const struct plan_candidate *c = s->story->plan.best;
    json_out_key(j, "best");
    if (!c) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_key(j, "settings");
    settings_json(j, s->settings);
    json_out_field_u64(j, "data_parallel", c->family->data_parallel);
    prediction_json(j, &c->prediction);
    training_json(j, s);
    json_out_field_str(j, "command", s->predict);
    if (s->emit.n)
        json_out_field_str(j, "emit", s->emit);
    json_out_object_end(j);
}

static void alternatives_json(struct json_out *j, const struct plan_shown *s)
{
    json_out_key(j, "alternatives");
    json_out_array(j);
    for (int i = 0; i < s->story->row_count; i++) {
        const struct plan_row *row = &s->story->rows[i];
        json_out_object(j);
        json_out_field_str(j, "what", str_from(row->what));
        json_out_field_str(j, "options", row->options);
        prediction_json(j, &row->prediction);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_key(j, "pareto");
    json_out_array(j);
    for (int i = 0; i < s->story->front.count; i++) {
        const struct plan_candidate *c = s->story->front.points[i];
        json_out_object(j);
        json_out_field_str(
            j, "options",
            plan_options(j->out->arena, &s->story->plan, plan_words(j->out->arena, c)));
        prediction_json(j, &c->prediction);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void change_json(struct json_out *j, const struct plan_change *c, struct str command)
{
    json_out_object(j);
    json_out_field_str(j, "what", str_from(c->what));
    json_out_field_str(j, "options", options_text(j->out->arena, c->words));
    json_out_field_bool(j, "safe", c->found);
    if (command.n)
        json_out_field_str(j, "command", command);
    if (c->found)
        prediction_json(j, &c->plan->best->prediction);
    json_out_object_end(j);
}

void plan_story_json(struct json_out *j, const struct plan_shown *s)
{
    const struct plan_story *story = s->story;
    json_out_field_str(j, "goal", str_from(plan_goal_words[story->plan.request.goal]));
    best_json(j, s);
    alternatives_json(j, s);
    json_out_key(j, "more_gpus");
    if (story->more.words.n)
        change_json(j, &story->more, STR_NONE);
    else
        json_out_null(j);
    json_out_key(j, "changes");
    json_out_array(j);
    for (int i = 0; i < story->change_count; i++)
        change_json(j, &story->changes[i], s->changes[i]);
    json_out_array_end(j);
    json_out_field_u64(j, "predicted", (uint64_t)story->plan.predicted);
    json_out_field_u64(j, "configurations", (uint64_t)story->plan.all);
}
