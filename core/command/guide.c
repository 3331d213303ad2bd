// `fathom guide`: for lengths, models and machines, the simplest configuration that fits.
#include "core/overview/guide.h"
#include "core/command/command.h"

static void answer_json(struct answer *a, const struct query *q, const struct guide *g)
{
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_guide_json(&j, g);
    json_out_object_end(&j);
    json_out_end(&j);
}

static bool nothing_fits(const struct guide *g)
{
    for (ptrdiff_t i = 0; i < g->sweep.cell_count; i++)
        if (g->sweep.cells[i].possible && g->sweep.cells[i].capacity.fits_context)
            return false;
    return true;
}

bool guide_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct guide *g = NEW(q->arena, struct guide, 1);
    const struct setting *item = settings_find_z(q->settings, "format");
    struct str format = item ? item->value : STR("text");
    if (item && q->json)
        return FAIL(e, BAD_INPUT, item->where, "%s", JSON_AND_FORMAT);
    if (!guide_make(g, q->arena, q->settings, q->runner, e))
        return false;
    a->negative = nothing_fits(g);
    if (q->json)
        answer_json(a, q, g);
    else if (str_is(format, "csv"))
        report_guide_csv(&a->out, g);
    else if (str_is(format, "markdown"))
        report_guide_page(&(struct page){&a->out, &page_markdown}, g);
    else if (str_is(format, "html"))
        report_guide_page(&(struct page){&a->out, &page_html}, g);
    else
        report_guide(&a->out, &q->view, g);
    return true;
}
