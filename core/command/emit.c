// `fathom emit`: a job's files, with what is predicted of its memory in their comments.
#include "core/emit/emit.h"
#include "core/command/command.h"
#include "core/predict/predict.h"

struct emission {
    struct draft draft;
    struct emit_files files;
    struct prediction prediction;
    bool predicted;
    struct str sentence;
};

// Settings whose values every target writes into its files, or has fixed. None is left to a
// recipe's default, which is that of the framework where nothing is written.
static const char *const written_texts[] = {"precision", "batch", "accum",     "sp",
                                            "cp",        "torch", "optimizer", "offload"};

static const struct {
    const char *setting;
    uint64_t trait;
} written_switches[] = {
    {"checkpointing", IS_CHECKPOINTING},
    {"reshard", IS_RESHARD},
    {"expandable", IS_EXPANDABLE},
};

static bool add_unless_given(struct settings *s, const char *name, struct str value,
                             struct error *e)
{
    return settings_find_z(s, name) ||
           settings_add(s, (struct setting){str_from(name), value, STR("--for")}, e);
}

// Trinity's trainer is FSDP on one GPU too, and its loss is no setting.
static bool add_written(struct settings *s, const struct draft *j, const struct target *t,
                        struct error *e)
{
    bool trinity = draft_is(j, IS_TRINITY, 0);
    bool wraps_one = trinity && !draft_is(j, IS_FSDP, 0);
    struct setting recipe = {STR("recipe"), str_from(t->recipe), STR("--for")};
    struct setting strategy = {STR("strategy"), STR("fsdp1"), STR("--for")};
    if (!settings_set(s, recipe, e) || (wraps_one && !settings_set(s, strategy, e)) ||
        !add_unless_given(s, "strategy", draft_text(j, "strategy"), e) ||
        (!trinity && !add_unless_given(s, "loss", draft_text(j, "loss"), e)))
        return false;
    for (ptrdiff_t i = 0; i < COUNT_OF(written_texts); i++)
        if (!add_unless_given(s, written_texts[i], draft_text(j, written_texts[i]), e))
            return false;
    for (ptrdiff_t i = 0; i < COUNT_OF(written_switches); i++) {
        bool on = draft_is(j, written_switches[i].trait, 0);
        if (!add_unless_given(s, written_switches[i].setting, on ? STR("on") : STR("off"), e))
            return false;
    }
    return true;
}

// Why nothing is predicted, or NULL. Settings that predict does not take change memory all the
// same.
static const char *unpredictable(const struct draft *j, const struct target *t)
{
    static const char memory[] = "model gpu context strategy precision batch accum sp cp tp ep "
                                 "checkpointing reshard offload nvme optimizer loss expandable";
    const struct command *c = command_find(STR("predict"));
    struct setting recipe = {STR("recipe"), str_from(t->recipe), STR("--for")};
    struct words names = words_of(memory, ' ');
    struct error ignored = {0};
    if (!draft_is(j, t->accelerate ? IS_SFT : IS_GRPO, 0))
        return "the training step of this task and framework is not modelled yet";
    if (!setting_check(setting_def_find(recipe.key), &recipe, &ignored))
        return "the training step of this framework is not modelled yet";
    if (t == &target_trl && draft_is(j, IS_FSDP | IS_ACCUMULATES, 0))
        return "TRL's step with sync_each_batch is not modelled yet";
    while (words_next(&names))
        if (settings_find(j->settings, names.word) && !command_takes(c, names.word))
            return str_z(j->arena,
                         str_format(j->arena, "predict takes no %.*s yet", STR_ARGS(names.word)));
    return NULL;
}

static bool copy_taken(struct settings *out, const struct draft *j, struct error *e)
{
    const struct command *c = command_find(STR("predict"));
    const struct settings *s = j->settings;
    for (ptrdiff_t i = 0; i < s->count; i++) {
        struct str key = s->items[i].key;
        bool taken = command_takes(c, key) || setting_is_document(key);
        taken &= !(draft_is(j, IS_TRINITY, 0) && str_is(key, "loss"));
        if (taken && !settings_add(out, s->items[i], e))
            return false;
    }
    return true;
}

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
    const char *doubt = doubt_of(&m->draft);
    bool full_trl = target_of(&m->draft) == &target_trl && !draft_is(&m->draft, IS_CHUNKED, 0);
    m->sentence =
        p->fits ? str_format(a,
                             "Predicted peak: %.*s reserved, %.*s allocated, of the %.*s that "
                             "torch may take.%s%s",
                             STR_ARGS(reserved), STR_ARGS(allocated), STR_ARGS(limit), doubt,
                             full_trl ? " TRL's loss over all logits is not measured." : "")
                : str_format(a, "Predicted not to fit into the %.*s that torch may take.",
                             STR_ARGS(limit));
}

// A job that cannot be predicted is still written, and says so.
static bool predict_draft(struct emission *m, struct arena *a, const struct target *t,
                          struct error *e)
{
    struct settings taken = settings_in(a);
    struct job *job = NEW(a, struct job, 1);
    struct error reason = {0};
    const char *why = unpredictable(&m->draft, t);
    if (!copy_taken(&taken, &m->draft, e) || !add_written(&taken, &m->draft, t, e))
        return false;
    if (!why && job_from_settings(job, a, &taken, &reason) &&
        predict(&m->prediction, a, job, &reason)) {
        m->predicted = true;
        say_peak(m, a);
        return true;
    }
    if (!why && reason.code != ERROR_UNSUPPORTED && reason.code != ERROR_BAD_INPUT) {
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
    if (!draft_from_settings(&m->draft, q->arena, q->settings, e) || !emit_check(&m->draft, e) ||
        !predict_draft(m, q->arena, inner, e))
        return false;
    draft_fact(&m->draft, "predicted", m->sentence);
    if (!emit_files(&m->files, &m->draft, e) || !attach_files(a, q, m, e))
        return false;
    a->negative = m->predicted && !m->prediction.fits;
    if (q->json)
        print_json(&a->out, q, m);
    return true;
}
