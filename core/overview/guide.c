// What a guide says, in each form. A length beyond what a model has positions for has a star; a
// model that no configuration can train on a machine has empty cells there, and a note that says
// why.
#include "core/overview/guide.h"

#include "core/base/units.h"
#include "core/draw/markup.h"
#include "core/overview/max.h"

enum { MODELS_IN_A_TABLE = TABLE_MAX_COLUMNS - 1 };

#define FIRST_FAILURE                                                                              \
    "the longest context of a configuration is the last length of the grid before the first that " \
    "is not safe, or with --margin 0 does not fit"

static struct str config_text(const struct guide *g, ptrdiff_t machine, ptrdiff_t model,
                              uint64_t length)
{
    ptrdiff_t choice = guide_choice(g, machine, model, length);
    if (guide_refusal(g, machine, model))
        return STR("");
    return choice < 0 ? STR("-") : g->sweep.variants[choice].name;
}

static bool is_beyond(const struct guide *g, uint64_t length)
{
    for (ptrdiff_t m = 0; m < g->sweep.model_count; m++) {
        uint64_t trained = guide_max_position(g, m);
        if (trained && length > trained)
            return true;
    }
    return false;
}

static struct str length_text(struct arena *a, const struct guide *g, uint64_t length)
{
    return str_format(a, "%llu%s", (unsigned long long)length, is_beyond(g, length) ? "*" : "");
}

static bool any_beyond(const struct guide *g)
{
    return g->length_count && is_beyond(g, g->lengths[g->length_count - 1]);
}

// "Qwen3-8B is left out: ...", or why its lengths end; empty where only memory stops it.
static struct str model_note(struct arena *a, const struct guide *g, ptrdiff_t machine,
                             ptrdiff_t model)
{
    const struct error *refusal = guide_refusal(g, machine, model);
    const struct capacity *end = guide_end(g, machine, model);
    struct buf b = buf_in(a);
    if (!refusal && !end)
        return STR_NONE;
    put_plain(&b, model_text(&g->sweep, model));
    if (refusal)
        buf_printf(&b, " is left out: %s", refusal->message);
    else
        buf_printf(&b, ": lengths beyond %llu are not modelled: %s",
                   (unsigned long long)end->context, end->end.message);
    return buf_str(&b);
}

// "host memory on each node: Env + Offload 120.00 GiB", the most of its models; empty where none
// is needed.
static struct str host_note(struct arena *a, const struct guide *g, ptrdiff_t machine)
{
    struct buf b = buf_in(a);
    for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++) {
        uint64_t most = 0;
        for (ptrdiff_t m = 0; m < g->sweep.model_count; m++) {
            const struct cell *c = sweep_cell(&g->sweep, machine, v, m);
            uint64_t bytes = c->possible ? c->capacity.host_bytes : 0;
            most = bytes > most ? bytes : most;
        }
        if (!most)
            continue;
        struct str name = g->sweep.variants[v].name;
        buf_printf(&b, "%s%.*s ", b.n ? ", " : "host memory on each node: ", STR_ARGS(name));
        put_bytes(&b, most);
    }
    return buf_str(&b);
}

// The longest length of any model there, and the configuration that reaches it.
static void put_reach(struct buf *b, const struct guide *g, ptrdiff_t machine)
{
    const struct cell *longest = NULL;
    for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++)
        for (ptrdiff_t m = 0; m < g->sweep.model_count; m++) {
            const struct cell *c = sweep_cell(&g->sweep, machine, v, m);
            if (c->possible && (!longest || c->capacity.context > longest->capacity.context))
                longest = c;
        }
    if (!longest || !longest->capacity.context) {
        buf_put_z(b, "trains nothing here");
        return;
    }
    buf_printf(b, "trains up to %llu tokens (", (unsigned long long)longest->capacity.context);
    put_plain(b, model_text(&g->sweep, longest->model));
    buf_printf(b, ", %.*s)", STR_ARGS(g->sweep.variants[longest->variant].name));
}

