// Lists into cells, and cells into tasks. A task writes to its own cell only.
#include "core/search/sweep.h"

static bool is_digits(struct str s)
{
    for (ptrdiff_t i = 0; i < s.n; i++)
        if (!char_is_digit(s.p[i]))
            return false;
    return s.n > 0;
}

// The comma that ends the first item, or the whole length. Of machines, a comma inside braces or
// before a figure ("memory=48GiB,bf16=...") ends nothing.
static ptrdiff_t item_length(struct str s, bool machines)
{
    int depth = 0;
    if (!machines)
        return str_cut(s, ',').head.n;
    for (ptrdiff_t i = 0; i < s.n; i++) {
        depth += (s.p[i] == '{') - (s.p[i] == '}');
        if (s.p[i] != ',' || depth > 0)
            continue;
        struct str next = str_cut(str_slice(s, i + 1, s.n), ',').head;
        if (!str_cut(next, '=').found || str_cut(next, ':').found || str_cut(next, '{').found)
            return i;
    }
    return s.n;
}

bool list_split(struct setting **items, ptrdiff_t *count, struct arena *a,
                const struct setting *list, struct error *e)
{
    ptrdiff_t capacity = 0;
    *items = NULL;
    *count = 0;
    bool machines = str_is(list->key, "gpu");
    for (struct str rest = list->value;;) {
        ptrdiff_t n = item_length(rest, machines);
        struct setting item = {list->key, str_trim(str_slice(rest, 0, n)), list->where};
        if (!item.value.n)
            return FAIL(e, BAD_INPUT, list->where, "%.*s has an empty item: '%.*s'",
                        STR_ARGS(list->key), STR_ARGS(str_short(list->value)));
        *items = arena_grow(a, *items, sizeof **items, *count, &capacity);
        (*items)[(*count)++] = item;
        if (n == rest.n)
            return true;
        rest = str_slice(rest, n + 1, rest.n);
    }
}

static bool is_repeated(const struct setting *items, ptrdiff_t count, struct str value)
{
    for (ptrdiff_t i = 0; i < count; i++)
        if (str_equal(items[i].value, value))
            return true;
    return false;
}

ptrdiff_t list_drop_repeated(struct setting *items, ptrdiff_t count)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        if (!is_repeated(items, kept, items[i].value))
            items[kept++] = items[i];
    return kept;
}

// "1,2,4xA100-80G" is three machines of the last item's card: a bare number takes its card, and its
// GPUs a node, from the next item that names one.
static bool spell_out(struct setting *items, ptrdiff_t count, struct arena *a, struct error *e)
{
    struct str card = STR_NONE;
    for (ptrdiff_t i = count - 1; i >= 0; i--) {
        struct str *value = &items[i].value;
        if (is_digits(*value)) {
            if (!card.n)
                return FAIL(e, BAD_INPUT, items[i].where,
                            "'%.*s' names no card; 1,2,4xA100-80G is an example",
                            STR_ARGS(str_short(*value)));
            *value = str_format(a, "%.*sx%.*s", STR_ARGS(*value), STR_ARGS(card));
            continue;
        }
        struct str_cut cut = str_cut(*value, 'x');
        card = cut.found && is_digits(str_trim(cut.head)) ? cut.tail : *value;
    }
    return true;
}

static bool read_machines(struct sweep *s, struct arena *a, const struct settings *settings,
                          struct error *e)
{
    const struct setting *gpu = settings_find_z(settings, "gpu");
    struct setting *items;
    if (!gpu)
        return FAIL(e, BAD_INPUT, STR("--gpu"), "no GPU is given; --gpu 8xH100-80G is an example");
    if (!list_split(&items, &s->machine_count, a, gpu, e) ||
        !spell_out(items, s->machine_count, a, e))
        return false;
    s->machine_count = list_drop_repeated(items, s->machine_count);
    s->machines = NEW(a, struct machine_spec, s->machine_count);
    for (ptrdiff_t i = 0; i < s->machine_count; i++) {
        s->machines[i].gpu = items[i];
        if (!hardware_from_spec(&s->machines[i].hardware, a, &items[i], e))
            return false;
    }
    return true;
}

static void drop_repeated_models(struct sweep *s)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < s->model_count; i++) {
        if (is_repeated(s->models, kept, s->models[i].value))
            continue;
        s->model_numbers[kept] = i;
        s->models[kept++] = s->models[i];
    }
    s->model_count = kept;
}

static bool read_models(struct sweep *s, struct arena *a, const struct settings *settings,
                        struct error *e)
{
    const struct setting *model = settings_find_z(settings, "model");
    bool whole = settings_find_z(settings, "config.model_type") ||
                 (model && catalog_model_find(model->value));
    if (!model && !whole)
        return FAIL(e, BAD_INPUT, STR("--model"),
                    "no model is given; --model Qwen3-8B is an example");
    if (whole) {
        s->models = NEW(a, struct setting, 1);
        s->model_numbers = NEW(a, ptrdiff_t, 1);
        s->models[s->model_count++] = model ? *model : (struct setting){STR("model")};
        return true;
    }
    if (!list_split(&s->models, &s->model_count, a, model, e))
        return false;
    for (ptrdiff_t i = 0; i < s->model_count; i++) {
        struct arena scratch = *a;
        struct str type = str_format(&scratch, "configs.%d.model_type", (int)i);
        if (!catalog_model_find(s->models[i].value) && !settings_find(settings, type))
            return catalog_model_unknown(s->models[i].value, model->where, e);
    }
    s->model_numbers = NEW(a, ptrdiff_t, s->model_count);
    drop_repeated_models(s);
    return true;
}

