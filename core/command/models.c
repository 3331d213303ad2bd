// `fathom models`: the catalogue, or one model in full.
#include "core/command/command.h"
#include "core/model/model.h"
#include "core/report/report.h"

static bool catalogue(struct answer *a, const struct query *q, struct error *e)
{
    if (!q->json)
        return report_models(&a->out, &q->view, e);
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "models");
    if (!report_models_json(&j, q->arena, e))
        return false;
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}

static bool no_model(const struct query *q, struct error *e)
{
    const struct setting *first = &q->settings->items[0];
    return FAIL(e, BAD_INPUT, first->where, "%.*s says nothing without a model",
                STR_ARGS(str_short(first->key)));
}

bool models_answer(struct answer *a, const struct query *q, struct error *e)
{
    if (!settings_find_z(q->settings, "model"))
        return q->settings->count ? no_model(q, e) : catalogue(a, q, e);
    struct model m;
    struct parameters p;
    if (!model_from_settings(&m, q->arena, q->settings, e) || !parameters_of(&p, q->arena, &m, e))
        return false;
    // What is on disk is compared with the model as configured, not as changed by options.
    bool changed = settings_find_z(q->settings, "layers") || settings_find_z(q->settings, "tied");
    struct weights_on_disk w = {0};
    if (!changed && !weights_from_settings(&w, q->settings, e))
        return false;
    if (!q->json) {
        report_model(&a->out, &q->view, &m, &p);
        report_weights(&a->out, &q->view, &w, &m, &p);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_model_json(&j, &m, &p);
    report_weights_json(&j, &w, &m, &p);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
