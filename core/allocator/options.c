// Reading PYTORCH_CUDA_ALLOC_CONF as torch does, and torch's two rounding rules.
#include "core/allocator/options.h"

#include <string.h>

#include "core/base/num.h"

struct allocator_options allocator_options_default(int torch_minor)
{
    ASSERT(torch_minor >= TORCH_OLDEST && torch_minor <= TORCH_NEWEST);
    return (struct allocator_options){
        .torch_minor = torch_minor,
        .max_split_bytes = UINT64_MAX,
        .max_non_split_rounding_bytes = LARGE_SEGMENT_BYTES,
        .large_segment_bytes = LARGE_SEGMENT_BYTES,
    };
}

void allocator_options_fraction(struct allocator_options *o, double fraction, uint64_t total_bytes)
{
    bool whole = fraction >= 1.0;
    o->limited = !(whole && torch_has(o->torch_minor, TORCH_FRACTION_ONE_IS_NO_LIMIT));
    o->limit_bytes = whole ? total_bytes : (uint64_t)(fraction * (double)total_bytes);
}

static unsigned floor_log2(uint64_t value)
{
    return 63 - (unsigned)__builtin_clzll(value);
}

static unsigned bucket_of(uint64_t bytes)
{
    unsigned log = floor_log2(bytes);
    if (log < 20)
        return 0;
    return log - 20 < OPTIONS_DIVISION_BUCKETS ? log - 20 : OPTIONS_DIVISION_BUCKETS - 1;
}

uint64_t options_round(const struct allocator_options *o, uint64_t bytes)
{
    if (bytes < BLOCK_MIN_BYTES)
        return BLOCK_MIN_BYTES;
    uint64_t division = o->divisions[bucket_of(bytes)];
    uint64_t step = BLOCK_MIN_BYTES;
    if (division > 1 && bytes > BLOCK_MIN_BYTES * division) {
        uint64_t power = UINT64_C(1) << floor_log2(bytes);
        if (power == bytes)
            return bytes;
        step = power / division ? power / division : 2 * power;
    }
    return (bytes + step - 1) & ~(step - 1);
}

uint64_t options_segment_bytes(const struct allocator_options *o, uint64_t rounded)
{
    if (rounded <= SMALL_MAX_BYTES)
        return SMALL_SEGMENT_BYTES;
    if (rounded < LARGE_ALLOC_BYTES)
        return o->large_segment_bytes;
    return u64_align_up(rounded, DRIVER_PAGE_BYTES);
}

static bool refuse(struct str key, struct str value, struct error *e)
{
    return FAIL(e, BAD_INPUT, STR("PYTORCH_CUDA_ALLOC_CONF"), "torch refuses %.*s:%.*s",
                STR_ARGS(key), STR_ARGS(value));
}

static bool read_count(uint64_t *value, struct str text)
{
    if (text.n < 1 || text.n > 12)
        return false;
    uint64_t v = 0;
    for (ptrdiff_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(text.p[i] - '0');
    }
    *value = v;
    return true;
}

// Decimals such as 0.8; the digits beyond nine do not matter to anyone.
static bool read_ratio(double *value, struct str text)
{
    struct str_cut cut = str_cut(text, '.');
    uint64_t whole = 0, part = 0;
    struct str digits = cut.tail.n > 9 ? str_slice(cut.tail, 0, 9) : cut.tail;
    if (cut.head.n && !read_count(&whole, cut.head))
        return false;
    if (digits.n && !read_count(&part, digits))
        return false;
    if (cut.head.n + digits.n == 0)
        return false;
    double scale = 1;
    for (ptrdiff_t i = 0; i < digits.n; i++)
        scale *= 10;
    *value = (double)whole + (double)part / scale;
    return true;
}

static bool is_power_of_two(uint64_t value)
{
    return value && (value & (value - 1)) == 0;
}

bool options_division_is_valid(uint64_t value)
{
    return value == 0 || (is_power_of_two(value) && value <= 1u << 30);
}

