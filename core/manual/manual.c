// What help, man page and completions share.
#include "core/manual/manual.h"

void put_usage(struct buf *b, const struct command *c)
{
    buf_printf(b, "fathom %s", c->name);
    if (c->operand)
        buf_printf(b, " [%s]", setting_def_find(str_from(c->operand))->values); // never a choice
    buf_put_z(b, " [options]");
}

void answer_text(struct answer *a, const struct query *q, struct str text)
{
    if (!q->json) {
        buf_put(&a->out, text);
        return;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_field_str(&j, "text", text);
    json_out_object_end(&j);
    json_out_end(&j);
}
