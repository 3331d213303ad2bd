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

const struct gpu *gpu_at(ptrdiff_t i)
{
    if (i < gpu_catalog_count)
        return &gpu_catalog[i];
    i -= gpu_catalog_count;
    return i < further_card_count ? &further_cards[i] : NULL;
}

static const struct gpu *find_row(struct str name)
{
    const struct gpu *g;
    for (ptrdiff_t i = 0; (g = gpu_at(i)); i++)
        if (answers_to(g, name))
            return g;
    return NULL;
}

static void strip_word(struct str *name, const char *word)
{
    struct str w = str_from(word);
    if (name->n <= w.n || !str_equal_nocase(str_slice(*name, 0, w.n), w))
        return;
    *name = str_slice(*name, w.n, name->n);
    while (name->n && is_separator(name->p[0]))
        *name = str_slice(*name, 1, name->n);
}

// "NVIDIA Tesla T4 GPU" is a T4.
static struct str without_maker(struct str name)
{
    static const char *const makers[] = {"NVIDIA", "AMD", "Instinct", "Tesla", "GeForce"};
    struct str gpu = STR("gpu");
    for (ptrdiff_t i = 0; i < COUNT_OF(makers); i++)
        strip_word(&name, makers[i]);
    if (name.n > gpu.n && str_equal_nocase(str_slice(name, name.n - gpu.n, name.n), gpu))
        name = str_trim(str_slice(name, 0, name.n - gpu.n));
    return name;
}

// And "A100-80GB" an A100-80G.
static struct str plain_name(struct str name)
{
    struct str gb = STR("gb"), plain = without_maker(name);
    bool has_gb = plain.n > gb.n && str_equal_nocase(str_slice(plain, plain.n - gb.n, plain.n), gb);
    return has_gb ? str_slice(plain, 0, plain.n - 1) : plain;
}

const struct gpu *gpu_find(struct str name)
{
    const struct str spellings[] = {name, without_maker(name), plain_name(name)};
    const struct gpu *row = NULL;
    for (ptrdiff_t i = 0; i < COUNT_OF(spellings) && !row; i++)
        row = find_row(spellings[i]);
    return row;
}

const struct gpu *gpu_find_nvml(struct str nvml_name)
{
    const struct gpu *g;
    for (ptrdiff_t i = 0; (g = gpu_at(i)); i++)
        if (g->nvml_name && str_is(nvml_name, g->nvml_name))
            return g;
    return NULL;
}

struct reader {
    struct arena *arena;
    struct str rest;
    struct str where;
};

// Whether a card's name begins so, but for case and separators: "RTX 6000" RTX6000-Ada.
static bool begins_card(struct str card, struct str name)
{
    ptrdiff_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < card.n && is_separator(card.p[i]))
            i++;
        while (j < name.n && is_separator(name.p[j]))
            j++;
        if (j == name.n || i == card.n)
            return j == name.n && j >= 2 && i < card.n;
        if (char_lower(card.p[i]) != char_lower(name.p[j]))
            return false;
    }
}

// "A100" alone names no row, but every row that begins so is worth naming.
static bool unknown_card(struct str name, const struct reader *r, struct error *e)
{
    FAIL(e, BAD_INPUT, r->where, "there is no GPU '%.*s'", STR_ARGS(str_short(name)));
    if (gpu_is_other_make(name))
        return HINT(e, "only torch's allocator for CUDA and ROCm is modelled, and this accelerator "
                       "has another");
    if (str_cut(name, ',').found && !str_cut(name, '{').found)
        return HINT(e,
                    "one machine is wanted here; 'fathom max' and 'fathom guide' compare several");
    uint64_t count;
    if (unit_parse(&count, UNIT_PLAIN, name) == UNIT_OK)
        return HINT(e, "a card's name is wanted too, as in %.*sxH100-80G",
                    STR_ARGS(str_short(name)));
    struct arena scratch = *r->arena;
    struct buf alike = buf_in(&scratch);
    name = plain_name(name);
    struct str_nearest nearest = str_nearest_to(name);
    const struct gpu *g;
    for (ptrdiff_t i = 0; (g = gpu_at(i)); i++) {
        struct str row = str_from(g->name);
        str_nearest_offer(&nearest, row);
        struct words also = words_of(g->also, ' ');
        while (words_next(&also))
            str_nearest_offer(&nearest, also.word);
        if (begins_card(row, name))
            buf_printf(&alike, "%s%.*s", alike.n ? " or " : "", STR_ARGS(row));
    }
    if (alike.n)
        return HINT(e, "did you mean %.*s?", STR_ARGS(buf_str(&alike)));
    if (nearest.best.n)
        return HINT(e, "did you mean '%.*s'?", STR_ARGS(nearest.best));
    return HINT(e, "'fathom gpus' lists the catalogue; any other card can be written as "
                   "custom:memory=48GiB,bf16=181TFLOPS");
}

