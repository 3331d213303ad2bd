// One decimal reader for every unit, and the printers that go with it.
#include "core/base/units.h"

#include "core/base/num.h"

struct suffix {
    const char *text;
    uint64_t factor;
};

static const struct suffix count_suffixes[] = {
    {"", 1}, {"k", KIB}, {"K", KIB}, {"M", MIB}, {"G", GIB},
};
static const struct suffix plain_suffixes[] = {{"", 1}};
static const struct suffix byte_suffixes[] = {
    {"", 1},
    {"B", 1},
    {"KiB", KIB},
    {"MiB", MIB},
    {"GiB", GIB},
    {"TiB", GIB * 1024},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", UINT64_C(1000000000000)},
    {"M", 1000000}, // the lesser of what people mean by it
    {"G", 1000000000},
    {"T", UINT64_C(1000000000000)},
};
static const struct suffix flop_suffixes[] = {
    {"TFLOPS", UINT64_C(1000000000000)},
    {"TFLOP/s", UINT64_C(1000000000000)},
    {"PFLOPS", UINT64_C(1000000000000000)},
    {"PFLOP/s", UINT64_C(1000000000000000)},
};
static const struct suffix speed_suffixes[] = {
    {"MB/s", 1000000},
    {"GB/s", 1000000000},
    {"TB/s", UINT64_C(1000000000000)},
};

static const struct {
    const struct suffix *suffixes;
    ptrdiff_t count;
    const char *examples;
} kinds[] = {
    [UNIT_COUNT] = {count_suffixes, COUNT_OF(count_suffixes),
                    "a whole number such as 32768 or 32k"},
    [UNIT_PLAIN] = {plain_suffixes, COUNT_OF(plain_suffixes), "a whole number"},
    [UNIT_BYTES] = {byte_suffixes, COUNT_OF(byte_suffixes), "a size such as 79.15GiB or 80GB"},
    [UNIT_FLOPS] = {flop_suffixes, COUNT_OF(flop_suffixes), "a rate such as 989TFLOPS"},
    [UNIT_SPEED] = {speed_suffixes, COUNT_OF(speed_suffixes), "a speed such as 450GB/s"},
};

struct decimal {
    uint64_t whole;
    uint64_t fraction; // in millionths
    struct str rest;
    enum unit_result result;
};

// As in 5e8. Returns how long it is.
static ptrdiff_t read_exponent(struct decimal *d, struct str text)
{
    ptrdiff_t i = 1;
    uint64_t power = 0;
    if (text.n < 2 || (text.p[0] != 'e' && text.p[0] != 'E') || !char_is_digit(text.p[1]))
        return 0;
    for (; i < text.n && char_is_digit(text.p[i]); i++)
        power = sat_add(sat_mul(power, 10), (uint64_t)(text.p[i] - '0'));
    for (; power > 0 && d->whole != U64_SATURATED && (d->whole || d->fraction); power--) {
        uint64_t tenth = d->fraction * 10 / 1000000;
        d->whole = sat_add(sat_mul(d->whole, 10), tenth);
        d->fraction = d->fraction * 10 % 1000000;
    }
    return i;
}

static struct decimal read_decimal(struct str text)
{
    struct decimal d = {.rest = text};
    ptrdiff_t i = 0, digits = 0;
    for (; i < text.n && char_is_digit(text.p[i]); i++, digits++)
        d.whole = sat_add(sat_mul(d.whole, 10), (uint64_t)(text.p[i] - '0'));
    if (i < text.n && text.p[i] == '.') {
        uint64_t place = 1000000;
        for (i++; i < text.n && char_is_digit(text.p[i]); i++, digits++) {
            place /= 10;
            d.fraction += place * (uint64_t)(text.p[i] - '0');
        }
    }
    if (digits > 0)
        i += read_exponent(&d, str_slice(text, i, text.n));
    d.rest = str_trim(str_slice(text, i, text.n));
    if (digits == 0)
        d.result = UNIT_NOT_A_NUMBER;
    else if (d.whole == U64_SATURATED)
        d.result = UNIT_TOO_LARGE;
    return d;
}

