// `fathom split`: GPUs between teacher, student training and rollout.
#include "core/overview/split.h"
#include "core/command/command.h"
#include "core/emit/division.h"

// The launch files of the best division, where --emit asks for them.
static bool attach_files(struct answer *a, const struct query *q, const struct emit_files *files,
                         struct error *e)
{
    const struct setting *into = settings_find_z(q->settings, "emit");
    const struct setting *force = settings_find_z(q->settings, "force");
    bool replace = false;
    if (force && !setting_switch(&replace, force, e))
        return false;
    struct str folder = into->value;
    while (folder.n > 1 && str_ends(folder, STR("/")))
        folder = str_slice(folder, 0, folder.n - 1);
    if (!folder.n)
        return FAIL(e, BAD_INPUT, into->where, "no folder is named");
    a->folder = folder;
    a->keep_existing = !replace;
    struct str shown = str_plain(q->arena, folder);
    for (ptrdiff_t i = 0; i < files->count; i++) {
        const struct emit_file *f = &files->items[i];
        struct str path = str_format(q->arena, "%.*s/%.*s", STR_ARGS(folder), STR_ARGS(f->name));
        answer_attach(a, q->arena, (struct attachment){path, f->content});
        if (!q->json)
            buf_printf(&a->out, "  %.*s/%.*s\n", STR_ARGS(shown), STR_ARGS(f->name));
    }
    return true;
}

static void files_json(struct json_out *j, const struct emit_files *files)
{
    json_out_key(j, "files");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < files->count; i++) {
        json_out_object(j);
        json_out_field_str(j, "name", files->items[i].name);
        json_out_field_str(j, "content", files->items[i].content);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

bool split_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct split_request *r = NEW(q->arena, struct split_request, 1);
    struct split_result *found = NEW(q->arena, struct split_result, 1);
    struct split_story s = {r, found};
    struct emit_files files = {0};
    bool writes = settings_find_z(q->settings, "emit") != NULL;
    if (!split_read(r, q->arena, q->settings, e) || !split_find(found, r, e) ||
        (writes && !division_files(&files, r, found, q->settings, e)))
        return false;
    if (!q->json)
        report_split(&a->out, &q->view, &s);
    if (writes && !attach_files(a, q, &files, e))
        return false;
    if (!q->json)
        return true;
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_split_json(&j, &s);
    if (writes)
        files_json(&j, &files);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
