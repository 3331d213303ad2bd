// `fathom batch`: every way to make up a global batch.
#include "core/overview/batch.h"
#include "core/command/line.h"

static bool show_best(struct batch_shown *shown, const struct query *q, struct error *e)
{
    const struct batch_story *s = shown->story;
    struct settings settings = settings_in(q->arena);
    if (!s->best)
        return true;
    for (ptrdiff_t i = 0; i < s->base.count; i++)
        if (!settings_add(&settings, s->base.items[i], e))
            return false;
    if (!settings_change(&settings, batch_words(q->arena, s->best), e))
        return false;
    shown->predict = command_line(q->arena, "predict", &settings);
    return true;
}

bool batch_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct batch_story *story = NEW(q->arena, struct batch_story, 1);
    struct batch_shown shown = {.story = story};
    if (!batch_make(story, q->arena, q->settings, q->runner, e) || !show_best(&shown, q, e))
        return false;
    a->negative = story->counts_only ? !story->row_count : !story->best;
    if (!q->json) {
        report_batch(&a->out, &q->view, &shown);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_batch_json(&j, &shown);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
