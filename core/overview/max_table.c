// Many capacities: rows are machines and sequence parallel sizes, columns are models, as in the
// published tables.
#include "core/base/units.h"
#include "core/draw/markup.h"
#include "core/overview/max.h"
#include "core/report/predict.h"
#include "core/report/verdict.h"

enum { MODELS_IN_A_TABLE = TABLE_MAX_COLUMNS - 2 };

static bool has_variants(const struct sweep *s)
{
    return s->variants[0].name.n > 0;
}

static struct str cell_text(struct arena *a, const struct cell *c)
{
    if (!c->possible)
        return STR("");
    if (!c->capacity.context && c->capacity.fits_context)
        return str_format(a, "(%llu)", (unsigned long long)c->capacity.fits_context);
    if (!c->capacity.context)
        return STR("-");
    return str_format(a, "%llu%s%s", (unsigned long long)c->capacity.context,
                      capacity_needs_yarn(&c->capacity) ? "*" : "",
                      c->capacity.fails_at ? "" : "+");
}

// ------------------------------------------------------------------ notes below a table

// "51200 / 40960 = 1.25", each once.
static void put_factors(struct buf *b, const struct sweep *s)
{
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        const struct capacity *c = &s->cells[i].capacity;
        bool seen = !s->cells[i].possible || !capacity_needs_yarn(c);
        for (ptrdiff_t k = 0; k < i && !seen; k++)
            seen = s->cells[k].capacity.context == c->context &&
                   s->cells[k].capacity.max_position == c->max_position;
        if (seen)
            continue;
        buf_printf(b, "%s%llu / %llu = ", b->n ? ", " : "", (unsigned long long)c->context,
                   (unsigned long long)c->max_position);
        put_factor(b, capacity_yarn_factor(c));
    }
}

static struct str yarn_note(struct arena *a, const struct sweep *s)
{
    struct buf factors = buf_in(a);
    put_factors(&factors, s);
    if (!factors.n)
        return STR_NONE;
    return str_format(a,
                      "* longer than the model has positions: YaRN, factor = length / "
                      "max_position_embeddings: %.*s",
                      STR_ARGS(buf_str(&factors)));
}

// What ends the lengths of cells that memory does not stop, each reason once.
static struct str end_note(struct arena *a, const struct sweep *s)
{
    struct buf b = buf_in(a);
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        const struct cell *c = &s->cells[i];
        bool seen = !c->possible || c->capacity.fails_at;
        for (ptrdiff_t k = 0; k < i && !seen; k++)
            seen = s->cells[k].possible && !s->cells[k].capacity.fails_at &&
                   str_is(str_from(capacity_end_text(&s->cells[k].capacity)),
                          capacity_end_text(&c->capacity));
        if (!seen)
            buf_printf(&b, "%s%s", b.n ? "; " : "+ longer ones are not modelled: ",
                       capacity_end_text(&c->capacity));
    }
    return buf_str(&b);
}

// What a node must hold of cells that leave a part in host memory, the most of all.
static struct str host_note(struct arena *a, const struct sweep *s)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        uint64_t bytes = s->cells[i].possible ? s->cells[i].capacity.host_bytes : 0;
        if (!bytes)
            continue;
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    if (!most)
        return STR_NONE;
    struct str low = bytes_text(a, least), high = bytes_text(a, most);
    if (least == most)
        return str_format(a, "host memory: %.*s on each node", STR_ARGS(high));
    return str_format(a, "host memory: %.*s to %.*s on each node; --json says which", STR_ARGS(low),
                      STR_ARGS(high));
}

// Lengths are safe ones. How to see those that only fit.
static struct str tight_note(struct arena *a, const struct sweep *s)
{
    ptrdiff_t longer = 0, none = 0;
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        const struct capacity *c = &s->cells[i].capacity;
        bool tight = s->cells[i].possible && c->fits_context > c->context;
        longer += tight;
        none += tight && !c->context;
    }
    if (!longer)
        return STR_NONE;
    return str_format(a,
                      "Lengths are safe ones%s. Longer ones fit, but tightly, in %d of these: "
                      "--margin 0 shows them, --explain on says why.",
                      none ? ", but those in parentheses, where none is" : "", (int)longer);
}

static struct str cell_name(struct arena *a, const struct sweep *s, const struct cell *c)
{
    struct buf b = buf_in(a);
    buf_put(&b, machine_text(a, &s->machines[c->machine].hardware));
    if (has_variants(s))
        buf_printf(&b, ", %s %.*s", s->varies, STR_ARGS(s->variants[c->variant].name));
    buf_put_z(&b, ", ");
    put_plain(&b, model_text(s, c->model));
    return buf_str(&b);
}

