// See kernels.h. A file for each card, with a line for each constant.
#include "host/trials/kernels.h"

#include <stdlib.h>

#include "core/hardware/hardware.h"
#include "core/report/kernels.h"
#include "host/files/file.h"
#include "host/files/folder.h"
#include "host/files/shipped.h"
#include "host/files/stream.h"
#include "host/formats/json_tree.h"
#include "host/system/interrupts.h"
#include "host/trials/keeper.h"

enum { TIMEOUT_MS = 900000, GRACE_MS = 5000, MOST_FILE = 1 << 16, MOST_LINES = 64 << 20 };

// XDG_DATA_HOME/fathom/kernels/CARD, or that of HOME/.local/share; empty where neither is set.
static struct str path_of(struct arena *a, const char *card)
{
    struct str data = str_from(getenv("XDG_DATA_HOME")), home = str_from(getenv("HOME"));
    if (!data.n && home.n)
        data = path_join(a, home, STR(".local/share"));
    return data.n ? str_format(a, "%.*s/fathom/kernels/%s", STR_ARGS(data), card) : STR_NONE;
}

// ------------------------------------------------------------------ found again

static bool read_card(struct settings *s, const char *card, struct error *e)
{
    struct arena *a = s->arena;
    struct str path = path_of(a, card), text;
    struct settings lines = settings_in(a);
    if (!path.n || path_kind(*a, path) != PATH_FILE)
        return true;
    if (!file_read_part(&text, a, path, (struct file_part){0, MOST_FILE}, e) ||
        !settings_read(&lines, text, '\n', path, e))
        return false;
    for (ptrdiff_t i = 0; i < lines.count; i++) {
        struct setting line = lines.items[i];
        line.key = str_format(a, "kernels.%s.%.*s", card, STR_ARGS(line.key));
        if (!settings_set(s, line, e))
            return false;
    }
    return true;
}

// What cannot be read as a machine is the prediction's to refuse.
bool kernels_resolve(struct settings *s, struct error *e)
{
    const struct setting *gpus = settings_find_z(s, "gpu");
    struct str rest = gpus ? gpus->value : STR_NONE;
    while (rest.n) {
        struct str_cut cut = str_cut(rest, ',');
        struct setting one = {STR("gpu"), cut.head, STR("--gpu")};
        struct error ignored = {0};
        struct hardware *h = NEW(s->arena, struct hardware, 1);
        if (hardware_from_spec(h, s->arena, &one, &ignored) && !h->custom &&
            !read_card(s, h->card.name, e))
            return false;
        rest = cut.tail;
    }
    return true;
}

// ------------------------------------------------------------------ measured

struct measuring {
    struct arena *arena;
    struct str python, folder, script, lines, log;
    struct benchmark *benchmark; // once the card is known
    struct str card;             // as torch calls it
};

static bool run_script(struct measuring *m, const struct interrupts *interrupts, struct error *e)
{
    struct arena *a = m->arena;
    const char *arguments[] = {str_z(a, m->python), "-u", str_z(a, m->script), str_z(a, m->lines),
                               NULL};
    const char *environment[] = {NULL};
    struct keeper_job job = {.arguments = arguments,
                             .environment = environment,
                             .log = m->log,
                             .timeout_ms = TIMEOUT_MS,
                             .grace_ms = GRACE_MS,
                             .interrupts = interrupts->fd};
    struct keeper_watch watch = {0};
    struct keeper_result r;
    if (!keeper_run(&r, a, &job, &watch, e))
        return HINT(e, "--python names a Python that has torch");
    if (r.end == KEEPER_EXITED && r.status == 0)
        return true;
    FAIL(e, CHILD, m->log, "the measurement did not come to its end");
    return HINT(e, "--python names a Python that has torch and sees a GPU");
}

