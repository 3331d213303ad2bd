// See benchmark.h.
#include "core/time/benchmark.h"

#include <stddef.h>

#include "core/time/kernel.h"

// A constant that is measured: the samples say by what it is to be multiplied, or what it is.
enum constant {
    PRODUCTS,
    WIDE_PRODUCTS,
    GROUPED_PRODUCTS,
    ATTENTION,
    ATTENTION_BACK,
    FLASH2,
    FLASH2_BACK,
    MASKED,
    BANDWIDTH,
    KERNEL_GAP,
    HOST_CALLS,
    HOST_LINK,
    HOST_ADAM,
    PRODUCT_LASTING,
    ATTENTION_LASTING,
    CONSTANTS
};

// Written as whole numbers of a unit, between what any card can have.
static const struct constant_row {
    const char *name, *title;
    int digits;          // that are shown of the value by `scale`,
    const char *measure; // in this
    ptrdiff_t offset;    // in struct rates; -1: of all that the host does
    double unit, least, most, scale;
} constants[CONSTANTS] = {
#define RATE(field) offsetof(struct rates, field)
    [PRODUCTS] = {"product_flops", "products", 0, " TFLOP/s", RATE(product_flops), 1, 1e11, 1e17,
                  1e12},
    [WIDE_PRODUCTS] = {"wide_product_flops", "products in fp32", 1, " TFLOP/s",
                       RATE(wide_product_flops), 1, 1e10, 1e16, 1e12},
    [GROUPED_PRODUCTS] = {"grouped_ppm", "products of experts, of these", 2, "", RATE(grouped_part),
                          1e-6, 0.01, 10, 1},
    [ATTENTION] = {"attention_flops", "attention", 0, " TFLOP/s", RATE(attention_flops), 1, 1e10,
                   1e17, 1e12},
    [ATTENTION_BACK] = {"attention_back_flops", "attention, backward", 0, " TFLOP/s",
                        RATE(attention_back_flops), 1, 1e10, 1e17, 1e12},
    [FLASH2] = {"flash2_flops", "FlashAttention 2", 0, " TFLOP/s", RATE(flash2_flops), 1, 1e10,
                1e17, 1e12},
    [FLASH2_BACK] = {"flash2_back_flops", "FlashAttention 2, backward", 0, " TFLOP/s",
                     RATE(flash2_back_flops), 1, 1e10, 1e17, 1e12},
    [MASKED] = {"masked_ppm", "attention with a mask, of these", 2, "", RATE(masked_part), 1e-6,
                0.01, 10, 1},
    [BANDWIDTH] = {"bandwidth", "memory", 0, " GB/s", RATE(bandwidth), 1, 1e9, 1e15, 1e9},
    [KERNEL_GAP] = {"kernel_gap_ns", "the least of a kernel", 1, " us", RATE(kernel_gap), 1e-9,
                    1e-7, 1e-3, 1e-6},
    [HOST_CALLS] = {"host_ppm", "the host's calls, of the usual time", 2, "", -1, 1e-6, 0.01, 100,
                    1},
    [HOST_LINK] = {"host_link", "to and from the host", 0, " GB/s", RATE(host_link), 1, 1e8, 1e13,
                   1e9},
    [HOST_ADAM] = {"host_adam", "parameters that a core updates", 0, " M/s", RATE(host_adam), 1,
                   1e5, 1e12, 1e6},
    [PRODUCT_LASTING] = {"product_lasting_ppm", "a second of products, of bursts", 2, "",
                         RATE(product_lasting), 1e-6, 1, 10, 1},
    [ATTENTION_LASTING] = {"attention_lasting_ppm", "a second of attention, of bursts", 2, "",
                           RATE(attention_lasting), 1e-6, 1, 10, 1},
#undef RATE
};

enum { MOST_SAMPLES = 2000 };

struct benchmark {
    struct rates rates;
    const char *card;
    double samples[CONSTANTS][MOST_SAMPLES];
    int count[CONSTANTS];
};

struct benchmark *benchmark_new(struct arena *a, const struct gpu *card)
{
    struct benchmark *b = NEW(a, struct benchmark, 1);
    b->rates = rates_of(card);
    b->card = card->name;
    return b;
}

static void take(struct benchmark *b, enum constant which, double sample)
{
    if (sample > 0 && b->count[which] < MOST_SAMPLES)
        b->samples[which][b->count[which]++] = sample;
}