static struct str stop_text(struct arena *a, const struct capacity *c)
{
    struct buf b = buf_in(a);
    if (c->tight_at) {
        buf_printf(&b, "%llu: tight, ", (unsigned long long)c->tight_at);
        put_tight_because(&b, &c->tight);
        buf_put_z(&b, "; ");
    }
    if (!c->fails_at) {
        buf_printf(&b, "longer ones are not modelled: %s", capacity_end_text(c));
        return buf_str(&b);
    }
    if (c->stop.verdict.host_is_short) {
        buf_printf(&b, "%llu: ", (unsigned long long)c->fails_at);
        put_host_short(&b, &c->stop.verdict, &c->stop.host);
        return buf_str(&b);
    }
    buf_printf(&b, "%llu: %s, step %d, ", (unsigned long long)c->fails_at,
               phase_name(c->stop.phase), c->stop.step);
    put_bytes(&b, c->stop.oom.tried_bytes);
    buf_printf(&b, " (%s), %s", memory_kind_name(c->stop.kind),
               c->stop.oom.cause == OOM_FRAGMENTATION ? "fragmentation" : "exhaustion");
    return buf_str(&b);
}

static void print_explanation(struct buf *out, const struct view *v, const struct sweep *s)
{
    static const struct column stops[] = {{"  what stops the next length"}, {"", .wraps = true}};
    static const struct column left_out[] = {{"  left out"}, {"because", .wraps = true}};
    struct arena *a = out->arena;
    struct table t = table_in(a, stops, COUNT_OF(stops));
    struct table o = table_in(a, left_out, COUNT_OF(left_out));
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        const struct cell *c = &s->cells[i];
        struct table *into = c->possible ? &t : &o;
        table_cell(into, str_format(a, "  %.*s", STR_ARGS(cell_name(a, s, c))));
        if (c->possible)
            table_cell(into, stop_text(a, &c->capacity));
        else
            table_cell_z(into, c->refusal.message);
    }
    buf_char(out, '\n');
    table_print(&t, out, v);
    if (!o.cell_count)
        return;
    buf_char(out, '\n');
    table_print(&o, out, v);
}

// ------------------------------------------------------------------ the terminal

static void print_some(struct buf *out, const struct view *v, const struct sweep *s,
                       ptrdiff_t first_model)
{
    ptrdiff_t last_model = first_model + MODELS_IN_A_TABLE;
    if (last_model > s->model_count)
        last_model = s->model_count;
    struct arena *a = out->arena;
    struct column *columns = NEW(a, struct column, TABLE_MAX_COLUMNS);
    ptrdiff_t count = 0;
    columns[count++] = (struct column){"GPUs", .right = true};
    if (has_variants(s))
        columns[count++] = (struct column){s->varies, .right = true};
    for (ptrdiff_t m = first_model; m < last_model; m++)
        columns[count++] = (struct column){str_z(a, str_short(model_text(s, m))), .right = true};
    struct table t = table_in(a, columns, count);
    for (ptrdiff_t machine = 0; machine < s->machine_count; machine++)
        for (ptrdiff_t variant = 0; variant < s->variant_count; variant++) {
            if (!sweep_row_is_possible(s, machine, variant))
                continue;
            table_cell(&t, machine_text(a, &s->machines[machine].hardware));
            if (has_variants(s))
                table_cell(&t, s->variants[variant].name);
            for (ptrdiff_t m = first_model; m < last_model; m++)
                table_cell(&t, cell_text(a, sweep_cell(s, machine, variant, m)));
        }
    table_print(&t, out, v);
}

static ptrdiff_t left_out_count(const struct sweep *s)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < s->cell_count; i++)
        count += !s->cells[i].possible;
    return count;
}

void report_max_table(struct buf *out, const struct view *v, const struct max_story *story)
{
    const struct sweep *s = story->sweep;
    for (ptrdiff_t m = 0; m < s->model_count; m += MODELS_IN_A_TABLE) {
        if (m)
            buf_char(out, '\n');
        print_some(out, v, s, m);
    }
    const struct str notes[] = {yarn_note(out->arena, s), end_note(out->arena, s),
                                tight_note(out->arena, s), host_note(out->arena, s)};
    for (ptrdiff_t i = 0; i < COUNT_OF(notes); i++)
        if (notes[i].n)
            buf_wrapped(out, notes[i], 0, v->width);
    print_length_warnings(out, v, s, 0);
    if (story->explain) {
        print_explanation(out, v, s);
        report_unmeasured(out, v, story->job);
    } else if (left_out_count(s)) {
        buf_printf(out, "left out: %d that %s not possible; --explain on says why\n",
                   (int)left_out_count(s), left_out_count(s) == 1 ? "is" : "are");
    }
}

// ------------------------------------------------------------------ Markdown and CSV

