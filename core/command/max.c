// `fathom max`: the largest context of one configuration, or of many.
#include "core/overview/max.h"
#include "core/command/command.h"
#include "core/report/predict.h"

// The setting whose sizes are compared: sp, or cp where that is a list or alone.
static bool choose_sizes(const struct setting **sizes, const struct query *q, struct error *e)
{
    const struct setting *sp = settings_find_z(q->settings, "sp");
    const struct setting *cp = settings_find_z(q->settings, "cp");
    bool sp_list = sp && str_cut(sp->value, ',').found;
    bool cp_list = cp && str_cut(cp->value, ',').found;
    if (sp_list && cp_list)
        return FAIL(e, BAD_INPUT, cp->where, "sp is a list already; compare one of them at a time");
    *sizes = cp_list || !sp ? cp : sp;
    return true;
}

// One variant a size; without the setting, one that changes nothing.
static bool read_sizes(struct sweep *s, const struct query *q, struct error *e)
{
    const struct setting *sizes = NULL;
    struct setting *items;
    if (!choose_sizes(&sizes, q, e))
        return false;
    s->varies = "sp";
    if (!sizes) {
        s->variants = NEW(q->arena, struct variant, 1);
        s->variant_count = 1;
        return true;
    }
    if (!list_split(&items, &s->variant_count, q->arena, sizes, e))
        return false;
    s->varies = setting_def_find(sizes->key)->name;
    s->variant_count = list_drop_repeated(items, s->variant_count);
    s->variants = NEW(q->arena, struct variant, s->variant_count);
    for (ptrdiff_t i = 0; i < s->variant_count; i++)
        s->variants[i] = (struct variant){
            items[i].value, str_format(q->arena, "%s=%.*s", s->varies, STR_ARGS(items[i].value))};
    return true;
}

static bool read_format(enum report_format *format, const struct query *q, struct error *e)
{
    const struct setting *item = settings_find_z(q->settings, "format");
    if (item && str_is(item->value, "html"))
        return FAIL(e, BAD_INPUT, item->where, "'max' writes text, markdown or csv, not html");
    if (item && q->json)
        return FAIL(e, BAD_INPUT, item->where, "%s", JSON_AND_FORMAT);
    *format = !item                             ? FORMAT_TEXT
              : str_is(item->value, "markdown") ? FORMAT_MARKDOWN
              : str_is(item->value, "csv")      ? FORMAT_CSV
                                                : FORMAT_TEXT;
    return true;
}

static void answer_json(struct answer *a, const struct query *q, const struct max_story *s)
{
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    if (s->sweep->cell_count == 1)
        report_max_json(&j, s);
    else
        report_max_cells_json(&j, s);
    json_out_object_end(&j);
    json_out_end(&j);
}

static void answer_text(struct answer *a, const struct query *q, const struct max_story *s,
                        enum report_format format)
{
    switch (format) {
    case FORMAT_MARKDOWN:
        report_max_markdown(&a->out, s);
        return;
    case FORMAT_CSV:
        report_max_csv(&a->out, s);
        return;
    case FORMAT_TEXT:
    case FORMAT_HTML:
        if (s->sweep->cell_count == 1)
            report_max(&a->out, &q->view, s);
        else
            report_max_table(&a->out, &q->view, s);
    }
}

static void attach_map(struct answer *a, const struct query *q, const struct max_story *s)
{
    const struct setting *path = settings_find_z(q->settings, "svg");
    if (!path)
        return;
    struct buf svg = buf_in(q->arena);
    report_max_svg(&svg, s);
    answer_attach(a, q->arena, (struct attachment){path->value, buf_str(&svg)});
}

static bool nothing_fits(const struct sweep *s)
{
    for (ptrdiff_t i = 0; i < s->cell_count; i++)
        if (s->cells[i].possible && s->cells[i].capacity.fits_context)
            return false;
    return true;
}

static bool job_last(const struct job **job, const struct query *q,
                     const struct capacity_request *r, const struct sweep *s, struct error *e)
{
    struct capacity_request last = *r;
    struct job *found = NEW(q->arena, struct job, 1);
    for (ptrdiff_t i = 0; i < s->cell_count; i++)
        if (s->cells[i].possible)
            last.settings = &s->cells[i].settings;
    *job = found;
    return capacity_grid(&last.grid, *q->arena, &last, e) &&
           capacity_job(found, q->arena, &last, grid_length(&last.grid, 0), e);
}

bool max_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct sweep *sweep = NEW(q->arena, struct sweep, 1);
    struct max_story s = {.sweep = sweep};
    struct capacity_request r = {
        .settings = q->settings, .grid = {.step = GRID_DEFAULT_STEP}, .safe = true};
    const struct setting *explain = settings_find_z(q->settings, "explain");
    enum report_format format;
    if (!read_format(&format, q, e) || (explain && !setting_switch(&s.explain, explain, e)) ||
        !grid_parse(&r.grid, settings_find_z(q->settings, "grid"), e) ||
        !sweep_read(sweep, q->arena, q->settings, e) || !read_sizes(sweep, q, e) ||
        !sweep_run(sweep, q->arena, q->runner, &r, e))
        return false;
    if (!job_last(&s.job, q, &r, sweep, e))
        return false;
    a->negative = nothing_fits(sweep);
    attach_map(a, q, &s);
    if (q->json)
        answer_json(a, q, &s);
    else
        answer_text(a, q, &s, format);
    return true;
}
