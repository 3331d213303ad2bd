// Models as text and JSON.
#include "core/base/num.h"
#include "core/report/report.h"

struct precision {
    const char *name;
    const char *json_out_key;
    uint64_t bits;
};

static const struct precision precisions[] = {
    {"fp32", "fp32", 32},
    {"bf16", "bf16", 16},
    {"fp8 or int8", "fp8", 8},
    {"4-bit", "int4", 4},
};

static uint64_t bytes_in(const struct precision *p, uint64_t parameters)
{
    return u64_divide_up(parameters * (p->bits / 4), 2);
}

static bool load_row(struct model *m, struct parameters *p, struct arena *a,
                     const struct catalog_model *row, struct error *e)
{
    struct settings s = settings_in(a);
    struct setting item = {STR("model"), str_from(row->name), STR("catalogue")};
    return settings_add(&s, item, e) && model_from_settings(m, a, &s, e) &&
           parameters_of(p, a, m, e);
}

static struct str heads_text(struct arena *a, const struct model *m)
{
    if (model_has(m, FEATURE_MLA))
        return str_format(a, "%llu MLA", (unsigned long long)m->heads);
    return str_format(a, "%llu/%llu/%llu", (unsigned long long)m->heads,
                      (unsigned long long)m->kv_heads, (unsigned long long)m->head_dim);
}

static struct str experts_text(struct arena *a, const struct model *m)
{
    if (!model_has(m, FEATURE_EXPERTS))
        return STR("-");
    return str_format(a, "%llu of %llu", (unsigned long long)m->experts.per_token,
                      (unsigned long long)m->experts.count);
}

static void catalogue_row(struct table *t, const struct model *m, const struct parameters *p)
{
    struct arena *a = t->arena;
    table_cell(t, m->name);
    table_cell(t, grouped_text(a, p->total));
    table_cell(t, p->active == p->total ? STR("-") : grouped_text(a, p->active));
    table_cell(t, bytes_text(a, bytes_in(&precisions[1], p->total)));
    table_cell(t, str_format(a, "%llu", (unsigned long long)m->layers));
    table_cell(t, str_format(a, "%llu", (unsigned long long)m->hidden));
    table_cell(t, heads_text(a, m));
    table_cell(t, experts_text(a, m));
    struct str positions = tokens_text(a, m->max_position);
    table_cell(t, m->native.length
                      ? str_format(a, "%.*s of %.*s", STR_ARGS(tokens_text(a, m->native.length)),
                                   STR_ARGS(positions))
                      : positions);
}

static void print_variants(struct buf *out, const struct view *v)
{
    struct buf names = buf_in(out->arena);
    buf_put_z(&names, "Also known:");
    const struct catalog_model *row;
    for (ptrdiff_t i = 0; (row = catalog_model_at(i)); i++)
        if (row->like)
            buf_printf(&names, " %s", row->name);
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&names), 0, v->width);
}

bool report_models(struct buf *out, const struct view *v, struct error *e)
{
    static const struct column columns[] = {
        {"model"},
        {"parameters", .right = true},
        {"active", .right = true, .priority = 2},
        {"bf16", .right = true, .priority = 1},
        {"layers", .right = true, .priority = 4},
        {"hidden", .right = true, .priority = 4},
        {"heads/kv/dim", .right = true, .priority = 5},
        {"experts", .right = true, .priority = 6},
        {"positions", .right = true, .priority = 3},
    };
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    const struct catalog_model *row;
    for (ptrdiff_t i = 0; (row = catalog_model_at(i)); i++) {
        struct model m;
        struct parameters p;
        if (row->like)
            continue;
        if (!load_row(&m, &p, out->arena, row, e))
            return false;
        catalogue_row(&t, &m, &p);
    }
    table_print(&t, out, v);
    buf_put_z(out, "32k of 40k: trained for 32k tokens, with 40k positions\n");
    print_variants(out, v);
    return true;
}

