// {"error": {"code", "message", "where", "hint"}}; the last two only where there is something to
// say.
#include "core/error_json.h"

#include "core/base/json_out.h"

void error_json(struct buf *out, const struct error *e)
{
    struct json_out j = json_out_to(out);
    json_out_object(&j);
    json_out_key(&j, "error");
    json_out_object(&j);
    json_out_field_str(&j, "code", str_from(error_code_name(e->code)));
    json_out_field_str(&j, "message", str_from(e->message));
    if (e->where[0])
        json_out_field_str(&j, "where", str_from(e->where));
    if (e->hint[0])
        json_out_field_str(&j, "hint", str_from(e->hint));
    json_out_object_end(&j);
    json_out_object_end(&j);
    json_out_end(&j);
}