static bool read_division(uint32_t *division, struct str text)
{
    uint64_t value;
    if (!read_count(&value, text) || !options_division_is_valid(value))
        return false;
    *division = (uint32_t)value;
    return true;
}

struct division_reader {
    unsigned last; // bucket of the key read last
    bool first;
};

static void fill_rest(struct allocator_options *o, struct division_reader *r, uint32_t division)
{
    unsigned from = r->last;
    if (torch_has(o->torch_minor, TORCH_DIVISIONS_REST_STARTS_AFTER) && !r->first)
        from++;
    for (unsigned i = from; i < OPTIONS_DIVISION_BUCKETS; i++)
        o->divisions[i] = division;
}

static bool read_division_pair(struct allocator_options *o, struct division_reader *r,
                               struct str text)
{
    struct str_cut pair = str_cut(text, ':');
    uint32_t division;
    uint64_t key;
    if (!pair.found || !read_division(&division, str_trim(pair.tail)))
        return false;
    if (str_is(str_trim(pair.head), ">")) {
        fill_rest(o, r, division);
        return true;
    }
    if (!read_count(&key, str_trim(pair.head)) || !is_power_of_two(key))
        return false;
    unsigned bucket = bucket_of(key * MIB);
    for (unsigned i = r->first ? 0 : bucket; i <= bucket; i++)
        o->divisions[i] = division;
    r->last = bucket;
    r->first = false;
    return true;
}

// "[256:1,512:2,>:8]": a key fills its bucket, the first one also all below it, ">" the rest.
static bool read_division_list(struct allocator_options *o, struct str list)
{
    struct division_reader r = {.first = true};
    for (struct str_cut item = {.tail = list, .found = true}; item.found;) {
        item = str_cut(item.tail, ',');
        if (!read_division_pair(o, &r, item.head))
            return false;
    }
    return true;
}

static bool set_divisions(struct allocator_options *o, struct str value)
{
    if (str_starts(value, STR("[")) && str_ends(value, STR("]")) && value.n >= 2)
        return read_division_list(o, str_slice(value, 1, value.n - 1));
    uint32_t division;
    if (!read_division(&division, value))
        return false;
    for (int i = 0; i < OPTIONS_DIVISION_BUCKETS; i++)
        o->divisions[i] = division;
    return true;
}

static bool set_expandable(struct allocator_options *o, struct str value)
{
    o->expandable = str_is(value, "True");
    return o->expandable || str_is(value, "False");
}

// The floor depends on the large segment's size, so it is checked when all keys are read.
static bool set_max_split(struct allocator_options *o, struct str value)
{
    uint64_t mib;
    if (!read_count(&mib, value))
        return false;
    o->max_split_bytes = sat_mul(mib, MIB);
    return true;
}

static bool set_non_split_rounding(struct allocator_options *o, struct str value)
{
    uint64_t mib;
    if (!read_count(&mib, value) || mib <= LARGE_SEGMENT_BYTES / MIB)
        return false;
    o->max_non_split_rounding_bytes = mib * MIB;
    return true;
}

static bool set_large_segment(struct allocator_options *o, struct str value)
{
    uint64_t mib;
    if (!read_count(&mib, value) || mib <= LARGE_ALLOC_BYTES / MIB || mib > 1u << 20)
        return false;
    if (o->max_non_split_rounding_bytes == o->large_segment_bytes)
        o->max_non_split_rounding_bytes = mib * MIB;
    o->large_segment_bytes = mib * MIB;
    return true;
}

static bool set_gc(struct allocator_options *o, struct str value)
{
    return read_ratio(&o->gc_threshold, value) && o->gc_threshold > 0 && o->gc_threshold < 1;
}

static bool set_fraction(struct allocator_options *o, struct str value)
{
    double fraction;
    if (!read_ratio(&fraction, value) || fraction > 1)
        return false;
    allocator_options_fraction(o, fraction, o->device_bytes);
    return true;
}

static bool set_nothing(struct allocator_options *o, struct str value)
{
    (void)o;
    return value.n > 0;
}