// The bytes of an "x", "*" or multiplication sign at the beginning; 0 where there is none.
static ptrdiff_t times_length(struct str text)
{
    struct str sign = STR("\xc3\x97");
    if (text.n && (char_lower(text.p[0]) == 'x' || text.p[0] == '*'))
        return 1;
    return str_starts(text, sign) ? sign.n : 0;
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
    ptrdiff_t sign = digits ? times_length(str_slice(r->rest, end, r->rest.n)) : 0;
    if (!sign)
        return true;
    struct setting item = {STR("a number of GPUs or nodes"), str_slice(r->rest, 0, digits_end),
                           r->where};
    if (!setting_number(count, &item, UNIT_COUNT, (struct range){1, max}, e))
        return false;
    r->rest = str_trim(str_slice(r->rest, end + sign, r->rest.n));
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
                    "a card's figures are of the form memory=48GiB, not '%.*s'; eight such cards "
                    "are 8x and its name",
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

// As sold: torch sees about 2 % less (23.52 GiB of an RTX 4090's 24 GB, 39.38 of an A100's 40).
static uint64_t bytes_as_sold(uint64_t gigabytes)
{
    return gigabytes * GIB / 100 * 98;
}

// The digits before a last "G" or "GB", and what stands before them; 0 where there are none.
static uint64_t cut_size(struct str *base, struct str name)
{
    enum { MOST_DIGITS = 4 };
    struct str plain = plain_name(name);
    ptrdiff_t end = plain.n - 1, first;
    uint64_t size = 0;
    if (end < 1 || char_lower(plain.p[end]) != 'g')
        return 0;
    while (end > 0 && plain.p[end - 1] == ' ')
        end--;
    for (first = end; first > 0 && char_is_digit(plain.p[first - 1]);)
        first--;
    if (first == end || end - first > MOST_DIGITS)
        return 0;
    for (ptrdiff_t i = first; i < end; i++)
        size = size * 10 + (uint64_t)(plain.p[i] - '0');
    while (first > 0 && is_separator(plain.p[first - 1]))
        first--;
    *base = str_slice(plain, 0, first);
    return size;
}

// How often the size of a card may be written behind its name: GeForce cards are rebuilt with more.
static uint64_t most_of(const struct gpu *row)
{
    return str_starts(str_from(row->title), STR("NVIDIA GeForce")) ? 3 : 1;
}

// "24GB" is some card of that size, "A10-20GB" a part of a card, as virtual ones are, and "RTX 4090
// 48GB" one that was given more.
static bool read_size(struct gpu *card, bool *custom, const struct reader *r, struct str name)
{
    struct str base;
    uint64_t size = cut_size(&base, name), bytes = bytes_as_sold(size);
    const struct gpu *row = size && base.n ? gpu_find(base) : NULL;
    if (!size || (base.n && !(row && bytes / most_of(row) < row->memory.value)))
        return false;
    *custom = !row;
    *card = row ? *row
                : (struct gpu){.title = "card of this size",
                               .context = {414 * MIB, "as seen on an A100 (Mooncake#3973)"},
                               .per_node = USUAL_NODE};
    card->name = str_format(r->arena, "%s%s%lluG", row ? row->name : "", row ? "-" : "",
                            (unsigned long long)size)
                     .p;
    card->memory = (struct figure){
        bytes, "as written, less the 2 % that torch does not see of others; not measured"};
    return true;
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
        if (!row && !read_size(card, custom, r, name))
            return unknown_card(name, r, e);
        if (row)
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

// "H100x8": the count behind the card, where that is one.
static bool read_count_behind(uint64_t *count, struct reader *r, struct error *e)
{
    ptrdiff_t digits = r->rest.n;
    while (digits > 0 && char_is_digit(r->rest.p[digits - 1]))
        digits--;
    ptrdiff_t times = digits;
    while (times > 0 && r->rest.p[times - 1] == ' ')
        times--;
    struct str before = str_slice(r->rest, 0, times), sign = STR("\xc3\x97");
    ptrdiff_t length = str_ends(before, sign) ? sign.n : 1;
    if (digits == r->rest.n || times <= length ||
        times_length(str_slice(before, times - length, times)) != length)
        return true;
    struct str name = str_trim(str_slice(before, 0, times - length));
    struct gpu card;
    bool custom;
    if (!gpu_find(name) && !read_size(&card, &custom, r, name))
        return true;
    struct setting item = {STR("a number of GPUs"), str_slice(r->rest, digits, r->rest.n),
                           r->where};
    r->rest = name;
    return setting_number(count, &item, UNIT_COUNT, (struct range){1, MAX_NODES}, e);
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
    if (!first && !read_count_behind(&first, &r, e))
        return false;
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
        return FAIL(e, BAD_INPUT, STR("--gpu"), "no GPU is given; --gpu 8xH100-80G is an example");
    return hardware_from_spec(h, a, spec, e);
}

uint64_t hardware_gpus(const struct hardware *h)
{
    return h->nodes * h->gpus_per_node;
}
