// `fathom gpus`: the catalogue of cards, or one machine. "auto" has been replaced by what NVML
// found before the question comes here.
#include "core/command/command.h"
#include "core/hardware/hardware.h"
#include "core/report/report.h"

static void catalogue_json(struct buf *out)
{
    struct json_out j = json_out_to(out);
    json_out_object(&j);
    json_out_key(&j, "gpus");
    json_out_array(&j);
    const struct gpu *g;
    for (ptrdiff_t i = 0; (g = gpu_at(i)); i++)
        report_gpu_json(&j, g);
    json_out_array_end(&j);
    json_out_object_end(&j);
    json_out_end(&j);
}

bool gpus_answer(struct answer *a, const struct query *q, struct error *e)
{
    if (!settings_find_z(q->settings, "gpu")) {
        if (q->json)
            catalogue_json(&a->out);
        else
            report_gpus(&a->out, &q->view);
        return true;
    }
    struct hardware h;
    if (!hardware_from_settings(&h, q->arena, q->settings, e))
        return false;
    if (!q->json) {
        report_hardware(&a->out, &q->view, &h);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    json_out_key(&j, "hardware");
    report_hardware_json(&j, &h);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
