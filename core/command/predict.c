// `fathom predict`: one configuration, and where it does not fit, what would help.
#include "core/report/predict.h"
#include "core/command/command.h"
#include "core/overview/max.h"
#include "core/predict/lengths.h"
#include "core/predict/varied.h"
#include "core/probe/outcome.h"
#include "core/report/snapshot.h"
#include "core/trace/text.h"

// The simulated history once more, for what the prediction does not keep of it.
static bool play_again(struct replay_result *r, const struct query *q,
                       const struct predict_story *s, struct replay_request request,
                       struct error *e)
{
    struct allocator_options o = allocator_options_default(s->job->torch_minor);
    o.expandable = s->job->expandable;
    o.limited = true;
    o.limit_bytes = s->prediction.limit_bytes;
    request.options = o;
    return replay_run(r, q->arena, &request, e);
}

// The history with the driver's events, as a recording would have it.
struct recorded {
    struct trace log;
    struct replay_result result;
};

static bool record(struct recorded *r, const struct query *q, const struct predict_story *s,
                   const struct trace *history, struct error *e)
{
    r->log = trace_in(q->arena);
    for (uint16_t i = 0; i < history->stream_count; i++) {
        uint16_t stream;
        if (!trace_stream(&stream, &r->log, history->streams[i], e))
            return false;
    }
    struct replay_request request = {.trace = history, .log = &r->log};
    return play_again(&r->result, q, s, request, e);
}

static bool attach_trace(struct answer *a, const struct query *q, const struct predict_story *s,
                         const struct history *h, struct error *e)
{
    const struct setting *path = settings_find_z(q->settings, "trace");
    struct recorded r;
    if (!path)
        return true;
    if (!record(&r, q, s, &h->trace, e))
        return false;
    struct buf text = buf_in(q->arena);
    trace_write(&r.log, &text);
    answer_attach(a, q->arena, (struct attachment){path->value, buf_str(&text)});
    return true;
}

// Nothing where the whole step's time is not known.
static bool find_streams(struct activity **streams, const struct query *q,
                         const struct predict_story *s, struct error *e)
{
    const struct step_time *time = &s->prediction.time;
    if (time->unknown || time->beside || !time->bound_by)
        return true;
    *streams = NEW(q->arena, struct activity, 1);
    (*streams)->seconds = time->seconds;
    return predict_streams(*streams, *q->arena, s->job, e);
}

static bool attach_timeline(struct answer *a, const struct query *q, const struct predict_story *s,
                            const struct history *h, struct error *e)
{
    const struct setting *path = settings_find_z(q->settings, "timeline");
    if (!path)
        return true;
    struct replay_series *series = NEW(q->arena, struct replay_series, 1);
    struct replay_result r;
    if (!play_again(&r, q, s, (struct replay_request){.trace = &h->trace, .series = series}, e))
        return false;
    struct activity *streams = NULL;
    if (!find_streams(&streams, q, s, e))
        return false;
    struct buf out = buf_in(q->arena);
    struct str machine = machine_text(q->arena, &s->job->hardware);
    struct str title =
        str_format(q->arena, "%.*s, %llu tokens on %.*s", STR_ARGS(str_short(s->job->model.name)),
                   (unsigned long long)s->job->context, STR_ARGS(machine));
    struct replayed replayed = {h, &r, series, s->prediction.limit_bytes, streams};
    if (str_ends(path->value, STR(".json")))
        report_timeline_json(&out, &replayed);
    else
        report_timeline(&out, &replayed, str_z(q->arena, title));
    answer_attach(a, q->arena, (struct attachment){path->value, buf_str(&out)});
    return true;
}

// Gives the history's blocks other owners: the last that is done with it.
static bool attach_snapshot(struct answer *a, const struct query *q, const struct predict_story *s,
                            struct history *h, struct error *e)
{
    const struct setting *path = settings_find_z(q->settings, "snapshot");
    struct recorded r;
    if (!path)
        return true;
    struct snapshot_owners owners = snapshot_owners_of(h, q->arena);
    if (!record(&r, q, s, &h->trace, e))
        return false;
    struct buf out = buf_in(q->arena);
    struct recording recording = {&r.log, r.result.allocator, h, &owners, s->job->expandable};
    report_snapshot(&out, &recording);
    answer_attach(a, q->arena, (struct attachment){path->value, buf_str(&out)});
    return true;
}

static bool attach_history(struct answer *a, const struct query *q, const struct predict_story *s,
                           struct error *e)
{
    static const char *const asked[] = {"trace", "timeline", "snapshot"};
    struct history h;
    bool any = false;
    for (ptrdiff_t i = 0; i < COUNT_OF(asked); i++)
        any = any || settings_find_z(q->settings, asked[i]);
    return !any ||
           (predict_marked_history(&h, q->arena, s->job, e) && attach_trace(a, q, s, &h, e) &&
            attach_timeline(a, q, s, &h, e) && attach_snapshot(a, q, s, &h, e));
}

// A trial of this configuration, if the host found one in a store.
static const char *const measured_keys[] = {"outcome",         "step_us", "steps", "reserved_bytes",
                                            "allocated_bytes", "gpu",     "as",    "one_gpu",
                                            "versions",        "log"};

static const struct setting *measured(const struct query *q, const char *key)
{
    struct arena scratch = *q->arena;
    return settings_find(q->settings, str_format(&scratch, "measured.%s", key));
}

