// `fathom show`: the model and the machine of a request side by side, before anything is simulated.
#include "core/command/command.h"
#include "core/hardware/hardware.h"
#include "core/model/model.h"
#include "core/report/report.h"

struct pair {
    struct model model;
    struct parameters parameters;
    struct hardware hardware;
};

static void show_json(struct buf *out, const struct query *q, const struct pair *p)
{
    struct json_out j = json_out_to(out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_model_json(&j, &p->model, &p->parameters);
    json_out_key(&j, "hardware");
    report_hardware_json(&j, &p->hardware);
    json_out_object_end(&j);
    json_out_end(&j);
}

bool show_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct pair p;
    if (!model_from_settings(&p.model, q->arena, q->settings, e) ||
        !parameters_of(&p.parameters, q->arena, &p.model, e) ||
        !hardware_from_settings(&p.hardware, q->arena, q->settings, e))
        return false;
    if (q->json) {
        show_json(&a->out, q, &p);
        return true;
    }
    report_model(&a->out, &q->view, &p.model, &p.parameters);
    buf_char(&a->out, '\n');
    report_hardware(&a->out, &q->view, &p.hardware);
    buf_char(&a->out, '\n');
    report_weights_beside_memory(&a->out, &q->view, &p.model, &p.parameters, &p.hardware);
    return true;
}
