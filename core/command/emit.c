// `fathom emit`: a job's files, with what is predicted of its memory in their comments.
#include "core/emit/emit.h"
#include "core/command/command.h"
#include "core/predict/predict.h"

struct emission {
    struct job job;
    struct draft draft;
    struct emit_files files;
    struct prediction prediction;
    bool predicted;
    struct str sentence;
};

// What stands in the files and is not behind the prediction; the first that holds is said.
static const struct {
    uint64_t when, unless;
    const char *text;
} doubts[] = {
    // Measured runs back torch's own fully_shard; Accelerate makes other units of the head.
    {IS_FSDP, 0, " Not measured under this framework's FSDP."},
    // Accelerate's YAML has no key for it; 500 million elements (deepspeed/runtime/zero/config.py).
    {IS_ZERO, IS_CONFIG,
     " DeepSpeed's default bucket, up to 0.93 GiB more, is not in it; --for deepspeed writes a "
     "smaller one."},
    {IS_ZERO3, IS_SEVERAL, " Stage 3 on one GPU is not measured."},
};

static const char *doubt_of(const struct draft *j)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(doubts); i++)
        if (draft_is(j, doubts[i].when, doubts[i].unless))
            return doubts[i].text;
    return "";
}

static void say_peak(struct emission *m, struct arena *a)
{
    const struct prediction *p = &m->prediction;
    struct str reserved = bytes_text(a, p->reserved_bytes), limit = bytes_text(a, p->limit_bytes);
    struct str allocated = bytes_text(a, p->allocated_bytes);
    m->sentence =
        p->fits ? str_format(a,
                             "Predicted peak: %.*s reserved, %.*s allocated, of the %.*s that "
                             "torch may take.%s",
                             STR_ARGS(reserved), STR_ARGS(allocated), STR_ARGS(limit),
                             doubt_of(&m->draft))
                : str_format(a, "Predicted not to fit into the %.*s that torch may take.",
                             STR_ARGS(limit));
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
        buf_put(out, files->items[i].content);
    }
}

static void list_files(struct buf *out, struct str folder, const struct emission *m)
{
    for (ptrdiff_t i = 0; i < m->files.count; i++)
        buf_printf(out, "  %.*s/%.*s\n", STR_ARGS(folder), STR_ARGS(m->files.items[i].name));
    buf_printf(out, "%.*s\n", STR_ARGS(m->sentence));
}

static void print_json(struct buf *out, const struct emission *m)
{
    struct json_out j = json_out_to(out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, m->job.settings);
    if (m->predicted) {
        json_out_field_bool(&j, "fits", m->prediction.fits);
    }
    if (m->predicted && m->prediction.fits) {
        json_out_key(&j, "peak");
        json_out_object(&j);
        json_out_field_u64(&j, "allocated_bytes", m->prediction.allocated_bytes);
        json_out_field_u64(&j, "reserved_bytes", m->prediction.reserved_bytes);
        json_out_object_end(&j);
    }
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

bool emit_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct emission *m = NEW(q->arena, struct emission, 1);
    if (!settings_find_z(q->settings, "for"))
        return FAIL(e, BAD_INPUT, STR("--for"), "emit needs a framework, such as --for accelerate");
    if (!job_resolve(&m->job, q->arena, q->settings, e) ||
        !draft_from_job(&m->draft, q->arena, &m->job, e) || !emit_check(&m->draft, e) ||
        !predict_files(m, q->arena, e))
        return false;
    m->sentence = str_join(q->arena, m->sentence, draft_aside(&m->draft));
    draft_fact(&m->draft, "predicted", m->sentence);
    if (!emit_files(&m->files, &m->draft, e) || !attach_files(a, q, m, e))
        return false;
    a->negative = m->predicted && !m->prediction.fits;
    if (q->json)
        print_json(&a->out, m);
    return true;
}
