// `fathom emit`: a job's files, with what is predicted of its memory in their comments.
#include "core/emit/emit.h"
#include "core/command/command.h"
#include "core/step/predict.h"

struct emission {
    struct job job;
    struct emit_files files;
    struct prediction prediction;
    bool predicted;
    struct str sentence;
};

// The step that predict means, where that is a matter of choice.
static bool choose_recipe(struct settings *s, const char *recipe, struct error *e)
{
    const struct command *c = command_find(STR("predict"));
    if (!command_takes(c, STR("recipe")) || settings_find_z(s, "recipe"))
        return true;
    return settings_add(s, (struct setting){STR("recipe"), str_from(recipe), STR("--for")}, e);
}

// Why nothing is predicted, or NULL. Settings that predict does not take change memory all the
// same.
static const char *unpredictable(struct arena *a, const struct settings *s, const struct target *t,
                                 struct str task)
{
    static const char memory[] = "model gpu context strategy precision batch accum sp cp tp ep "
                                 "checkpointing reshard offload nvme optimizer loss expandable";
    const struct command *c = command_find(STR("predict"));
    bool recipes = command_takes(c, STR("recipe"));
    bool rl = str_is(task, "grpo") || str_is(task, "capacity");
    bool modelled = t->accelerate ? str_is(task, "sft") : recipes && rl;
    struct words names = words_of(memory, ' ');
    const struct setting *loss = settings_find_z(s, "loss");
    if (!modelled)
        return "the training step of this task and framework is not modelled yet";
    if (!recipes && loss && !str_is(loss->value, "full"))
        return "this framework's own chunked loss is not modelled yet";
    struct setting recipe = {STR("recipe"), str_from(t->recipe), STR("--for")};
    struct error ignored = {0};
    if (recipes && !settings_find_z(s, "recipe") &&
        !setting_check(setting_def_find(recipe.key), &recipe, &ignored))
        return "the training step of this framework is not modelled yet";
    while (words_next(&names))
        if (settings_find(s, names.word) && !command_takes(c, names.word))
            return str_z(a, str_format(a, "predict takes no %.*s yet", STR_ARGS(names.word)));
    return NULL;
}

static bool copy_taken(struct settings *out, const struct settings *s, struct error *e)
{
    const struct command *c = command_find(STR("predict"));
    for (ptrdiff_t i = 0; i < s->count; i++) {
        bool taken = command_takes(c, s->items[i].key) || setting_is_document(s->items[i].key);
        if (taken && !settings_add(out, s->items[i], e))
            return false;
    }
    return true;
}

static void say_peak(struct emission *m, struct arena *a)
{
    const struct prediction *p = &m->prediction;
    struct str reserved = bytes_text(a, p->reserved_bytes), limit = bytes_text(a, p->limit_bytes);
    struct str allocated = bytes_text(a, p->allocated_bytes);
    // Measured runs back torch's own fully_shard; Accelerate makes other units of the head.
    const char *doubt =
        job_is(&m->job, IS_FSDP, 0) ? " Not measured under this framework's FSDP." : "";
    m->sentence =
        p->fits ? str_format(a,
                             "Predicted peak: %.*s reserved, %.*s allocated, of the %.*s that "
                             "torch may take.%s",
                             STR_ARGS(reserved), STR_ARGS(allocated), STR_ARGS(limit), doubt)
                : str_format(a, "Predicted not to fit into the %.*s that torch may take.",
                             STR_ARGS(limit));
}

// A plan that cannot be predicted is still written, and says so.
static bool predict_job(struct emission *m, struct arena *a, const struct settings *s,
                        const struct target *t, struct error *e)
{
    struct settings taken = settings_in(a);
    struct plan *plan = NEW(a, struct plan, 1);
    struct error reason = {0};
    const char *why = unpredictable(a, s, t, job_text(&m->job, "task"));
    if (!copy_taken(&taken, s, e) || !choose_recipe(&taken, t->recipe, e))
        return false;
    if (!why && plan_from_settings(plan, a, &taken, &reason) &&
        predict(&m->prediction, a, plan, &reason)) {
        m->predicted = true;
        say_peak(m, a);
        return true;
    }
    if (!why && reason.code != ERROR_UNSUPPORTED) {
        *e = reason;
        return false;
    }
    m->sentence = str_format(a, "Peak not predicted: %s.", why ? why : reason.message);
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

static void print_json(struct buf *out, const struct query *q, const struct emission *m)
{
    struct json_out j = json_out_to(out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
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
    const struct setting *target = settings_find_z(q->settings, "for");
    const struct setting *around = settings_find_z(q->settings, "around");
    if (!target)
        return FAIL(e, BAD_INPUT, STR("--for"), "emit needs a framework, such as --for accelerate");
    bool slurm = str_is(target->value, "slurm");
    if (around && !slurm)
        return FAIL(e, BAD_INPUT, around->where, "around says what a Slurm job runs: --for slurm");
    const struct target *inner =
        target_find(slurm ? (around ? around->value : STR("accelerate")) : target->value);
    if (!job_from_settings(&m->job, q->arena, q->settings, e) || !emit_check(&m->job, e) ||
        !predict_job(m, q->arena, q->settings, inner, e))
        return false;
    job_fact(&m->job, "predicted", m->sentence);
    if (!emit_files(&m->files, &m->job, e) || !attach_files(a, q, m, e))
        return false;
    a->negative = m->predicted && !m->prediction.fits;
    if (q->json)
        print_json(&a->out, q, m);
    return true;
}
