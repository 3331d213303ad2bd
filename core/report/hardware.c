// Machines as text and JSON.
#include "core/report/report.h"

// In the unit that the column's title names.
static struct str figure_text(struct arena *a, enum unit_kind kind, struct figure f)
{
    if (!f.value)
        return STR("-");
    struct buf b = buf_in(a);
    if (kind == UNIT_FLOPS)
        put_flops(&b, f.value);
    else if (kind == UNIT_SPEED)
        put_speed(&b, f.value);
    else
        put_unit(&b, kind, f.value);
    return buf_str(&b);
}

void report_gpus(struct buf *out, const struct view *v)
{
    static const struct column columns[] = {
        {"GPU"},
        {"memory", .right = true},
        {"context", .right = true, .priority = 3},
        {"GB/s", .right = true, .priority = 1},
        {"bf16 TFLOP/s", .right = true, .priority = 1},
        {"fp8", .right = true, .priority = 4},
        {"link GB/s", .right = true, .priority = 2},
        {"link", .priority = 5},
        {"memory as seen in", .priority = 6},
    };
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    const struct gpu *g;
    for (ptrdiff_t i = 0; (g = gpu_at(i)); i++) {
        table_cell_z(&t, g->name);
        table_cell(&t, figure_text(t.arena, UNIT_BYTES, g->memory));
        table_cell(&t, figure_text(t.arena, UNIT_BYTES, g->context));
        table_cell(&t, figure_text(t.arena, UNIT_SPEED, g->bandwidth));
        table_cell(&t, figure_text(t.arena, UNIT_FLOPS, g->bf16));
        table_cell(&t, figure_text(t.arena, UNIT_FLOPS, g->fp8));
        table_cell(&t, figure_text(t.arena, UNIT_SPEED, g->link));
        table_cell_z(&t, g->link_kind);
        table_cell_z(&t, g->memory.source);
    }
    table_print(&t, out, v);
    buf_put_z(out, "'fathom gpus NAME' says where each number comes from.\n");
}

static void gpu_fields_json(struct json_out *j, const struct gpu *g)
{
    for (ptrdiff_t i = 0; i < gpu_field_count; i++) {
        struct figure f = gpu_figure(g, &gpu_fields[i]);
        json_out_key(j, gpu_fields[i].json_out_key);
        if (f.value)
            json_out_u64(j, f.value);
        else
            json_out_null(j);
    }
    json_out_key(j, "sources");
    json_out_object(j);
    for (ptrdiff_t i = 0; i < gpu_field_count; i++) {
        struct figure f = gpu_figure(g, &gpu_fields[i]);
        if (f.value)
            json_out_field_str(j, gpu_fields[i].key, str_from(f.source));
    }
    json_out_object_end(j);
}

void report_gpu_json(struct json_out *j, const struct gpu *g)
{
    json_out_object(j);
    json_out_field_str(j, "name", str_from(g->name));
    json_out_field_str(j, "title", str_from(g->title));
    gpu_fields_json(j, g);
    json_out_key(j, "link_kind");
    if (g->link_kind)
        json_out_str(j, str_from(g->link_kind));
    else
        json_out_null(j);
    json_out_key(j, "compute_capability");
    if (g->capability)
        json_out_double(j, g->capability / 10.0);
    else
        json_out_null(j);
    json_out_field_u64(j, "gpus_per_node", g->per_node);
    json_out_object_end(j);
}

static void print_figures(struct buf *out, const struct view *v, const struct gpu *g)
{
    static const struct column columns[] = {{"  per card"},
                                            {"value", .right = true},
                                            {"where it comes from", .priority = 1, .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    for (ptrdiff_t i = 0; i < gpu_field_count; i++) {
        const struct gpu_field *field = &gpu_fields[i];
        struct figure f = gpu_figure(g, field);
        struct buf value = buf_in(t.arena);
        if (f.value)
            put_unit(&value, field->kind, f.value);
        else
            buf_put_z(&value, "unknown");
        table_cell(&t, str_format(t.arena, "  %s", field->text));
        table_cell(&t, buf_str(&value));
        table_cell_z(&t, f.value ? f.source : "");
    }
    table_print(&t, out, v);
}

void report_hardware(struct buf *out, const struct view *v, const struct hardware *h)
{
    struct arena *a = out->arena;
    uint64_t gpus = hardware_gpus(h);
    struct str count = h->nodes > 1
                           ? str_format(a, "%llu nodes of %llu x ", (unsigned long long)h->nodes,
                                        (unsigned long long)h->gpus_per_node)
                           : str_format(a, "%llu x ", (unsigned long long)h->gpus_per_node);
    put_ink(out, v, INK_BOLD, str_join(a, count, str_from(h->card.name)));
    struct buf title = buf_in(a);
    buf_put_z(&title, h->card.title);
    if (h->card.link_kind)
        buf_printf(&title, ", %s", h->card.link_kind);
    buf_put_z(&title, ", ");
    put_bytes(&title, h->card.memory.value * gpus);
    buf_put_z(&title, " in all");
    buf_char(out, '\n');
    if (h->spread)
        buf_printf(&title, "; a node is taken to have %llu GPUs, 1x%llux%s is a single one",
                   (unsigned long long)h->gpus_per_node, (unsigned long long)gpus, h->card.name);
    buf_wrapped(out, buf_str(&title), 2, v->width);
    buf_char(out, '\n');
    print_figures(out, v, &h->card);
}

void report_hardware_json(struct json_out *j, const struct hardware *h)
{
    json_out_object(j);
    json_out_field_u64(j, "nodes", h->nodes);
    json_out_field_u64(j, "gpus_per_node", h->gpus_per_node);
    json_out_field_u64(j, "gpus", hardware_gpus(h));
    json_out_field_u64(j, "memory_bytes", h->card.memory.value * hardware_gpus(h));
    json_out_key(j, "card");
    report_gpu_json(j, &h->card);
    json_out_object_end(j);
}
