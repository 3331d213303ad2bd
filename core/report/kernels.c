// See kernels.h.
#include "core/report/kernels.h"

static struct str shown(struct arena *a, const struct measured_constant *c, double value)
{
    return str_format(a, "%.*f%s", c->digits, value / c->scale, c->measure);
}

void report_kernels(struct buf *out, const struct view *v, const struct measured_constants *m)
{
    static const struct column columns[] = {
        {.title = ""}, {.title = "measured", .right = true}, {.title = "assumed", .right = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    buf_printf(out, "%s\n", m->card);
    for (int i = 0; i < m->count; i++) {
        table_cell_z(&t, m->rows[i].title);
        table_cell(&t, shown(out->arena, &m->rows[i], m->rows[i].measured));
        table_cell(&t, shown(out->arena, &m->rows[i], m->rows[i].assumed));
    }
    table_print(&t, out, v);
}

void report_kernels_json(struct json_out *j, const struct measured_constants *m)
{
    json_out_field_str(j, "card", str_from(m->card));
    json_out_key(j, "constants");
    json_out_array(j);
    for (int i = 0; i < m->count; i++) {
        json_out_object(j);
        json_out_field_str(j, "name", str_from(m->rows[i].name));
        json_out_key(j, "measured");
        json_out_double(j, m->rows[i].measured);
        json_out_key(j, "assumed");
        json_out_double(j, m->rows[i].assumed);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}