// "80 GiB and 989 TFLOPS in bf16 a card: trains up to 98304 tokens (Qwen3-8B, Env)."
static struct str machine_note(struct arena *a, const struct guide *g, ptrdiff_t machine)
{
    const struct gpu *card = &g->sweep.machines[machine].hardware.card;
    struct buf b = buf_in(a);
    put_bytes(&b, card->memory.value);
    if (card->bf16.value)
        buf_printf(&b, " and %llu TFLOPS in bf16",
                   (unsigned long long)(card->bf16.value / UINT64_C(1000000000000)));
    buf_put_z(&b, " a card: ");
    put_reach(&b, g, machine);
    return buf_str(&b);
}

// How a cell becomes files.
static struct str emit_note(struct arena *a, const struct guide *g)
{
    struct buf b = buf_in(a);
    ptrdiff_t last = -1;
    for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++)
        last = guide_is_possible(g, v) ? v : last;
    if (last < 0 || !g->target)
        return STR_NONE;
    struct str options = guide_options(a, g, last);
    buf_printf(&b,
               "The files of a cell: fathom emit --model MODEL --gpu GPUS --context TOKENS -o run, "
               "with the options of its configuration; %.*s is %.*s",
               STR_ARGS(g->sweep.variants[last].name), STR_ARGS(options));
    return buf_str(&b);
}

// ------------------------------------------------------------------ the terminal

static void print_some(struct buf *out, const struct view *v, const struct guide *g,
                       ptrdiff_t machine, ptrdiff_t first_model)
{
    struct arena *a = out->arena;
    ptrdiff_t last = first_model + MODELS_IN_A_TABLE;
    last = last < g->sweep.model_count ? last : g->sweep.model_count;
    struct column *columns = NEW(a, struct column, TABLE_MAX_COLUMNS);
    ptrdiff_t count = 0, rows = guide_rows(g, machine);
    columns[count++] = (struct column){"  context", .right = true};
    for (ptrdiff_t m = first_model; m < last; m++)
        columns[count++] = (struct column){str_z(a, str_short(model_text(&g->sweep, m)))};
    struct table t = table_in(a, columns, count);
    for (ptrdiff_t row = 0; row < rows; row++) {
        table_cell(&t, length_text(a, g, g->lengths[row]));
        for (ptrdiff_t m = first_model; m < last; m++)
            table_cell(&t, config_text(g, machine, m, g->lengths[row]));
    }
    table_print(&t, out, v);
}

static void print_legend(struct buf *out, const struct view *v, const struct guide *g)
{
    struct buf order = buf_in(out->arena);
    const char *comma = "";
    buf_put_z(&order, "Each cell is the first of these that trains: ");
    for (ptrdiff_t i = 0; i < g->sweep.variant_count; i++) {
        if (!guide_is_possible(g, i))
            continue;
        buf_printf(&order, "%s%.*s", comma, STR_ARGS(g->sweep.variants[i].name));
        comma = ", ";
    }
    buf_put_z(&order, "; - for none; " FIRST_FAILURE ".");
    for (ptrdiff_t i = 0; i < guide_part_count; i++)
        if (guide_part_is_used(g, &guide_parts[i]))
            buf_printf(&order, " %s: %s.", guide_parts[i].name, guide_parts[i].text[g->dialect]);
    if (any_beyond(g))
        buf_put_z(&order, " *: longer than the model has positions, YaRN is needed.");
    buf_wrapped(out, buf_str(&order), 0, v->width);
}

void report_guide(struct buf *out, const struct view *v, const struct guide *g)
{
    for (ptrdiff_t machine = 0; machine < g->sweep.machine_count; machine++) {
        put_ink(out, v, INK_BOLD, machine_text(out->arena, &g->sweep.machines[machine].hardware));
        buf_char(out, '\n');
        buf_wrapped(out, machine_note(out->arena, g, machine), 2, v->width);
        for (ptrdiff_t m = 0; m < g->sweep.model_count; m += MODELS_IN_A_TABLE)
            print_some(out, v, g, machine, m);
        for (ptrdiff_t m = 0; m < g->sweep.model_count; m++) {
            struct str note = model_note(out->arena, g, machine, m);
            if (note.n)
                buf_wrapped(out, note, 2, v->width);
        }
        struct str host = host_note(out->arena, g, machine);
        if (host.n)
            buf_wrapped(out, host, 2, v->width);
        buf_char(out, '\n');
    }
    print_legend(out, v, g);
    struct str files = emit_note(out->arena, g);
    if (files.n)
        buf_wrapped(out, files, 0, v->width);
    print_length_warnings(out, v, &g->sweep, 0);
}
// ------------------------------------------------------------------ CSV and JSON