bool report_models_json(struct json_out *j, struct arena *a, struct error *e)
{
    json_out_array(j);
    const struct catalog_model *row;
    for (ptrdiff_t i = 0; (row = catalog_model_at(i)); i++) {
        struct model m;
        struct parameters p;
        if (!load_row(&m, &p, a, row, e))
            return false;
        json_out_object(j);
        json_out_field_str(j, "name", m.name);
        report_model_json(j, &m, &p);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    return true;
}

static void print_shapes(struct buf *out, const struct view *v, const struct model *m)
{
    struct arena *a = out->arena;
    struct buf b = buf_in(a);
    buf_count(&b, m->layers, "layer");
    buf_printf(&b, " of width %llu, ", (unsigned long long)m->hidden);
    buf_count(&b, m->heads, "head");
    if (model_has(m, FEATURE_MLA))
        buf_printf(&b, " of latent attention (rank %llu), ", (unsigned long long)m->latent.kv_rank);
    else
        buf_printf(&b, " (%llu for keys and values) of %llu, ", (unsigned long long)m->kv_heads,
                   (unsigned long long)m->head_dim);
    if (model_expert_layers(m)) {
        buf_printf(&b, "%llu experts of width %llu in ", (unsigned long long)m->experts.count,
                   (unsigned long long)m->experts.intermediate);
        buf_count(&b, model_expert_layers(m), "layer");
        buf_printf(&b, " (%llu a token), ", (unsigned long long)m->experts.per_token);
    }
    if (model_expert_layers(m) < m->layers)
        buf_printf(&b, "MLP of %llu, ", (unsigned long long)m->intermediate);
    buf_put_z(&b, "vocabulary of ");
    put_grouped(&b, m->vocab);
    if (m->max_position)
        buf_printf(&b, ", %.*s positions", STR_ARGS(tokens_text(a, m->max_position)));
    if (m->native.length)
        buf_printf(&b, ", trained for %.*s tokens", STR_ARGS(tokens_text(a, m->native.length)));
    if (m->native.yarn_length)
        buf_printf(&b, ", with YaRN up to %.*s", STR_ARGS(tokens_text(a, m->native.yarn_length)));
    if (m->sliding_window) {
        buf_printf(&b, ", a window of %llu in ", (unsigned long long)m->sliding_window);
        buf_count(&b, model_sliding_layers(m), "layer");
    }
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void print_features(struct buf *out, const struct view *v, const struct model *m)
{
    struct buf b = buf_in(out->arena);
    for (ptrdiff_t i = 0; i < feature_name_count; i++)
        if (model_has(m, feature_names[i].bit))
            buf_printf(&b, "%s%s", b.n ? ", " : "with ", feature_names[i].name);
    if (b.n)
        buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void part_row(struct table *t, const char *name, uint64_t count, uint64_t total)
{
    double permille = (double)count / (double)total * 1000;
    uint64_t rounded = (uint64_t)(permille + 0.5);
    table_cell(t, str_format(t->arena, "  %s", name));
    table_cell(t, grouped_text(t->arena, count));
    table_cell(t, str_format(t->arena, "%llu.%llu %%", (unsigned long long)(rounded / 10),
                             (unsigned long long)(rounded % 10)));
}

static void print_parts(struct buf *out, const struct view *v, const struct parameters *p)
{
    static const struct column columns[] = {
        {"  part"}, {"parameters", .right = true}, {"share", .right = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    for (int part = 0; part < PART_COUNT; part++)
        if (p->by_part[part])
            part_row(&t, part_name((enum part)part), p->by_part[part], p->total);
    part_row(&t, "total", p->total, p->total);
    if (p->active != p->total)
        part_row(&t, "active per token", p->active, p->total);
    table_print(&t, out, v);
}

void report_model(struct buf *out, const struct view *v, const struct model *m,
                  const struct parameters *p)
{
    put_ink(out, v, INK_BOLD, m->name);
    buf_printf(out, "  %s, from ", m->family->title);
    put_plain(out, m->source);
    if (m->likened)
        buf_printf(out, ", by the likeness of its name to %s/%s", m->likened->owner,
                   m->likened->name);
    buf_char(out, '\n');
    if (m->packing) {
        buf_put_z(out, "  its weights are packed by ");
        put_plain(out, str_from(m->packing->name));
        buf_put_z(out, "; below are those it was made of\n");
    }
    print_shapes(out, v, m);
    print_features(out, v, m);
    buf_char(out, '\n');
    print_parts(out, v, p);
    struct buf weights = buf_in(out->arena);
    for (ptrdiff_t i = 0; i < COUNT_OF(precisions); i++) {
        buf_put_z(&weights, i ? ", " : "weights: ");
        put_bytes(&weights, bytes_in(&precisions[i], p->total));
        buf_printf(&weights, " in %s", precisions[i].name);
    }
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&weights), 2, v->width);
}

static void experts_json(struct json_out *j, const struct model *m)
{
    json_out_key(j, "experts");
    json_out_object(j);
    json_out_field_u64(j, "count", m->experts.count);
    json_out_field_u64(j, "per_token", m->experts.per_token);
    json_out_field_u64(j, "intermediate_size", m->experts.intermediate);
    json_out_field_u64(j, "shared_intermediate_size", m->experts.shared_intermediate);
    json_out_field_u64(j, "layers", model_expert_layers(m));
    json_out_object_end(j);
}

static void latent_json(struct json_out *j, const struct latent_attention *l)
{
    json_out_key(j, "latent_attention");
    json_out_object(j);
    json_out_field_u64(j, "query_rank", l->query_rank);
    json_out_field_u64(j, "kv_rank", l->kv_rank);
    json_out_field_u64(j, "nope_head_dim", l->nope_head_dim);
    json_out_field_u64(j, "rope_head_dim", l->rope_head_dim);
    json_out_field_u64(j, "value_head_dim", l->value_head_dim);
    json_out_object_end(j);
}

static void vision_json(struct json_out *j, const struct vision *v)
{
    json_out_key(j, "vision");
    json_out_object(j);
    json_out_field_u64(j, "depth", v->depth);
    json_out_field_u64(j, "hidden_size", v->hidden);
    json_out_field_u64(j, "intermediate_size", v->intermediate);
    json_out_field_u64(j, "heads", v->heads);
    json_out_field_u64(j, "patch_size", v->patch);
    json_out_field_u64(j, "positions", v->positions);
    json_out_field_u64(j, "out_hidden_size", v->out_hidden);
    json_out_object_end(j);
}

static void shapes_json(struct json_out *j, const struct model *m)
{
    json_out_key(j, "model");
    json_out_object(j);
    json_out_field_str(j, "name", m->name);
    json_out_field_str(j, "family", str_from(m->family->model_type));
    json_out_field_str(j, "source", m->source);
    json_out_field_u64(j, "hidden_size", m->hidden);
    json_out_field_u64(j, "layers", m->layers);
    json_out_field_u64(j, "heads", m->heads);
    json_out_field_u64(j, "kv_heads", m->kv_heads);
    if (m->head_dim)
        json_out_field_u64(j, "head_dim", m->head_dim);
    json_out_field_u64(j, "intermediate_size", m->intermediate);
    json_out_field_u64(j, "vocab_size", m->vocab);
    json_out_field_u64(j, "max_position_embeddings", m->max_position);
    json_out_field_u64(j, "native_length", native_length(&m->native, m->max_position));
    json_out_key(j, "yarn_length");
    if (m->native.yarn_length)
        json_out_u64(j, m->native.yarn_length);
    else
        json_out_null(j);
    json_out_field_bool(j, "tied", model_has(m, FEATURE_TIED));
    if (m->sliding_window)
        json_out_field_u64(j, "sliding_window", m->sliding_window);
    if (model_expert_layers(m))
        experts_json(j, m);
    if (model_has(m, FEATURE_MLA))
        latent_json(j, &m->latent);
    if (m->vision.depth)
        vision_json(j, &m->vision);
    json_out_key(j, "features");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < feature_name_count; i++)
        if (model_has(m, feature_names[i].bit))
            json_out_str(j, str_from(feature_names[i].name));
    json_out_array_end(j);
    json_out_object_end(j);
}

void report_model_json(struct json_out *j, const struct model *m, const struct parameters *p)
{
    shapes_json(j, m);
    json_out_key(j, "parameters");
    json_out_object(j);
    json_out_field_u64(j, "total", p->total);
    json_out_field_u64(j, "active", p->active);
    json_out_key(j, "by_part");
    json_out_object(j);
    for (int part = 0; part < PART_COUNT; part++)
        if (p->by_part[part])
            json_out_field_u64(j, part_key((enum part)part), p->by_part[part]);
    json_out_object_end(j);
    json_out_key(j, "bytes");
    json_out_object(j);
    for (ptrdiff_t i = 0; i < COUNT_OF(precisions); i++)
        json_out_field_u64(j, precisions[i].json_out_key, bytes_in(&precisions[i], p->total));
    json_out_object_end(j);
    json_out_object_end(j);
}

void report_weights_beside_memory(struct buf *out, const struct view *v, const struct model *m,
                                  const struct parameters *p, const struct hardware *h)
{
    uint64_t weights = bytes_in(&precisions[1], p->total);
    uint64_t percent = h->card.memory.value / 100;
    struct buf b = buf_in(out->arena);
    buf_put_z(&b, "The bf16 weights of ");
    put_plain(&b, m->name);
    buf_put_z(&b, " are ");
    put_bytes(&b, weights);
    buf_printf(&b, ": %llu %% of one card", (unsigned long long)(weights / percent));
    if (hardware_gpus(h) > 1)
        buf_printf(&b, ", %llu %% of all %llu",
                   (unsigned long long)(weights / percent / hardware_gpus(h)),
                   (unsigned long long)hardware_gpus(h));
    buf_char(&b, '.');
    buf_wrapped(out, buf_str(&b), 0, v->width);
}
