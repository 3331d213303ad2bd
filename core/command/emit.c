// `fathom emit`: a job's files, with what is predicted of its memory in their comments.
#include "core/emit/emit.h"
#include "core/command/command.h"
#include "core/predict/predict.h"
#include "core/report/predict.h"
#include "core/report/verdict.h"

struct emission {
    struct job job;
    struct draft draft;
    struct emit_files files;
    struct prediction prediction;
    bool predicted;
    struct str sentence;
};

// Accelerate's YAML has no key for DeepSpeed's bucket, whose default is 500 million elements
// (deepspeed/runtime/zero/config.py).
static void put_fit(struct buf *b, const struct prediction *p)
{
    buf_printf(b, "Predicted: %s. Peak ", grade_name(p->verdict.grade));
    put_bytes(b, p->reserved_bytes);
    buf_put_z(b, " reserved, ");
    put_bytes(b, p->allocated_bytes);
    buf_put_z(b, " allocated, of the ");
    put_bytes(b, p->limit_bytes);
    buf_put_z(b, " that torch may take.");
    if (p->verdict.grade != GRADE_TIGHT)
        return;
    buf_put_z(b, " Tight: ");
    put_tight_because(b, &p->verdict);
    buf_put_z(b, ".");
}

static void put_misfit(struct buf *b, const struct prediction *p)
{
    buf_put_z(b, "Predicted not to fit: it would need ");
    put_bytes(b, p->needs_bytes);
    buf_put_z(b, " of the ");
    put_bytes(b, p->limit_bytes);
    buf_put_z(b, " that torch may take.");
}

static void say_peak(struct emission *m, struct arena *a)
{
    const struct prediction *p = &m->prediction;
    struct buf b = buf_in(a);
    (p->fits ? put_fit : put_misfit)(&b, p);
    if (p->host_bytes) {
        buf_put_z(&b, " Host memory of a node: ");
        put_bytes(&b, p->host_bytes);
        buf_put_z(&b, p->verdict.host_is_short ? ", which it does not have." : ".");
    }
    if (!p->verdict.evidence.runs)
        buf_put_z(&b, " Not measured: jobs of this kind.");
    m->sentence = buf_str(&b);
}

// The job that is written is the one that is predicted. One that is not modelled is still written,
// and says so.
static bool predict_files(struct emission *m, struct arena *a, struct error *e)
{
    struct error reason = {0};
    struct job *job = &m->job;
    if (job_is_modelled(job, &reason)) {
        m->predicted = true;
        if (!predict(&m->prediction, a, job, e))
            return false;
        say_peak(m, a);
        return true;
    }
    m->sentence = str_format(a, "Peak not predicted: %s.", reason.message);
    return true;
}

static void print_files(struct buf *out, const struct emit_files *files)
{
    for (ptrdiff_t i = 0; i < files->count; i++) {
        buf_printf(out, "%s==> %.*s <==\n", i ? "\n" : "", STR_ARGS(files->items[i].name));
        put_plain_lines(out, files->items[i].content);
    }
}

static void list_files(struct buf *out, struct str folder, const struct emission *m)
{
    struct str shown = str_plain(out->arena, folder);
    for (ptrdiff_t i = 0; i < m->files.count; i++)
        buf_printf(out, "  %.*s/%.*s\n", STR_ARGS(shown), STR_ARGS(m->files.items[i].name));
    buf_printf(out, "%.*s\n", STR_ARGS(m->sentence));
    const struct setting *target = settings_find_z(m->job.given, "for");
    if (m->predicted && !m->prediction.fits && target)
        buf_printf(
            out,
            "'fathom plan --for %.*s' with this model, these GPUs and --global-batch N looks "
            "for a job that does.\n",
            STR_ARGS(target->value));
}

static void print_json(struct buf *out, const struct emission *m)
{
    struct json_out j = json_out_to(out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, m->job.settings);
    if (m->predicted) {
        json_out_field_bool(&j, "fits", m->prediction.fits);
        verdict_json(&j, &m->prediction.verdict);
    }
    if (m->predicted && m->prediction.fits)
        report_peak_json(&j, &m->prediction);
    json_out_field_str(&j, "predicted", m->sentence);
    json_out_key(&j, "files");
    json_out_array(&j);
    for (ptrdiff_t i = 0; i < m->files.count; i++) {
        json_out_object(&j);
        json_out_field_str(&j, "name", m->files.items[i].name);
        json_out_field_str(&j, "content", m->files.items[i].content);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    json_out_end(&j);
}

static bool attach_files(struct answer *a, const struct query *q, const struct emission *m,
                         struct error *e)
{
    const struct setting *into = settings_find_z(q->settings, "into");
    const struct setting *force = settings_find_z(q->settings, "force");
    bool replace = false;
    if (force && !setting_switch(&replace, force, e))
        return false;
    if (!into || str_is(into->value, "-")) {
        if (!q->json)
            print_files(&a->out, &m->files);
        return true;
    }
    struct str folder = into->value;
    while (folder.n > 1 && str_ends(folder, STR("/")))
        folder = str_slice(folder, 0, folder.n - 1);
    a->folder = folder;
    a->keep_existing = !replace;
    for (ptrdiff_t i = 0; i < m->files.count; i++) {
        const struct emit_file *f = &m->files.items[i];
        struct str path = str_format(q->arena, "%.*s/%.*s", STR_ARGS(folder), STR_ARGS(f->name));
        answer_attach(a, q->arena, (struct attachment){path, f->content});
    }
    if (!q->json)
        list_files(&a->out, folder, m);
    return true;
}

// How large the data is, files do not say; of the rest TRL's alone say when and how it evaluates.
static bool check_evaluation(const struct emission *m, struct error *e)
{
    const struct setting *batch = settings_find_z(m->job.given, "eval-batch"),
                         *logits = settings_find_z(m->job.given, "eval-logits");
    const struct setting *unsaid = m->job.keeps_logits ? logits : NULL;
    if (batch && m->job.target != FOR_TRL)
        unsaid = batch;
    return !unsaid || FAIL(e, BAD_INPUT, unsaid->where,
                           "what is written for %s says nothing of %s, so that it would be "
                           "predicted and not happen: leave it out",
                           target_defs[m->job.target].title,
                           unsaid == logits ? "metrics of logits" : "evaluation");
}

bool emit_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct emission *m = NEW(q->arena, struct emission, 1);
    if (!settings_find_z(q->settings, "for"))
        return FAIL(e, BAD_INPUT, STR("--for"), "emit needs a framework, such as --for accelerate");
    if (!job_resolve(&m->job, q->arena, q->settings, e) ||
        !draft_from_job(&m->draft, q->arena, &m->job, e) || !emit_check(&m->draft, e) ||
        !check_evaluation(m, e) || !predict_files(m, q->arena, e))
        return false;
    m->sentence = str_join(q->arena, m->sentence, draft_aside(&m->draft));
    draft_fact(&m->draft, "predicted", m->sentence);
    if (!emit_files(&m->files, &m->draft, e) || !attach_files(a, q, m, e))
        return false;
    a->negative = m->predicted && m->prediction.verdict.grade == GRADE_NO;
    if (q->json)
        print_json(&a->out, m);
    return true;
}