static double number(const struct value *line, const char *key)
{
    double value;
    return value_double(&value, value_get(line, key)) ? value : 0;
}

static uint64_t count_of(const struct value *line, const char *key)
{
    uint64_t value;
    return value_u64(&value, value_get(line, key)) ? value : 0;
}

static bool is_true(const struct value *line, const char *key)
{
    bool value;
    return value_bool(&value, value_get(line, key)) && value;
}

static struct str text_of(const struct value *line, const char *key)
{
    struct str text;
    return value_str(&text, value_get(line, key)) ? text : STR_NONE;
}

// Too short to tell a rate from what every kernel takes.
static const double LONG_ENOUGH = 100e-6;

static void add_product(struct benchmark *b, const struct value *line, double seconds)
{
    uint64_t count = count_of(line, "count");
    struct product_shape p = {.rows = count_of(line, "rows"),
                              .columns = count_of(line, "columns"),
                              .depth = count_of(line, "depth"),
                              .count = count ? count : 1,
                              .width = (uint32_t)count_of(line, "width"),
                              .grouped = is_true(line, "grouped")};
    if (!p.rows || !p.columns || !p.depth || seconds < LONG_ENOUGH || is_true(line, "tf32"))
        return;
    double ratio = product_seconds(&b->rates, &p) / seconds;
    take(b, p.width == 4 ? WIDE_PRODUCTS : p.grouped ? GROUPED_PRODUCTS : PRODUCTS, ratio);
}

static void add_attention(struct benchmark *b, const struct value *line, double seconds)
{
    struct str backend = text_of(line, "backend");
    struct attending_shape a = {.rows = count_of(line, "rows"),
                                .tokens = count_of(line, "tokens"),
                                .heads = count_of(line, "heads"),
                                .kv_heads = count_of(line, "kv_heads"),
                                .head_dim = count_of(line, "head_dim"),
                                .all_pairs = is_true(line, "masked"),
                                .flash2 = str_is(backend, "flash"),
                                .backward = is_true(line, "backward")};
    if (seconds < LONG_ENOUGH || !a.tokens || (!a.flash2 && !str_is(backend, "default")))
        return;
    double ratio = attending_seconds(&b->rates, &a) / seconds;
    take(b,
         a.all_pairs  ? MASKED
         : a.flash2   ? (a.backward ? FLASH2_BACK : FLASH2)
         : a.backward ? ATTENTION_BACK
                      : ATTENTION,
         ratio);
}

static void add_move(struct benchmark *b, const struct value *line, double seconds)
{
    static const double large = 1 << 28, tiny = 1 << 16; // bytes
    double bytes = number(line, "bytes");
    if (!str_is(text_of(line, "name"), "add"))
        return;
    if (bytes >= large)
        take(b, BANDWIDTH, bytes / seconds);
    if (bytes <= tiny)
        take(b, KERNEL_GAP, seconds);
}

// What the calls took on the host that the constants were fitted on.
static const struct {
    const char *name;
    double seconds;
} reference_calls[] = {{"add", 10.5e-6}, {"add, kept", 12.8e-6}, {"linear, kept", 28.7e-6}};

static void add_call(struct benchmark *b, const struct value *line, double seconds)
{
    for (int i = 0; i < COUNT_OF(reference_calls); i++)
        if (str_is(text_of(line, "name"), reference_calls[i].name))
            take(b, HOST_CALLS, seconds / reference_calls[i].seconds);
}

static void add_lasting(struct benchmark *b, const struct value *line, double seconds)
{
    struct str name = text_of(line, "name");
    double first = number(line, "first");
    if (!str_is(text_of(line, "data"), "random") || first <= 0 || seconds < first)
        return;
    if (str_starts(name, STR("product")))
        take(b, PRODUCT_LASTING, seconds / first);
    if (str_starts(name, STR("attention")) && !str_ends(name, STR("backward")))
        take(b, ATTENTION_LASTING, seconds / first);
}

// On the host that the constants were fitted on, 16 cores took 0.0368 s for 32 million parameters.
static void add_host_adam(struct benchmark *b, const struct value *line, double seconds)
{
    static const double reference = 32e6 / 0.0368 / 16;
    double cores = number(line, "cores");
    if (cores > 0)
        take(b, HOST_ADAM,
             number(line, "parameters") / seconds / cores / reference * b->rates.host_adam);
}

