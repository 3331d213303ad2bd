// `fathom doctor`: why a run died, and beside it what the simulated run does.
#include "core/report/doctor.h"
#include "core/command/command.h"

// More than any card: what a job would take if nothing stopped it.
#define NO_LIMIT (UINT64_C(1) << 50)

static bool predict_plan(struct predict_story **story, const struct query *q, uint64_t limit_bytes,
                         struct error *e)
{
    struct job *job = NEW(q->arena, struct job, 1);
    struct predict_story *s = NEW(q->arena, struct predict_story, 1);
    s->job = job;
    if (!job_from_settings(job, q->arena, q->settings, e))
        return false;
    job->limit_bytes = limit_bytes ? limit_bytes : job->limit_bytes;
    if (!predict(&s->prediction, q->arena, job, e) || !predict_remedies(s, q->arena, e))
        return false;
    *story = s;
    return true;
}

bool doctor_answer(struct answer *a, const struct query *q, struct error *e)
{
    const struct setting *file = settings_find_z(q->settings, "file");
    struct doctor_story *s = NEW(q->arena, struct doctor_story, 1);
    if (!file)
        return FAIL(e, BAD_INPUT, STR_NONE, "doctor needs a file: the log of a run");
    if (!q->log)
        return FAIL(e, UNSUPPORTED, file->where, "logs are read by the program, not the library");
    s->name = file->value;
    s->result = doctor_end(q->log, q->arena);
    bool described = q->settings->count > 1;
    if (described && (!predict_plan(&s->job, q, 0, e) || !predict_plan(&s->need, q, NO_LIMIT, e)))
        return false;
    a->negative = !s->result.cause;
    if (!q->json) {
        report_doctor(&a->out, &q->view, s);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_doctor_json(&j, s);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