static bool add_line(struct measuring *m, struct str line, struct error *e)
{
    struct arena scratch = *m->arena;
    struct value v;
    struct str kind;
    if (!str_starts(line, STR("{")))
        return true;
    if (!json_tree(&v, &scratch, line, m->lines, e))
        return false;
    if (value_str(&kind, value_get(&v, "fathom")) && str_is(kind, "card")) {
        struct str name;
        const struct gpu *card =
            value_str(&name, value_get(&v, "name")) ? gpu_find_nvml(name) : NULL;
        if (!card)
            return FAIL(e, UNSUPPORTED, m->lines,
                        "the catalogue of cards does not have this one, so nothing is kept of it");
        m->benchmark = benchmark_new(m->arena, card);
        return true;
    }
    if (m->benchmark)
        benchmark_add(m->benchmark, &v);
    return true;
}

static bool read_lines(struct measuring *m, struct error *e)
{
    struct str text;
    if (!file_read_part(&text, m->arena, m->lines, (struct file_part){0, MOST_LINES}, e))
        return false;
    while (text.n) {
        struct str_cut cut = str_cut(text, '\n');
        if (!add_line(m, cut.head, e))
            return false;
        text = cut.tail;
    }
    return true;
}

static bool keep(struct str *path, struct measuring *m, const struct measured_constants *found,
                 struct error *e)
{
    struct buf text = buf_in(m->arena);
    *path = path_of(m->arena, found->card);
    if (!path->n)
        return FAIL(e, IO, STR_NONE, "neither HOME nor XDG_DATA_HOME says where to keep this");
    benchmark_write(&text, found);
    return folder_make(*m->arena, str_cut_last(*path, '/').head, e) &&
           file_write(*m->arena, *path, buf_str(&text), FILE_REPLACE, e);
}

static void tell(struct answer *a, const struct query *q, const struct measured_constants *m,
                 struct str path)
{
    if (q->json) {
        struct json_out j = json_out_to(&a->out);
        json_out_object(&j);
        report_kernels_json(&j, m);
        json_out_field_str(&j, "kept", path);
        json_out_object_end(&j);
        json_out_end(&j);
        return;
    }
    report_kernels(&a->out, &q->view, m);
    buf_put_z(&a->out, "predictions for this card use these from now on; they are kept in ");
    put_plain(&a->out, path);
    buf_char(&a->out, '\n');
}

static struct str given(const struct query *q, const char *name, struct str otherwise)
{
    const struct setting *item = settings_find_z(q->settings, name);
    return item ? item->value : otherwise;
}

bool kernels_command(struct answer *a, const struct query *q, const struct probe_console *console,
                     struct error *e)
{
    struct measuring m = {.arena = q->arena,
                          .python = given(q, "python", STR("python3")),
                          .folder = given(q, "log-dir", STR("logs"))};
    struct measured_constants *found = NEW(q->arena, struct measured_constants, 1);
    const struct setting *engine = settings_find_z(q->settings, "engine");
    struct str path;
    if (engine && !str_is(engine->value, "torch"))
        return FAIL(e, BAD_INPUT, engine->where, "kernels are measured by --engine torch");
    m.script = path_join(q->arena, m.folder, STR("share/torch_kernels.py"));
    m.lines = path_join(q->arena, m.folder, STR("kernels.jsonl"));
    m.log = path_join(q->arena, m.folder, STR("kernels.log"));
    console->line(console->context, STR("measuring kernels, about a minute and a half\n"));
    struct interrupts interrupts = interrupts_catch();
    bool ok = shipped_write(*q->arena, path_join(q->arena, m.folder, STR("share")), e) &&
              run_script(&m, &interrupts, e);
    interrupts_release(&interrupts);
    if (!ok || !read_lines(&m, e))
        return false;
    if (!m.benchmark || !benchmark_conclude(found, m.benchmark))
        return FAIL(e, CHILD, m.lines, "too little was measured to say anything");
    if (!keep(&path, &m, found, e))
        return false;
    tell(a, q, found, path);
    return true;
}
