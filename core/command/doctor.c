// `fathom doctor`: why a run died, and beside it what the simulated run does.
#include "core/report/doctor.h"
#include "core/command/command.h"

// More than any card: what a job would take if nothing stopped it.
#define NO_LIMIT "memory-limit=4096GiB"

static bool predict_job(struct predict_story **story, const struct query *q, const char *changes,
                        struct error *e)
{
    struct job *job = NEW(q->arena, struct job, 1);
    struct settings *s = NEW(q->arena, struct settings, 1);
    *story = NEW(q->arena, struct predict_story, 1);
    (*story)->job = job;
    *s = settings_in(q->arena);
    for (ptrdiff_t i = 0; i < q->settings->count; i++)
        if (!settings_add(s, q->settings->items[i], e))
            return false;
    return settings_change(s, str_from(changes), e) && job_from_settings(job, q->arena, s, e) &&
           predict(&(*story)->prediction, q->arena, job, e) &&
           remedies_find(&(*story)->remedies, q->arena, job, e);
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
    if (described && (!predict_job(&s->job, q, "", e) || !predict_job(&s->need, q, NO_LIMIT, e)))
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
