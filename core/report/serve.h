// What a server makes of a card, as text and as JSON.
#ifndef FATHOM_REPORT_SERVE_H
#define FATHOM_REPORT_SERVE_H

#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/serve/serve.h"

struct serve_story {
    struct serve_request request;
    struct server_state server;
    struct serve_change change; // where it does not start
};

void report_serve(struct buf *out, const struct view *v, const struct serve_story *s);

// Writes its fields into an open object.
void report_serve_json(struct json_out *j, const struct serve_story *s);

#endif
