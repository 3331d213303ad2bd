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

// What the log says of settings; those of an evaluation are asked for where it died in one.
static const struct said_row {
    enum doctor_said said;
    const char *setting;
    enum doctor_phase at;
} said_rows[] = {
    {DOCTOR_SAID_BATCH, "batch", DOCTOR_PHASE_UNKNOWN},
    {DOCTOR_SAID_ACCUMULATION, "accum", DOCTOR_PHASE_UNKNOWN},
    {DOCTOR_SAID_EVAL_BATCH, "eval-batch", DOCTOR_PHASE_EVALUATION},
    {DOCTOR_SAID_EVAL_SIZE, "eval-size", DOCTOR_PHASE_EVALUATION},
};

static bool is_said(const struct doctor_result *r, const struct said_row *row)
{
    enum doctor_phase phase = r->cause ? r->cause->phase : DOCTOR_PHASE_UNKNOWN;
    return r->said[row->said] > 0 && (!row->at || row->at == phase);
}

// "batch=2 accum=8" of what the settings leave open, by the first rows.
static const char *settings_of_log(struct doctor_story *s, const struct query *q, ptrdiff_t rows)
{
    struct buf changes = buf_in(q->arena), shown = buf_in(q->arena), differ = buf_in(q->arena);
    for (ptrdiff_t i = 0; i < rows; i++) {
        const struct said_row *row = &said_rows[i];
        const struct setting *given = settings_find_z(q->settings, row->setting);
        long long said = (long long)s->result.said[row->said];
        if (!is_said(&s->result, row))
            continue;
        if (!given) {
            buf_printf(&changes, "%s=%lld ", row->setting, said);
            buf_printf(&shown, "%s--%s %lld", shown.n ? " " : "", row->setting, said);
        } else if (!str_equal(given->value, str_format(q->arena, "%lld", said))) {
            buf_printf(&differ, "The log says --%s %lld, the settings %.*s.\n", row->setting, said,
                       STR_ARGS(given->value));
        }
    }
    s->from_log = buf_str(&shown);
    s->differences = buf_str(&differ);
    return str_z(q->arena, buf_str(&changes));
}

// The ranks that a step's batch is divided over, where each rank has sequences of its own.
static void compare_ranks(struct doctor_story *s, struct arena *a)
{
    const struct job *job = s->job->job;
    const int64_t *said = s->result.said;
    int64_t total = said[DOCTOR_SAID_TOTAL_BATCH], each = said[DOCTOR_SAID_BATCH];
    int64_t times = said[DOCTOR_SAID_ACCUMULATION];
    bool alone = job->ulysses <= 1 && job->ring <= 1 && job->tensor <= 1 && job->pipeline <= 1 &&
                 !job_cuts_tensors(job);
    bool known = total > 0 && each > 0 && times > 0 && each < INT32_MAX && times < INT32_MAX;
    if (!alone || !known || total % (each * times) || total / (each * times) > INT32_MAX)
        return;
    long long ranks = (long long)(total / (each * times)), asked = (long long)job_ranks(job);
    if (ranks == asked)
        return;
    struct str line =
        str_format(a, "The log's %lld sequences a step are of %lld rank%s, and --gpu has %lld.\n",
                   (long long)total, ranks, ranks == 1 ? "" : "s", asked);
    s->differences = str_join(a, s->differences, line);
}

static bool predict_both(struct doctor_story *s, const struct query *q, const char *changes,
                         struct error *e)
{
    struct str without_limit = str_format(q->arena, "%s" NO_LIMIT, changes);
    return predict_job(&s->job, q, changes, e) &&
           predict_job(&s->need, q, str_z(q->arena, without_limit), e);
}

// A job that does not go with what the log says is predicted without it: first without the
// evaluation, which not every recipe has.
static bool predict_run(struct doctor_story *s, const struct query *q, struct error *e)
{
    bool done = false;
    for (ptrdiff_t rows = COUNT_OF(said_rows); rows > 0 && !done; rows -= 2) {
        struct error refused = {0};
        const char *changes = settings_of_log(s, q, rows);
        done = s->from_log.n && predict_both(s, q, changes, &refused);
    }
    if (!done) {
        settings_of_log(s, q, COUNT_OF(said_rows));
        s->from_log = STR_NONE;
        done = predict_both(s, q, "", e);
    }
    if (done)
        compare_ranks(s, q->arena);
    return done;
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
    if (described && !predict_run(s, q, e))
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
