// Walking the tables of a target.
#include "core/emit/emit.h"

static const struct writer *const writers[TARGETS] = {
    [FOR_ACCELERATE] = &writer_accelerate,
    [FOR_DEEPSPEED] = &writer_deepspeed,
    [FOR_TRL] = &writer_trl,
    [FOR_TRINITY] = &writer_trinity,
    [FOR_VERL] = &writer_verl,
    [FOR_SLIME] = &writer_slime,
    [FOR_TRANSFORMERS] = &writer_accelerate,
    [FOR_AXOLOTL] = &writer_axolotl,
    [FOR_LLAMAFACTORY] = &writer_llamafactory,
};

static bool any_refuses(const struct refusal *rows, ptrdiff_t count, const struct draft *j,
                        struct error *e)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const struct refusal *r = &rows[i];
        struct str why;
        if (!draft_is(j, r->when, r->unless))
            continue;
        why = draft_expand(j, str_from(r->why), EXPAND_NOTE);
        FAIL(e, BAD_INPUT, str_format(j->arena, "--%s", r->setting), "%.*s", STR_ARGS(why));
        return true;
    }
    return false;
}

// The nodes of a Slurm job: those of Ray's cluster, where a target has one.
static void slurm_facts(struct draft *j)
{
    enum { CPUS_PER_GPU = 8 };
    bool ray = draft_is(j, IS_RAY, 0);
    uint64_t beside = j->rollout_gpus + j->teacher_gpus, gpus = j->job->hardware.gpus_per_node;
    bool own_nodes = ray && draft_is(j, IS_NODES, 0);
    uint64_t nodes = j->job->hardware.nodes + (own_nodes ? beside / gpus : 0);
    gpus += own_nodes ? 0 : beside;
    draft_count(j, "job_nodes", nodes);
    draft_count(j, "job_gpus", gpus);
    draft_count(j, "job_cpus", gpus * CPUS_PER_GPU);
    j->traits |= own_nodes ? IS_OVER_NODES : 0;
}

bool emit_check(const struct draft *j, struct error *e)
{
    const struct writer *w = writers[j->job->target];
    struct words generating =
        words_of("rollout rollout-tp rollout-memory samples prompt response", ' ');
    while (!draft_is(j, IS_ROLLOUT, 0) && words_next(&generating)) {
        const struct setting *item = settings_find(j->settings, generating.word);
        bool masked = str_is(generating.word, "prompt") && draft_is(j, IS_COMPARED, 0);
        if (item && !masked)
            return FAIL(e, BAD_INPUT, item->where, "nothing is generated in this task");
    }
    return !any_refuses(w->refusals, w->refusal_count, j, e);
}

bool emit_files(struct emit_files *files, struct draft *j, struct error *e)
{
    const struct writer *w = writers[j->job->target], *slurm = &writer_slurm;
    *files = (struct emit_files){.arena = j->arena};
    if ((w->prepare && !w->prepare(j, e)) ||
        (j->job->in_slurm && any_refuses(slurm->refusals, slurm->refusal_count, j, e)))
        return false;
    if (j->job->in_slurm)
        slurm_facts(j);
    w->emit(files, j);
    if (j->job->in_slurm)
        slurm->emit(files, j);
    return true;
}

void emit_add(struct emit_files *files, const char *name, struct str content)
{
    files->items = arena_grow(files->arena, files->items, sizeof *files->items, files->count,
                              &files->capacity);
    files->items[files->count++] = (struct emit_file){str_from(name), content};
}

static void take_row(struct node *n, const struct draft *j, const struct row *r)
{
    static const enum node_kind kinds[] = {
        [ROW_LITERAL] = NODE_LITERAL, [ROW_TEXT] = NODE_TEXT, [ROW_TRAIT] = NODE_LITERAL};
    if (r->note) {
        struct str note = draft_expand(j, str_from(r->note), EXPAND_NOTE);
        n->note = n->note.n ? str_format(j->arena, "%.*s\n%.*s", STR_ARGS(n->note), STR_ARGS(note))
                            : note;
    }
    if (r->kind == ROW_NOTE)
        return;
    n->kind = kinds[r->kind];
    n->value = r->kind == ROW_TRAIT ? (draft_is(j, r->trait, 0) ? STR("true") : STR("false"))
                                    : draft_expand(j, str_from(r->value), EXPAND_PLAIN);
}

void rows_into(struct node *root, const struct draft *j, const struct row *rows, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        if (draft_is(j, rows[i].when, rows[i].unless))
            take_row(document_at(root, j->arena, str_from(rows[i].path)), j, &rows[i]);
}

// A text that begins as a comment, or one indented line of it, has facts as they are.
static bool is_comment(struct str text)
{
    struct str bare = str_trim(text);
    return str_starts(text, STR("#")) || (str_starts(bare, STR("#")) && !str_cut(text, '\n').found);
}

void lines_into(struct buf *out, const struct draft *j, const struct line *lines, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        if (!draft_is(j, lines[i].when, lines[i].unless))
            continue;
        struct str text = str_from(lines[i].text);
        buf_put(out, draft_expand(j, text, is_comment(text) ? EXPAND_NOTE : EXPAND_SHELL));
        buf_char(out, '\n');
    }
}

void emit_yaml(struct emit_files *files, const struct draft *j, const char *name,
               const struct row *rows, ptrdiff_t count)
{
    struct buf out = buf_in(j->arena);
    struct node *root = document_in(j->arena);
    rows_into(root, j, rows, count);
    document_yaml(&out, root);
    emit_add(files, name, buf_str(&out));
}

void emit_json(struct emit_files *files, const struct draft *j, const char *name,
               const struct row *rows, ptrdiff_t count)
{
    struct buf out = buf_in(j->arena);
    struct node *root = document_in(j->arena);
    rows_into(root, j, rows, count);
    document_json(&out, root);
    emit_add(files, name, buf_str(&out));
}

void emit_script(struct emit_files *files, const struct draft *j, const char *name,
                 const struct line *lines, ptrdiff_t count)
{
    struct buf out = buf_in(j->arena);
    lines_into(&out, j, lines, count);
    emit_add(files, name, buf_str(&out));
}