void report_guide_csv(struct buf *out, const struct guide *g)
{
    const struct sweep *s = &g->sweep;
    buf_put_z(out, "gpu,gpus,model,context,config\n");
    for (ptrdiff_t machine = 0; machine < s->machine_count; machine++)
        for (ptrdiff_t row = 0; row < g->length_count; row++)
            for (ptrdiff_t m = 0; m < s->model_count; m++) {
                const struct hardware *h = &s->machines[machine].hardware;
                struct str config = config_text(g, machine, m, g->lengths[row]);
                buf_printf(out, "%s,%llu,", h->card.name, (unsigned long long)hardware_gpus(h));
                put_csv(out, model_text(s, m));
                buf_printf(out, ",%llu,%.*s\n", (unsigned long long)g->lengths[row],
                           STR_ARGS(config));
            }
}

static void name_json(struct json_out *j, const struct sweep *s, ptrdiff_t machine, ptrdiff_t model)
{
    const struct hardware *h = &s->machines[machine].hardware;
    json_out_object(j);
    json_out_field_str(j, "gpu", str_from(h->card.name));
    json_out_field_u64(j, "gpus", hardware_gpus(h));
    json_out_field_str(j, "model", model_text(s, model));
}

static void left_out_json(struct json_out *j, const struct sweep *s)
{
    json_out_key(j, "left_out");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        const struct cell *c = &s->cells[i];
        if (c->possible)
            continue;
        name_json(j, s, c->machine, c->model);
        json_out_field_str(j, "config", s->variants[c->variant].name);
        json_out_field_str(j, "reason", str_from(c->refusal.message));
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

// A model that is refused altogether has no configuration, not even none that fits.
static void config_json(struct json_out *j, const struct guide *g, ptrdiff_t machine,
                        ptrdiff_t model, uint64_t length)
{
    json_out_key(j, "config");
    if (guide_refusal(g, machine, model))
        json_out_null(j);
    else
        json_out_str(j, config_text(g, machine, model, length));
    ptrdiff_t choice = guide_choice(g, machine, model, length);
    if (choice >= 0)
        json_out_field_str(j, "options", guide_options(j->out->arena, g, choice));
}

static void capacities_json(struct json_out *j, const struct sweep *s)
{
    json_out_key(j, "capacities");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        const struct cell *c = &s->cells[i];
        if (!c->possible)
            continue;
        name_json(j, s, c->machine, c->model);
        json_out_field_str(j, "config", s->variants[c->variant].name);
        json_out_field_u64(j, "max_context", c->capacity.context);
        json_out_field_u64(j, "fits_context", c->capacity.fits_context);
        json_out_key(j, "host_bytes");
        if (c->capacity.host_bytes)
            json_out_u64(j, c->capacity.host_bytes);
        else
            json_out_null(j);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

void report_guide_json(struct json_out *j, const struct guide *g)
{
    const struct sweep *s = &g->sweep;
    json_out_key(j, "cells");
    json_out_array(j);
    for (ptrdiff_t machine = 0; machine < s->machine_count; machine++)
        for (ptrdiff_t row = 0; row < g->length_count; row++)
            for (ptrdiff_t m = 0; m < s->model_count; m++) {
                name_json(j, s, machine, m);
                json_out_field_u64(j, "context", g->lengths[row]);
                config_json(j, g, machine, m, g->lengths[row]);
                json_out_object_end(j);
            }
    json_out_array_end(j);
    capacities_json(j, s);
    left_out_json(j, s);
    length_warnings_json(j, s);
}

// ------------------------------------------------------------------ the document

static int shade_of(const struct guide *g, ptrdiff_t choice)
{
    ptrdiff_t last = g->sweep.variant_count - 1;
    return choice < 0 ? PAGE_NONE : last ? (int)(choice * 100 / last) : 0;
}

static const struct str *column_titles(struct arena *a, const struct guide *g, const char *first)
{
    struct str *titles = NEW(a, struct str, g->sweep.model_count + 1);
    titles[0] = str_from(first);
    for (ptrdiff_t m = 0; m < g->sweep.model_count; m++)
        titles[m + 1] = model_text(&g->sweep, m);
    return titles;
}

static void write_machine(const struct page *p, const struct guide *g, ptrdiff_t machine)
{
    const struct page_methods *w = p->methods;
    struct arena *a = p->out->arena;
    ptrdiff_t rows = guide_rows(g, machine);
    w->heading(p->out, machine_text(a, &g->sweep.machines[machine].hardware));
    w->paragraph(p->out, str_format(a, "%.*s.", STR_ARGS(machine_note(a, g, machine))));
    w->table_begin(p->out, column_titles(a, g, "context"), g->sweep.model_count + 1);
    for (ptrdiff_t row = 0; row < rows; row++) {
        w->row_begin(p->out);
        w->cell(p->out, length_text(a, g, g->lengths[row]), PAGE_PLAIN);
        for (ptrdiff_t m = 0; m < g->sweep.model_count; m++)
            w->cell(p->out, config_text(g, machine, m, g->lengths[row]),
                    shade_of(g, guide_choice(g, machine, m, g->lengths[row])));
        w->row_end(p->out);
    }
    w->table_end(p->out);
    for (ptrdiff_t m = 0; m < g->sweep.model_count; m++) {
        struct str note = model_note(a, g, machine, m);
        if (note.n)
            w->paragraph(p->out, note);
    }
    struct str host = host_note(a, g, machine);
    if (host.n)
        w->paragraph(p->out, host);
}

static struct str longest_text(struct arena *a, const struct cell *c)
{
    if (!c->possible)
        return STR("");
    if (!c->capacity.context)
        return STR("-");
    return str_format(a, "%llu%s", (unsigned long long)c->capacity.context,
                      capacity_needs_yarn(&c->capacity) ? "*" : "");
}

static bool machine_is_possible(const struct guide *g, ptrdiff_t machine)
{
    for (ptrdiff_t m = 0; m < g->sweep.model_count; m++)
        if (!guide_refusal(g, machine, m))
            return true;
    return false;
}

static void write_capacities(const struct page *p, const struct guide *g, ptrdiff_t machine)
{
    const struct page_methods *w = p->methods;
    const struct sweep *s = &g->sweep;
    struct arena *a = p->out->arena;
    struct str name = machine_text(a, &s->machines[machine].hardware);
    struct str title = str_format(a, "Longest contexts on %.*s", STR_ARGS(name));
    w->heading(p->out, title);
    w->table_begin(p->out, column_titles(a, g, "configuration"), s->model_count + 1);
    for (ptrdiff_t v = 0; v < s->variant_count; v++) {
        if (!sweep_row_is_possible(s, machine, v))
            continue;
        w->row_begin(p->out);
        w->cell(p->out, s->variants[v].name, PAGE_PLAIN);
        for (ptrdiff_t m = 0; m < s->model_count; m++)
            w->cell(p->out, longest_text(a, sweep_cell(s, machine, v, m)), PAGE_PLAIN);
        w->row_end(p->out);
    }
    w->table_end(p->out);
}

static void write_order(const struct page *p, const struct guide *g)
{
    static const struct str titles[] = {{"part", 4}, {"what it is", 10}, {"how to set it", 13}};
    const struct page_methods *w = p->methods;
    w->heading(p->out, STR("When memory runs out"));
    w->paragraph(p->out, STR("Try these in turn, the simplest first. The tables name the first "
                             "that trains a length; " FIRST_FAILURE "."));
    int number = 0;
    w->list_begin(p->out);
    for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++)
        if (guide_is_possible(g, v))
            w->list_item(p->out, ++number, g->sweep.variants[v].name, shade_of(g, v));
    w->list_end(p->out);
    w->table_begin(p->out, titles, COUNT_OF(titles));
    for (ptrdiff_t i = 0; i < guide_part_count; i++) {
        const struct guide_part *part = &guide_parts[i];
        if (!guide_part_is_used(g, part))
            continue;
        w->row_begin(p->out);
        w->cell(p->out, str_from(part->name), PAGE_PLAIN);
        w->cell(p->out, str_from(part->text[g->dialect]), PAGE_PLAIN);
        w->cell(p->out, str_from(part->how[g->dialect]), PAGE_PLAIN);
        w->row_end(p->out);
    }
    w->table_end(p->out);
    struct str files = emit_note(p->out->arena, g);
    if (files.n)
        w->paragraph(p->out, files);
}

static struct str factor_text(struct arena *a, const struct guide *g, ptrdiff_t model,
                              uint64_t length)
{
    uint64_t trained = guide_max_position(g, model);
    struct buf b = buf_in(a);
    if (!trained || length <= trained)
        return STR("-");
    put_factor(&b, yarn_factor(length, trained));
    return buf_str(&b);
}

// The models' max_position_embeddings where it is one number.
static struct str trained_text(struct arena *a, const struct guide *g)
{
    uint64_t first = guide_max_position(g, 0);
    for (ptrdiff_t m = 1; m < g->sweep.model_count; m++)
        if (guide_max_position(g, m) != first)
            return STR("MAX_POSITION_EMBEDDINGS");
    return str_format(a, "%llu", (unsigned long long)first);
}

static void write_yarn(const struct page *p, const struct guide *g)
{
    const struct page_methods *w = p->methods;
    struct arena *a = p->out->arena;
    if (!any_beyond(g))
        return;
    w->heading(p->out, STR("YaRN"));
    w->paragraph(p->out, STR("Lengths with a star are longer than the model has positions "
                             "(max_position_embeddings). They need YaRN, with the factor length / "
                             "max_position_embeddings:"));
    w->table_begin(p->out, column_titles(a, g, "context"), g->sweep.model_count + 1);
    for (ptrdiff_t row = 0; row < g->length_count; row++) {
        if (!is_beyond(g, g->lengths[row]))
            continue;
        w->row_begin(p->out);
        w->cell(p->out, length_text(a, g, g->lengths[row]), PAGE_PLAIN);
        for (ptrdiff_t m = 0; m < g->sweep.model_count; m++)
            w->cell(p->out, factor_text(a, g, m, g->lengths[row]), PAGE_PLAIN);
        w->row_end(p->out);
    }
    w->table_end(p->out);
    bool trinity = g->dialect == GUIDE_TRINITY;
    const char *indent = trinity ? "  " : "";
    struct str trained = trained_text(a, g);
    struct str setting =
        str_format(a,
                   "%s%srope_scaling:\n%s  rope_type: yarn\n%s  factor: FACTOR\n"
                   "%s  original_max_position_embeddings: %.*s\n",
                   trinity ? "model:\n" : "", indent, indent, indent, indent, STR_ARGS(trained));
    w->code(p->out, setting);
    for (ptrdiff_t m = 0; m < g->sweep.model_count; m++) {
        struct str warning = length_warning(a, &g->sweep, m);
        if (warning.n)
            w->paragraph(p->out, str_format(a, "Warning: %.*s.", STR_ARGS(warning)));
    }
}

static struct str title_of(struct arena *a, const struct guide *g)
{
    const struct sweep *s = &g->sweep;
    struct buf b = buf_in(a);
    buf_put_z(&b, "How long a context trains: ");
    for (ptrdiff_t m = 0; m < s->model_count; m++)
        buf_printf(&b, "%s%.*s", m ? ", " : "", STR_ARGS(str_short(model_text(s, m))));
    buf_put_z(&b, " on ");
    for (ptrdiff_t i = 0; i < s->machine_count; i++) {
        struct str name = machine_text(a, &s->machines[i].hardware);
        buf_printf(&b, "%s%.*s", i ? ", " : "", STR_ARGS(name));
    }
    return buf_str(&b);
}

void report_guide_page(const struct page *p, const struct guide *g)
{
    const struct page_methods *w = p->methods;
    w->begin(p->out, title_of(p->out->arena, g));
    w->paragraph(p->out,
                 g->dialect == GUIDE_TRINITY
                     ? STR("For the GRPO trainer of Trinity-RFT on verl. GPUs are those of "
                           "the trainer. Predicted by simulating the training step tensor by "
                           "tensor and replaying it through torch's allocator; not measured.")
                     : STR("Predicted by simulating the training step tensor by tensor and "
                           "replaying it through torch's allocator; not measured."));
    for (ptrdiff_t machine = 0; machine < g->sweep.machine_count; machine++)
        write_machine(p, g, machine);
    write_order(p, g);
    write_yarn(p, g);
    for (ptrdiff_t machine = 0; machine < g->sweep.machine_count; machine++)
        if (machine_is_possible(g, machine))
            write_capacities(p, g, machine);
    w->end(p->out);
}
