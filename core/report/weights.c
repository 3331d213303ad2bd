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
        if (item && !setting_number(&value, item, UNIT_PLAIN, any, e))
            return false;
        memcpy((char *)&found + fields[i].offset, &value, sizeof value);
    }
    const struct setting *types = settings_find_z(s, "weights.types");
    const struct setting *missing = settings_find_z(s, "weights.first_missing");
    const struct setting *quantized = settings_find_z(s, "weights.quantized");
    found.types = types ? types->value : STR_NONE;
    found.first_missing = missing ? missing->value : STR_NONE;
    if (quantized && !setting_switch(&found.quantized, quantized, e))
        return false;
    *w = found;
    return true;
}

enum verdict { EQUAL, HEAD_STORED_TWICE, DIFFERENT, UNTOLD };

static enum verdict compare(const struct weights_on_disk *w, const struct model *m,
                            const struct parameters *p)
{
    if (w->missing_files || w->quantized)
        return UNTOLD;
    if (w->parameters == p->total)
        return EQUAL;
    bool tied = model_has(m, FEATURE_TIED);
    return tied && w->parameters == p->total + m->vocab * m->hidden ? HEAD_STORED_TWICE : DIFFERENT;
}

static void put_difference(struct buf *b, const struct weights_on_disk *w, const struct model *m,
                           const struct parameters *p)
{
    bool more = w->parameters > p->total;
    switch (compare(w, m, p)) {
    case EQUAL:
        buf_put_z(b, "as the configuration says");
        return;
    case HEAD_STORED_TWICE:
        buf_put_z(b, "as the configuration says, the tied head stored a second time");
        return;
    case DIFFERENT:
        put_grouped(b, more ? w->parameters - p->total : p->total - w->parameters);
        buf_printf(b, " %s than the configuration gives", more ? "more" : "fewer");
        return;
    case UNTOLD:
        buf_put_z(b, "quantized, so that stored elements are not parameters");
        return;
    }
    __builtin_trap();
}

void report_weights(struct buf *out, const struct view *v, const struct weights_on_disk *w,
                    const struct model *m, const struct parameters *p)
{
    if (!w->files && !w->missing_files)
        return;
    struct buf b = buf_in(out->arena);
    if (w->missing_files) {
        uint64_t named = w->missing_files + w->files;
        buf_printf(&b, "on disk: %llu of the %llu files that the index names are missing (",
                   (unsigned long long)w->missing_files, (unsigned long long)named);
        put_plain(&b, w->first_missing);
        buf_printf(&b, "%s)", w->missing_files > 1 ? " first" : "");
    } else {
        buf_put_z(&b, "on disk: ");
        put_grouped(&b, w->parameters);
        buf_printf(&b, " %s in %llu tensors (%.*s), ", w->quantized ? "elements" : "parameters",
                   (unsigned long long)w->tensors, STR_ARGS(w->types));
        put_bytes(&b, w->bytes);
        buf_put_z(&b, "; ");
        put_difference(&b, w, m, p);
    }
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

void report_weights_json(struct json_out *j, const struct weights_on_disk *w, const struct model *m,
                         const struct parameters *p)
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
    json_out_field_bool(j, "quantized", w->quantized);
    json_out_key(j, "as_configured");
    if (compare(w, m, p) == UNTOLD)
        json_out_null(j);
    else
        json_out_bool(j, compare(w, m, p) != DIFFERENT);
    json_out_object_end(j);
}