void benchmark_add(struct benchmark *b, const struct value *line)
{
    struct str kind = text_of(line, "kind");
    double seconds = number(line, "seconds");
    if (!str_is(text_of(line, "fathom"), "kernel") || !(seconds > 0))
        return;
    if (str_is(kind, "product"))
        add_product(b, line, seconds);
    else if (str_is(kind, "attention"))
        add_attention(b, line, seconds);
    else if (str_is(kind, "move"))
        add_move(b, line, seconds);
    else if (str_is(kind, "host"))
        add_call(b, line, seconds);
    else if (str_is(kind, "sustained"))
        add_lasting(b, line, seconds);
    else if (str_is(kind, "copy") && str_starts(text_of(line, "name"), STR("pinned")))
        take(b, HOST_LINK, number(line, "bytes") / seconds);
    else if (str_is(kind, "host_adam") && str_is(text_of(line, "name"), "foreach"))
        add_host_adam(b, line, seconds);
}

// ------------------------------------------------------------------ the constants

static double median(double *values, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && values[k] < values[k - 1]; k--) {
            double swap = values[k];
            values[k] = values[k - 1];
            values[k - 1] = swap;
        }
    return values[count / 2];
}

static double *rate_at(struct rates *r, int which)
{
    void *place = (char *)r + constants[which].offset;
    return place;
}

// Ratios change the constant they were made with; the rest is as measured.
static double concluded(struct benchmark *b, int which)
{
    double found = median(b->samples[which], b->count[which]);
    return which > MASKED ? found : found * *rate_at(&b->rates, which);
}

bool benchmark_conclude(struct measured_constants *m, struct benchmark *b)
{
    *m = (struct measured_constants){.card = b->card};
    if (!b->count[PRODUCTS] || !b->count[BANDWIDTH])
        return false;
    for (int i = 0; i < CONSTANTS; i++)
        if (b->count[i])
            m->rows[m->count++] =
                (struct measured_constant){constants[i].title,
                                           constants[i].name,
                                           constants[i].measure,
                                           constants[i].digits,
                                           constants[i].unit,
                                           concluded(b, i),
                                           constants[i].offset < 0 ? 1 : *rate_at(&b->rates, i),
                                           constants[i].scale};
    return true;
}

void benchmark_write(struct buf *out, const struct measured_constants *m)
{
    for (int i = 0; i < m->count; i++)
        buf_printf(out, "%s=%.0f\n", m->rows[i].name, m->rows[i].measured / m->rows[i].unit);
}

// ------------------------------------------------------------------ and back

static void slow_host(struct rates *r, double part)
{
    double *const all[] = {&r->call,       &r->engine,      &r->launch,       &r->keep,
                           &r->frame,      &r->unit,        &r->step,         &r->unit_tensor,
                           &r->flat_unit,  &r->zero_module, &r->tensor,       &r->sharded_tensor,
                           &r->flat_views, &r->adapter,     &r->zero_gather,  &r->zero_search,
                           &r->zero_pass,  &r->cut_call,    &r->cut_gradient, &r->cut_tensor};
    for (int i = 0; i < COUNT_OF(all); i++)
        *all[i] *= part;
}

static const struct setting *stored(const struct settings *s, const char *card, const char *name)
{
    char key[128];
    struct buf b = buf_over(key, sizeof key);
    buf_printf(&b, "kernels.%s.%s", card, name);
    return settings_find(s, buf_str(&b));
}

bool rates_measured(struct rates *r, bool *found, const struct gpu *card, const struct settings *s,
                    struct error *e)
{
    *found = false;
    for (int i = 0; i < CONSTANTS; i++) {
        const struct constant_row *c = &constants[i];
        const struct setting *item = stored(s, card->name, c->name);
        uint64_t units;
        if (!item)
            continue;
        bool read = unit_parse(&units, UNIT_PLAIN, item->value) == UNIT_OK;
        double value = read ? (double)units * c->unit : 0;
        if (value < c->least || value > c->most)
            return FAIL(e, BAD_INPUT, item->where, "no card has this %s", c->name);
        *found = true;
        if (c->offset < 0)
            slow_host(r, value);
        else
            *rate_at(r, i) = value;
    }
    return true;
}
