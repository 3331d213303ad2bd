// `fathom plan`: the best configuration, why not another, and where none is safe the least change.
#include "core/overview/plan.h"
#include "core/command/command.h"
#include "core/command/line.h"
#include "core/emit/emit.h"

static bool show_best(struct plan_shown *shown, const struct query *q, const struct plan *p,
                      struct error *e)
{
    struct settings *settings = NEW(q->arena, struct settings, 1);
    struct job *job = NEW(q->arena, struct job, 1);
    if (!plan_settings(settings, q->arena, p, plan_words(q->arena, p->best), e) ||
        !job_from_settings(job, q->arena, settings, e))
        return false;
    shown->settings = settings;
    shown->job = job;
    shown->predict = command_line(q->arena, "predict", settings);
    struct str files =
        job->target == FOR_SLIME ? STR(" --dataset prompts.jsonl -o run") : STR(" -o run");
    bool is_written = job->target != FOR_SLIME || slime_model_script(job->model.name);
    shown->emit =
        is_written ? str_join(q->arena, command_line(q->arena, "emit", settings), files) : STR_NONE;
    return true;
}

static bool show_changes(struct plan_shown *shown, const struct query *q, struct error *e)
{
    const struct plan_story *s = shown->story;
    for (int i = 0; i < s->change_count; i++) {
        struct settings settings;
        const struct plan *p = s->changes[i].plan;
        if (!plan_settings(&settings, q->arena, p, plan_words(q->arena, p->best), e))
            return false;
        shown->changes[i] = command_line(q->arena, "predict", &settings);
    }
    return true;
}

static void attach_picture(struct answer *a, const struct query *q, const struct plan_shown *shown)
{
    const struct setting *path = settings_find_z(q->settings, "svg");
    if (!path)
        return;
    struct buf svg = buf_in(q->arena);
    report_plan_svg(&svg, shown);
    answer_attach(a, q->arena, (struct attachment){path->value, buf_str(&svg)});
}

bool plan_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct plan_story *story = NEW(q->arena, struct plan_story, 1);
    struct plan_shown *shown = NEW(q->arena, struct plan_shown, 1);
    struct plan_request r;
    shown->story = story;
    if (!plan_request_read(&r, q->settings, e) || !plan_tell(story, q->arena, &r, q->runner, e) ||
        (story->plan.best && !show_best(shown, q, &story->plan, e)) || !show_changes(shown, q, e))
        return false;
    a->negative = !story->plan.best;
    attach_picture(a, q, shown);
    if (!q->json) {
        report_plan(&a->out, &q->view, shown);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    plan_story_json(&j, shown);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