static void put_markdown_row(struct buf *b, const struct sweep *s, ptrdiff_t machine,
                             ptrdiff_t variant)
{
    struct arena *a = b->arena;
    struct str name = machine_text(a, &s->machines[machine].hardware);
    buf_printf(b, "| %.*s |", STR_ARGS(name));
    if (has_variants(s))
        buf_printf(b, " %.*s |", STR_ARGS(s->variants[variant].name));
    for (ptrdiff_t m = 0; m < s->model_count; m++) {
        struct str_cut star = str_cut(cell_text(a, sweep_cell(s, machine, variant, m)), '*');
        buf_printf(b, " %.*s%s%.*s |", STR_ARGS(star.head), star.found ? "\\*" : "",
                   STR_ARGS(star.tail));
    }
    buf_char(b, '\n');
}

void report_max_markdown(struct buf *out, const struct max_story *story)
{
    const struct sweep *s = story->sweep;
    buf_put_z(out, !has_variants(s)                    ? "| GPUs |"
                   : str_is(str_from(s->varies), "sp") ? "| GPUs | SP |"
                                                       : "| GPUs | CP |");
    for (ptrdiff_t m = 0; m < s->model_count; m++) {
        buf_char(out, ' ');
        put_markdown(out, model_text(s, m));
        buf_put_z(out, " |");
    }
    buf_put_z(out, has_variants(s) ? "\n| --- | ---: |" : "\n| --- |");
    for (ptrdiff_t m = 0; m < s->model_count; m++)
        buf_put_z(out, " ---: |");
    buf_char(out, '\n');
    for (ptrdiff_t machine = 0; machine < s->machine_count; machine++)
        for (ptrdiff_t variant = 0; variant < s->variant_count; variant++)
            if (sweep_row_is_possible(s, machine, variant))
                put_markdown_row(out, s, machine, variant);
    struct str note = yarn_note(out->arena, s);
    if (note.n)
        buf_printf(out, "\n\\%.*s\n", STR_ARGS(note));
    struct str end = end_note(out->arena, s);
    if (end.n)
        buf_printf(out, "\n\\%.*s\n", STR_ARGS(end));
    for (ptrdiff_t m = 0; m < s->model_count; m++) {
        struct str warning = length_warning(out->arena, s, m);
        if (warning.n)
            buf_printf(out, "\nWarning: %.*s\n", STR_ARGS(warning));
    }
    const struct str notes[] = {tight_note(out->arena, s), host_note(out->arena, s)};
    for (ptrdiff_t i = 0; i < COUNT_OF(notes); i++)
        if (notes[i].n)
            buf_printf(out, "\n%.*s\n", STR_ARGS(notes[i]));
}

// Phase, tensor and cause of what stops the next length.
static void put_csv_stop(struct buf *b, const struct capacity *c)
{
    if (!c->fails_at)
        buf_put_z(b, ",,,not modelled");
    else if (c->stop.verdict.host_is_short)
        buf_put_z(b, ",,host memory,exhaustion");
    else
        buf_printf(b, ",%s,%s,%s", phase_name(c->stop.phase), memory_kind_name(c->stop.kind),
                   c->stop.oom.cause == OOM_FRAGMENTATION ? "fragmentation" : "exhaustion");
}

void report_max_csv(struct buf *out, const struct max_story *story)
{
    const struct sweep *s = story->sweep;
    buf_printf(out,
               "gpu,gpus,%s,model,max_context,fails_at,yarn_factor,allocated_bytes,"
               "reserved_bytes,capacity_bytes,stopped_by_phase,stopped_by,cause,fits_context,"
               "host_bytes\n",
               s->varies);
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        const struct cell *cell = &s->cells[i];
        const struct capacity *c = &cell->capacity;
        const struct hardware *h = &s->machines[cell->machine].hardware;
        if (!cell->possible)
            continue;
        struct str variant = s->variants[cell->variant].name;
        buf_printf(out, "%s,%llu,%.*s,", h->card.name, (unsigned long long)hardware_gpus(h),
                   STR_ARGS(variant.n ? variant : STR("1")));
        put_csv(out, model_text(s, cell->model));
        buf_printf(out, ",%llu,", (unsigned long long)c->context);
        if (c->fails_at)
            buf_printf(out, "%llu", (unsigned long long)c->fails_at);
        buf_char(out, ',');
        if (capacity_needs_yarn(c))
            put_factor(out, capacity_yarn_factor(c));
        buf_printf(out, ",%llu,%llu,%llu", (unsigned long long)c->allocated_bytes,
                   (unsigned long long)c->reserved_bytes, (unsigned long long)c->limit_bytes);
        put_csv_stop(out, c);
        buf_printf(out, ",%llu,%llu\n", (unsigned long long)c->fits_context,
                   (unsigned long long)c->host_bytes);
    }
}
