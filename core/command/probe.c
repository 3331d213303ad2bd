// `fathom probe`: the program makes its trials (host/probe) and this turns what was found into an
// answer. The library starts no processes, and says so.
#include "core/command/probe.h"

bool probe_answer(struct answer *a, const struct query *q, struct error *e)
{
    (void)a;
    (void)q;
    return FAIL(e, UNSUPPORTED, STR_NONE,
                "probing starts training jobs, which the program can and the library cannot");
}

static void answer_json(struct answer *a, const struct query *q, const struct probe_story *story,
                        void (*report)(struct json_out *j, const struct probe_story *s))
{
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report(&j, story);
    json_out_object_end(&j);
    json_out_end(&j);
}

void probe_answer_plan(struct answer *a, const struct query *q, const struct probe_story *story)
{
    if (q->json)
        answer_json(a, q, story, report_plan_json);
}

void probe_answer_story(struct answer *a, const struct query *q, const struct probe_story *story)
{
    a->negative = story->count > 0;
    for (ptrdiff_t i = 0; i < story->count; i++)
        a->negative &= !story->cells[i].end.longest;
    if (q->json)
        answer_json(a, q, story, report_probe_json);
    else
        report_probe(&a->out, &q->view, story);
}

void probe_answer_records(struct answer *a, const struct query *q, enum export_form form,
                          struct records records)
{
    if (q->json || form == EXPORT_JSON) {
        struct json_out j = json_out_to(&a->out);
        json_out_object(&j);
        report_records_json(&j, &records);
        json_out_object_end(&j);
        json_out_end(&j);
    } else if (form == EXPORT_CSV) {
        report_records_csv(&a->out, &records);
    } else if (form == EXPORT_MARKDOWN) {
        report_records_markdown(&a->out, &records);
    } else {
        report_records(&a->out, &q->view, &records);
    }
}
