// The weights found in a model folder, laid beside what the configuration says. The host counts
// them and passes the figures as settings "weights.*".
#include <string.h>

#include "core/report/report.h"

bool weights_from_settings(struct weights_on_disk *w, const struct settings *s, struct error *e)
{
    static const struct {
        const char *key;
        ptrdiff_t offset;
    } fields[] = {
        {"weights.parameters", offsetof(struct weights_on_disk, parameters)},
        {"weights.tensors", offsetof(struct weights_on_disk, tensors)},
        {"weights.bytes", offsetof(struct weights_on_disk, bytes)},
        {"weights.files", offsetof(struct weights_on_disk, files)},
        {"weights.missing_files", offsetof(struct weights_on_disk, missing_files)},
    };
    struct weights_on_disk found = {0};
    for (ptrdiff_t i = 0; i < COUNT_OF(fields); i++) {
        const struct setting *item = settings_find_z(s, fields[i].key);
        uint64_t value = 0;
        struct range any = {0, UINT64_MAX};
        if (item && !setting_number(&value, item, UNIT_COUNT, any, e))
            return false;
        memcpy((char *)&found + fields[i].offset, &value, sizeof value);
    }
    const struct setting *types = settings_find_z(s, "weights.types");
    found.types = types ? types->value : STR_NONE;
    *w = found;
    return true;
}

// Why files and configuration may differ, where that can be told.
static void put_difference(struct buf *b, const struct weights_on_disk *w, const struct model *m,
                           const struct parameters *p)
{
    if (w->missing_files) {
        buf_printf(b, "%llu files of the index are not there, so the count is incomplete",
                   (unsigned long long)w->missing_files);
    } else if (w->parameters == p->total) {
        buf_put_z(b, "as the configuration says");
    } else if (model_has(m, FEATURE_TIED) && w->parameters == p->total + m->vocab * m->hidden) {
        buf_put_z(b, "the tied head is stored a second time");
    } else {
        bool more = w->parameters > p->total;
        put_grouped(b, more ? w->parameters - p->total : p->total - w->parameters);
        buf_printf(b, " %s than the configuration gives", more ? "more" : "fewer");
    }
}

void report_weights(struct buf *out, const struct view *v, const struct weights_on_disk *w,
                    const struct model *m, const struct parameters *p)
{
    if (!w->files && !w->missing_files)
        return;
    struct buf b = buf_in(out->arena);
    buf_put_z(&b, "on disk: ");
    put_grouped(&b, w->parameters);
    buf_printf(&b, " parameters in %llu tensors (%.*s), ", (unsigned long long)w->tensors,
               STR_ARGS(w->types));
    put_bytes(&b, w->bytes);
    buf_put_z(&b, "; ");
    put_difference(&b, w, m, p);
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

void report_weights_json(struct json_out *j, const struct weights_on_disk *w)
{
    if (!w->files && !w->missing_files)
        return;
    json_out_key(j, "on_disk");
    json_out_object(j);
    json_out_field_u64(j, "parameters", w->parameters);
    json_out_field_u64(j, "tensors", w->tensors);
    json_out_field_u64(j, "bytes", w->bytes);
    json_out_field_u64(j, "files", w->files);
    json_out_field_u64(j, "missing_files", w->missing_files);
    json_out_field_str(j, "types", w->types);
    json_out_object_end(j);
}