enum unit_result unit_parse(uint64_t *value, enum unit_kind kind, struct str text)
{
    text = str_trim(text);
    if (text.n > 1 && text.p[0] == '-' && char_is_digit(text.p[1]))
        return UNIT_NEGATIVE;
    struct decimal d = read_decimal(text);
    if (d.result != UNIT_OK)
        return d.result;
    for (ptrdiff_t i = 0; i < kinds[kind].count; i++) {
        const struct suffix *s = &kinds[kind].suffixes[i];
        if (!str_equal_nocase(d.rest, str_from(s->text)))
            continue;
        if (s->factor == 1 && d.fraction)
            return UNIT_NOT_A_NUMBER;
        uint64_t large = s->factor / 1000000 * d.fraction;
        uint64_t small = s->factor % 1000000 * d.fraction / 1000000;
        uint64_t scaled = sat_add(sat_mul(d.whole, s->factor), sat_add(large, small));
        if (scaled == U64_SATURATED)
            return UNIT_TOO_LARGE;
        *value = scaled;
        return UNIT_OK;
    }
    return UNIT_UNKNOWN_SUFFIX;
}

const char *unit_examples(enum unit_kind kind)
{
    return kinds[kind].examples;
}

// Rounded to the nearest hundredth, as torch prints its sizes.
static void put_hundredths(struct buf *b, uint64_t value, uint64_t unit, const char *name)
{
    uint64_t hundredths = value / unit * 100 + (value % unit * 100 + unit / 2) / unit;
    buf_printf(b, "%llu.%02llu%s", (unsigned long long)(hundredths / 100),
               (unsigned long long)(hundredths % 100), name);
}

void put_gib(struct buf *b, uint64_t bytes)
{
    put_hundredths(b, bytes, GIB, " GiB");
}

void put_bytes(struct buf *b, uint64_t bytes)
{
    if (bytes >= GIB)
        put_gib(b, bytes);
    else if (bytes >= MIB)
        buf_printf(b, "%llu MiB", (unsigned long long)((bytes + MIB / 2) / MIB));
    else if (bytes >= 10 * KIB)
        buf_printf(b, "%llu KiB", (unsigned long long)((bytes + KIB / 2) / KIB));
    else
        buf_printf(b, "%llu B", (unsigned long long)bytes);
}

void put_grouped(struct buf *b, uint64_t count)
{
    uint64_t divisor = 1;
    while (count / divisor >= 1000)
        divisor *= 1000;
    buf_printf(b, "%llu", (unsigned long long)(count / divisor));
    while (divisor > 1) {
        divisor /= 1000;
        buf_printf(b, ",%03llu", (unsigned long long)(count / divisor % 1000));
    }
}

void put_tokens(struct buf *b, uint64_t tokens)
{
    if (tokens >= KIB && tokens % KIB == 0)
        buf_printf(b, "%lluk", (unsigned long long)(tokens / KIB));
    else
        buf_printf(b, "%llu", (unsigned long long)tokens);
}

static void put_in_units_of(struct buf *b, uint64_t value, uint64_t unit)
{
    if (value % unit == 0)
        buf_printf(b, "%llu", (unsigned long long)(value / unit));
    else
        buf_printf(b, "%llu.%llu", (unsigned long long)(value / unit),
                   (unsigned long long)(value % unit / (unit / 10)));
}

void put_flops(struct buf *b, uint64_t flops)
{
    put_in_units_of(b, flops, UINT64_C(1000000000000));
}

void put_speed(struct buf *b, uint64_t per_second)
{
    put_in_units_of(b, per_second, UINT64_C(1000000000));
}

void put_unit(struct buf *b, enum unit_kind kind, uint64_t value)
{
    switch (kind) {
    case UNIT_COUNT:
    case UNIT_PLAIN:
        buf_printf(b, "%llu", (unsigned long long)value);
        return;
    case UNIT_BYTES:
        put_bytes(b, value);
        return;
    case UNIT_FLOPS:
        put_flops(b, value);
        buf_put_z(b, " TFLOP/s");
        return;
    case UNIT_SPEED:
        put_speed(b, value);
        buf_put_z(b, " GB/s");
        return;
    }
    __builtin_trap();
}

struct str bytes_text(struct arena *a, uint64_t bytes)
{
    struct buf b = buf_in(a);
    put_bytes(&b, bytes);
    return buf_str(&b);
}

struct str grouped_text(struct arena *a, uint64_t count)
{
    struct buf b = buf_in(a);
    put_grouped(&b, count);
    return buf_str(&b);
}

struct str tokens_text(struct arena *a, uint64_t tokens)
{
    struct buf b = buf_in(a);
    put_tokens(&b, tokens);
    return buf_str(&b);
}
