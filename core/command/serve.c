// `fathom serve`: what an inference server makes of a card.
#include "core/report/serve.h"
#include "core/command/command.h"

bool serve_answer(struct answer *a, const struct query *q, struct error *e)
{
    struct serve_story s;
    if (!serve_read(&s.request, q->arena, q->settings, e))
        return false;
    server_of(&s.server, &s.request);
    s.change = server_starts(&s.server) ? (struct serve_change){0} : serve_remedy_of(&s.request);
    a->negative = !server_starts(&s.server);
    if (!q->json) {
        report_serve(&a->out, &q->view, &s);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_serve_json(&j, &s);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