bool sweep_read(struct sweep *s, struct arena *a, const struct settings *settings, struct error *e)
{
    *s = (struct sweep){0};
    return read_models(s, a, settings, e) && read_machines(s, a, settings, e);
}

struct cell *sweep_cell(const struct sweep *s, ptrdiff_t machine, ptrdiff_t variant,
                        ptrdiff_t model)
{
    return &s->cells[(machine * s->variant_count + variant) * s->model_count + model];
}

bool sweep_row_is_possible(const struct sweep *s, ptrdiff_t machine, ptrdiff_t variant)
{
    for (ptrdiff_t m = 0; m < s->model_count; m++)
        if (sweep_cell(s, machine, variant, m)->possible)
            return true;
    return false;
}

bool list_model_settings(struct settings *out, const struct settings *all, ptrdiff_t number,
                         struct error *e)
{
    struct str own = str_format(out->arena, "configs.%d.", (int)number);
    for (ptrdiff_t i = 0; i < all->count; i++) {
        struct setting item = all->items[i];
        bool numbered = str_starts(item.key, STR("configs."));
        if (numbered && !str_starts(item.key, own))
            continue;
        if (numbered)
            item.key = str_join(out->arena, STR("config."), str_slice(item.key, own.n, item.key.n));
        if (!settings_add(out, item, e))
            return false;
    }
    return true;
}

// The settings of a cell, and whether they can be planned at the grid's first length.
static bool make_cell(struct cell *c, struct arena *a, const struct sweep *s,
                      const struct capacity_request *r, struct error *e)
{
    c->settings = settings_in(a);
    if (!list_model_settings(&c->settings, r->settings, s->model_numbers[c->model], e))
        return false;
    if ((s->models[c->model].value.n && !settings_set(&c->settings, s->models[c->model], e)) ||
        !settings_set(&c->settings, s->machines[c->machine].gpu, e) ||
        !settings_change(&c->settings, s->variants[c->variant].settings, e))
        return false;
    struct arena scratch = *a;
    struct job *job = NEW(&scratch, struct job, 1);
    struct capacity_request first = *r;
    first.settings = &c->settings;
    c->possible = capacity_grid(&first.grid, scratch, &first, &c->refusal) &&
                  capacity_job(job, &scratch, &first, grid_length(&first.grid, 0), &c->refusal);
    return true;
}

static bool make_cells(struct sweep *s, struct arena *a, const struct capacity_request *r,
                       struct error *e)
{
    ptrdiff_t per_machine = s->variant_count * s->model_count;
    if (per_machine > SWEEP_MOST_CELLS || s->machine_count > SWEEP_MOST_CELLS / per_machine)
        return FAIL(e, BAD_INPUT, STR_NONE, "the lists make more than %d configurations",
                    SWEEP_MOST_CELLS);
    s->cell_count = s->machine_count * per_machine;
    s->cells = NEW(a, struct cell, s->cell_count);
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        struct cell *c = &s->cells[i];
        c->model = i % s->model_count;
        c->variant = i / s->model_count % s->variant_count;
        c->machine = i / per_machine;
        if (!make_cell(c, a, s, r, e))
            return false;
    }
    return true;
}

struct work {
    struct cell **cells;
    struct error *errors;
    const struct capacity_request *request;
};

static void search_cell(void *context, ptrdiff_t index, struct arena scratch)
{
    struct work *w = context;
    struct cell *c = w->cells[index];
    struct capacity_request r = *w->request;
    r.settings = &c->settings;
    (void)!capacity_find(&c->capacity, scratch, &r, &w->errors[index]);
}

bool sweep_run(struct sweep *s, struct arena *a, const struct runner *runner,
               const struct capacity_request *request, struct error *e)
{
    if (!make_cells(s, a, request, e))
        return false;
    struct work w = {.cells = NEW(a, struct cell *, s->cell_count), .request = request};
    struct tasks tasks = {.run = search_cell, .context = &w};
    for (ptrdiff_t i = 0; i < s->cell_count; i++)
        if (s->cells[i].possible)
            w.cells[tasks.count++] = &s->cells[i];
    if (!tasks.count) {
        *e = s->cells[0].refusal;
        return false;
    }
    w.errors = NEW(a, struct error, tasks.count);
    runner_run(runner, *a, &tasks);
    for (ptrdiff_t i = 0; i < tasks.count; i++) {
        if (w.errors[i].code == ERROR_NONE)
            continue;
        *e = w.errors[i];
        return false;
    }
    return true;
}
