// "4x8xH100-80G:memory=94GiB" into a struct hardware: counts, then a card by name or "custom", then
// figures that replace the card's own.
#include "core/hardware/hardware.h"

#include <string.h>

// Bounds that keep the bytes of a whole machine within 64 bits (a card has at most 2^42).
enum { MAX_NODES = 65536, MAX_GPUS_PER_NODE = 1024, MAX_GPUS = 1 << 20 };

enum { USUAL_NODE = 8 }; // GPUs that one count may put into one node

static bool is_separator(char c)
{
    return c == '-' || c == '_' || c == ' ';
}

// Equal but for case, dashes, underscores and spaces.
static bool same_card(struct str a, struct str b)
{
    ptrdiff_t i = 0, j = 0;
    for (;;) {
        while (i < a.n && is_separator(a.p[i]))
            i++;
        while (j < b.n && is_separator(b.p[j]))
            j++;
        if (i == a.n || j == b.n)
            return i == a.n && j == b.n;
        if (char_lower(a.p[i++]) != char_lower(b.p[j++]))
            return false;
    }
}

static bool answers_to(const struct gpu *g, struct str name)
{
    struct words also = words_of(g->also, ' ');
    if (same_card(name, str_from(g->name)))
        return true;
    while (words_next(&also))
        if (same_card(name, also.word))
            return true;
    return false;
}

const struct gpu *gpu_find(struct str name)
{
    for (ptrdiff_t i = 0; i < gpu_catalog_count; i++)
        if (answers_to(&gpu_catalog[i], name))
            return &gpu_catalog[i];
    return NULL;
}

const struct gpu *gpu_find_nvml(struct str nvml_name)
{
    for (ptrdiff_t i = 0; i < gpu_catalog_count; i++)
        if (gpu_catalog[i].nvml_name && str_is(nvml_name, gpu_catalog[i].nvml_name))
            return &gpu_catalog[i];
    return NULL;
}

struct reader {
    struct arena *arena;
    struct str rest;
    struct str where;
};

// "A100" alone names no row, but every row that begins so is worth naming.
static bool unknown_card(struct str name, const struct reader *r, struct error *e)
{
    FAIL(e, BAD_INPUT, r->where, "there is no GPU '%.*s'", STR_ARGS(str_short(name)));
    struct arena scratch = *r->arena;
    struct buf alike = buf_in(&scratch);
    struct str_nearest nearest = str_nearest_to(name);
    for (ptrdiff_t i = 0; i < gpu_catalog_count; i++) {
        struct str row = str_from(gpu_catalog[i].name);
        str_nearest_offer(&nearest, row);
        struct words also = words_of(gpu_catalog[i].also, ' ');
        while (words_next(&also))
            str_nearest_offer(&nearest, also.word);
        bool begins =
            name.n >= 2 && row.n > name.n && str_equal_nocase(name, str_slice(row, 0, name.n));
        if (begins)
            buf_printf(&alike, "%s%.*s", alike.n ? " or " : "", STR_ARGS(row));
    }
    if (alike.n)
        return HINT(e, "did you mean %.*s?", STR_ARGS(buf_str(&alike)));
    if (nearest.best.n)
        return HINT(e, "did you mean '%.*s'?", STR_ARGS(nearest.best));
    return HINT(e, "'fathom gpus' lists the catalogue; any other card can be written as "
                   "custom:memory=48GiB,bf16=181TFLOPS");
}

// A leading "8x". Leaves *count at 0 when there is none; a card's name never begins with digits and
// an x.
static bool read_count(uint64_t *count, struct reader *r, uint64_t max, struct error *e)
{
    *count = 0;
    ptrdiff_t digits = 0;
    bool negative = r->rest.n > 1 && r->rest.p[0] == '-' && char_is_digit(r->rest.p[1]);
    ptrdiff_t start = negative ? 1 : 0;
    while (start + digits < r->rest.n && char_is_digit(r->rest.p[start + digits]))
        digits++;
    ptrdiff_t digits_end = start + digits, end = digits_end;
    while (end < r->rest.n && r->rest.p[end] == ' ')
        end++;
    bool times = digits && end < r->rest.n && char_lower(r->rest.p[end]) == 'x';
    if (!times)
        return true;
    struct setting item = {STR("a number of GPUs or nodes"), str_slice(r->rest, 0, digits_end),
                           r->where};
    if (!setting_number(count, &item, UNIT_COUNT, (struct range){1, max}, e))
        return false;
    r->rest = str_trim(str_slice(r->rest, end + 1, r->rest.n));
    return true;
}

static const struct gpu_field *find_field(struct str key)
{
    for (ptrdiff_t i = 0; i < gpu_field_count; i++)
        if (str_is(key, gpu_fields[i].key))
            return &gpu_fields[i];
    return NULL;
}

