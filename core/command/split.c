// `fathom split`: GPUs between teacher, student training and rollout.
#include "core/report/split.h"
#include "core/command/command.h"

bool split_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct split_request *r = NEW(q->arena, struct split_request, 1);
    struct split_result *found = NEW(q->arena, struct split_result, 1);
    struct split_story s = {r, found};
    if (!split_read(r, q->arena, q->settings, e) || !split_find(found, r, e))
        return false;
    if (!q->json) {
        report_split(&a->out, &q->view, &s);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_split_json(&j, &s);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