static struct str measured_text(const struct query *q, const char *key)
{
    const struct setting *item = measured(q, key);
    return item ? item->value : STR_NONE;
}

// "reserved 77.62 GiB"; of a trial that died, what the steps before had.
static void put_measured_peak(struct buf *b, const struct query *q, bool fits)
{
    const struct setting *reserved = measured(q, "reserved_bytes"), *steps = measured(q, "steps");
    uint64_t bytes, count;
    if (!reserved || unit_parse(&bytes, UNIT_PLAIN, reserved->value) != UNIT_OK)
        return;
    bool died_later = !fits && steps && unit_parse(&count, UNIT_PLAIN, steps->value) == UNIT_OK;
    if (died_later)
        buf_printf(b, " after %llu step%s", (unsigned long long)count, count == 1 ? "" : "s");
    buf_put_z(b, died_later ? " with " : ", reserved ");
    put_gib(b, bytes);
    buf_put_z(b, died_later ? " reserved" : "");
    const struct setting *time = measured(q, "step_us");
    uint64_t us;
    if (time && unit_parse(&us, UNIT_PLAIN, time->value) == UNIT_OK)
        buf_printf(b, ", a step in %.3f s", (double)us / 1e6);
}

// ", played on one NVIDIA H200 as A100-80G, torch 2.11.0+cu130, transformers 5.17.0"
static void put_measured_place(struct buf *b, const struct query *q)
{
    struct str gpu = measured_text(q, "gpu"), as = measured_text(q, "as");
    struct str versions = measured_text(q, "versions");
    bool played = measured(q, "one_gpu") != NULL, placed = played || gpu.n;
    buf_put_z(b, played ? ", played on one " : gpu.n ? ", on " : "");
    put_plain(b, played && !gpu.n ? STR("GPU") : gpu);
    buf_put_z(b, !as.n ? "" : placed ? " as " : ", as ");
    put_plain(b, as);
    buf_put_z(b, versions.n ? ", " : "");
    put_plain(b, versions);
}

static void put_measured(struct buf *out, const struct query *q)
{
    struct str name = measured_text(q, "outcome"), log = measured_text(q, "log");
    struct buf b = buf_in(q->arena);
    enum outcome outcome;
    if (!outcome_from_name(&outcome, name))
        return;
    buf_printf(&b, "measured: %s", outcome_rows[outcome].title);
    put_measured_peak(&b, q, outcome == OUTCOME_FITS);
    put_measured_place(&b, q);
    buf_put_z(&b, " (");
    put_plain(&b, log);
    buf_put_z(&b, ")");
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&b), 2, q->view.width);
}

static void put_measured_json(struct json_out *j, const struct query *q)
{
    uint64_t bytes;
    if (!measured(q, "outcome"))
        return;
    json_out_key(j, "measured");
    json_out_object(j);
    for (ptrdiff_t i = 0; i < COUNT_OF(measured_keys); i++) {
        const struct setting *item = measured(q, measured_keys[i]);
        if (item && unit_parse(&bytes, UNIT_PLAIN, item->value) == UNIT_OK)
            json_out_field_u64(j, measured_keys[i], bytes);
        else if (item && str_is(item->value, "true"))
            json_out_field_bool(j, measured_keys[i], true);
        else if (item)
            json_out_field_str(j, measured_keys[i], item->value);
    }
    json_out_object_end(j);
}

// What sharding is for: the same training with all of the model on every GPU.
static bool predict_unsharded(struct predict_story *s, const struct query *q, struct error *e)
{
    struct settings *whole = NEW(q->arena, struct settings, 1);
    struct job *job = NEW(q->arena, struct job, 1);
    struct prediction *p = NEW(q->arena, struct prediction, 1);
    struct error refusal = {0};
    *whole = settings_in(q->arena);
    if (!s->explain || !job_is_sharded(s->job) || s->job->loss == LOSS_POLICY)
        return true;
    for (ptrdiff_t i = 0; i < s->job->given->count; i++)
        if (!settings_add(whole, s->job->given->items[i], e))
            return false;
    struct str words = STR("recipe=hf strategy=ddp precision=autocast offload=off reshard=on "
                           "sp=1 cp=1 memory-limit=4096GiB");
    if (!settings_change(whole, words, e))
        return false;
    if (!job_from_settings(job, q->arena, whole, &refusal))
        return true;
    struct arena scratch = *q->arena;
    if (predict(p, &scratch, job, &refusal))
        s->unsharded_bytes = p->allocated_bytes;
    return true;
}

bool predict_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct job *job = NEW(q->arena, struct job, 1);
    struct predict_story *s = NEW(q->arena, struct predict_story, 1);
    const struct setting *explain = settings_find_z(q->settings, "explain");
    s->job = job;
    if (!job_from_settings(job, q->arena, q->settings, e) || !lengths_check(job, e) ||
        !varied_read(job, q->arena, e) || (explain && !setting_switch(&s->explain, explain, e)) ||
        !predict_with_range(&s->prediction, q->arena, job, e) ||
        (s->prediction.verdict.grade == GRADE_NO &&
         !remedies_find(&s->remedies, q->arena, job, e)) ||
        !predict_unsharded(s, q, e) || !attach_history(a, q, s, e))
        return false;
    a->negative = s->prediction.verdict.grade == GRADE_NO;
    if (!q->json) {
        report_predict(&a->out, &q->view, s);
        put_measured(&a->out, q);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, job->settings);
    report_predict_json(&j, s);
    put_measured_json(&j, q);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