static bool unknown_figure(struct str key, const struct reader *r, struct error *e)
{
    struct arena scratch = *r->arena;
    struct buf known = buf_in(&scratch);
    for (ptrdiff_t i = 0; i < gpu_field_count; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", gpu_fields[i].key);
    FAIL(e, BAD_INPUT, r->where, "a card has no '%.*s'", STR_ARGS(str_short(key)));
    return HINT(e, "a card's figures are %.*s", STR_ARGS(buf_str(&known)));
}

static bool read_figure(struct gpu *g, const struct reader *r, struct str piece, struct error *e)
{
    struct str_cut pair = str_cut(piece, '=');
    struct str key = str_trim(pair.head);
    if (!pair.found)
        return FAIL(e, BAD_INPUT, r->where,
                    "a card's figures are of the form memory=48GiB, not '%.*s'",
                    STR_ARGS(str_short(piece)));
    const struct gpu_field *f = find_field(key);
    if (!f)
        return unknown_figure(key, r, e);
    struct setting item = {key, str_trim(pair.tail), r->where};
    struct figure figure = {0, str_format(r->arena, "given by %.*s", STR_ARGS(r->where)).p};
    if (!setting_number(&figure.value, &item, f->kind, f->range, e))
        return false;
    memcpy((char *)g + f->offset, &figure, sizeof figure);
    return true;
}

static bool read_figures(struct gpu *g, const struct reader *r, struct str list, struct error *e)
{
    for (struct str_cut c = str_cut(list, ',');; c = str_cut(c.tail, ',')) {
        if (!read_figure(g, r, str_trim(c.head), e))
            return false;
        if (!c.found)
            return true;
    }
}

static bool read_card(struct gpu *card, bool *custom, const struct reader *r, struct error *e)
{
    struct str_cut c = str_cut(r->rest, ':');
    struct str name = str_trim(c.head), figures = c.tail;
    bool braces = r->rest.n >= 2 && r->rest.p[0] == '{' && r->rest.p[r->rest.n - 1] == '}';
    if (braces) {
        name = STR("custom");
        figures = str_slice(r->rest, 1, r->rest.n - 1);
    }
    *custom = str_equal_nocase(name, STR("custom"));
    if (!*custom) {
        const struct gpu *row = gpu_find(name);
        if (!row)
            return unknown_card(name, r, e);
        *card = *row;
        return !c.found || read_figures(card, r, figures, e);
    }
    *card = (struct gpu){.name = "custom", .title = "custom card", .per_node = 8};
    if (!read_figures(card, r, figures, e))
        return false;
    if (!card->memory.value)
        return FAIL(e, BAD_INPUT, r->where, "a custom card needs its memory, as in memory=48GiB");
    return true;
}

// "16xH100-80G" is two nodes of the card's usual size; "1x16xH100-80G" is one node of sixteen.
static void spread_over_nodes(struct hardware *h)
{
    uint64_t gpus = h->gpus_per_node, size = h->card.per_node;
    if (gpus <= USUAL_NODE || !size || gpus % size)
        return;
    h->nodes = gpus / size;
    h->gpus_per_node = size;
    h->spread = true;
}

bool hardware_from_spec(struct hardware *h, struct arena *a, const struct setting *spec,
                        struct error *e)
{
    struct reader r = {a, str_trim(spec->value), spec->where};
    struct hardware found = {0};
    uint64_t first, second;
    if (str_equal_nocase(r.rest, STR("auto")))
        return FAIL(e, UNSUPPORTED, spec->where,
                    "auto needs the machine itself; name the GPUs here");
    if (!read_count(&first, &r, MAX_NODES, e) || !read_count(&second, &r, MAX_GPUS_PER_NODE, e))
        return false;
    if (!r.rest.n)
        return FAIL(e, BAD_INPUT, spec->where, "gpu names no card; 8xH100-80G is an example");
    if (!read_card(&found.card, &found.custom, &r, e))
        return false;
    found.nodes = second ? first : 1;
    found.gpus_per_node = second ? second : first ? first : 1;
    if (!second)
        spread_over_nodes(&found);
    if (found.gpus_per_node > MAX_GPUS_PER_NODE)
        return FAIL(e, BAD_INPUT, spec->where,
                    "a node has at most %d GPUs, not %llu; write nodes x GPUs, as in 4x8xH100-80G",
                    MAX_GPUS_PER_NODE, (unsigned long long)found.gpus_per_node);
    if (hardware_gpus(&found) > MAX_GPUS)
        return FAIL(e, BAD_INPUT, spec->where, "a machine has at most %d GPUs, not %llu", MAX_GPUS,
                    (unsigned long long)hardware_gpus(&found));
    *h = found;
    return true;
}

bool hardware_from_settings(struct hardware *h, struct arena *a, const struct settings *s,
                            struct error *e)
{
    const struct setting *spec = settings_find_z(s, "gpu");
    if (!spec)
        return FAIL(e, BAD_INPUT, STR("--gpu"), "no GPU is given");
    return hardware_from_spec(h, a, spec, e);
}

uint64_t hardware_gpus(const struct hardware *h)
{
    return h->nodes * h->gpus_per_node;
}