static bool set_backend(struct allocator_options *o, struct str value)
{
    (void)o;
    return str_is(value, "native");
}

static const struct option_key {
    const char *name;
    enum torch_gate gate; // TORCH_GATES: all versions
    bool (*set)(struct allocator_options *o, struct str value);
} keys[] = {
    {"backend", TORCH_GATES, set_backend},
    {"expandable_segments", TORCH_GATES, set_expandable},
    {"max_split_size_mb", TORCH_GATES, set_max_split},
    {"garbage_collection_threshold", TORCH_GATES, set_gc},
    {"roundup_power2_divisions", TORCH_GATES, set_divisions},
    {"max_non_split_rounding_mb", TORCH_NON_SPLIT_ROUNDING_OPTION, set_non_split_rounding},
    {"per_process_memory_fraction", TORCH_FRACTION_OPTION, set_fraction},
    {"large_segment_size_mb", TORCH_LARGE_SEGMENT_OPTION, set_large_segment},
    {"release_lock_on_cudamalloc", TORCH_GATES, set_nothing},
    {"pinned_use_cuda_host_register", TORCH_GATES, set_nothing},
    {"pinned_num_register_threads", TORCH_GATES, set_nothing},
    {"pinned_use_background_threads", TORCH_GATES, set_nothing},
    {"pinned_reserve_segment_size_mb", TORCH_GATES, set_nothing},
    {"graph_capture_record_stream_reuse", TORCH_GATES, set_nothing},
};

bool options_set(struct allocator_options *o, struct str key, struct str value, struct error *e)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(keys); i++) {
        if (!str_is(key, keys[i].name))
            continue;
        if (keys[i].gate != TORCH_GATES && !torch_has(o->torch_minor, keys[i].gate))
            return FAIL(e, UNSUPPORTED, STR("PYTORCH_CUDA_ALLOC_CONF"), "torch 2.%d has no %.*s",
                        o->torch_minor, STR_ARGS(key));
        return keys[i].set(o, value) || refuse(key, value, e);
    }
    return FAIL(e, BAD_INPUT, STR("PYTORCH_CUDA_ALLOC_CONF"), "unknown key '%.*s'", STR_ARGS(key));
}

// Where the value of a key ends: at the next comma outside brackets.
static ptrdiff_t value_end(struct str text)
{
    bool inside = false;
    for (ptrdiff_t i = 0; i < text.n; i++) {
        if (text.p[i] == '[' || text.p[i] == ']')
            inside = text.p[i] == '[';
        if (text.p[i] == ',' && !inside)
            return i;
    }
    return text.n;
}

bool options_next(struct str *conf, struct str *key, struct str *value)
{
    if (!conf->n)
        return false;
    struct str_cut pair = str_cut(*conf, ':');
    ptrdiff_t end = value_end(pair.tail);
    *key = str_trim(pair.head);
    *value = str_trim(str_slice(pair.tail, 0, end));
    *conf = end < pair.tail.n ? str_slice(pair.tail, end + 1, pair.tail.n) : STR_NONE;
    return true;
}

static bool split_floor_holds(const struct allocator_options *o)
{
    if (torch_has(o->torch_minor, TORCH_SPLIT_FLOOR_INCLUSIVE))
        return o->max_split_bytes >= o->large_segment_bytes;
    return o->max_split_bytes > LARGE_SEGMENT_BYTES;
}

bool allocator_options_parse(struct allocator_options *o, struct str conf, struct error *e)
{
    struct allocator_options read = *o;
    read.max_split_bytes = UINT64_MAX;
    read.gc_threshold = 0;
    memset(read.divisions, 0, sizeof read.divisions);
    struct str key, value;
    while (options_next(&conf, &key, &value))
        if (!options_set(&read, key, value, e))
            return false;
    if (!split_floor_holds(&read))
        return FAIL(e, BAD_INPUT, STR("PYTORCH_CUDA_ALLOC_CONF"),
                    "torch 2.%d refuses a max_split_size_mb this small", o->torch_minor);
    *o = read;
    return true;
}
