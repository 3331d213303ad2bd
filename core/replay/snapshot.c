// Walking a snapshot's tree (its keys are in facts of torch 2.5 to 2.11; frames and annotations are
// passed over).
#include "core/replay/snapshot.h"

#include <string.h>

#include "core/replay/replay.h"
#include "core/replay/start.h"

struct reading {
    struct arena *arena;
    const struct value *root;
    struct str name;
    struct snapshot *out;
    struct error *error;
    ptrdiff_t block_capacity;
};

static bool malformed(struct reading *r, const char *what)
{
    return FAIL(r->error, BAD_INPUT, r->name, "this is not a snapshot of torch's memory: %s", what);
}

// A pickle can name one dictionary many times. What is looked up in it each time is few keys in
// few, so that reading costs no more than the file has bytes; torch's have a dozen.
enum { MOST_KEYS = 64 };

static bool is_entry(struct reading *r, const struct value *v)
{
    bool large = v->kind == VALUE_DICT && v->as.items->count > (ptrdiff_t)MOST_KEYS * 2;
    return !large || malformed(r, "an entry has more than 64 keys");
}

static bool number_of(struct reading *r, uint64_t *out, const struct value *v, const char *key)
{
    struct arena scratch = *r->arena;
    if (value_u64(out, value_get(v, key)))
        return true;
    return malformed(r, str_z(&scratch, str_format(&scratch, "'%s' is missing or no number", key)));
}

static bool bytes_of(struct reading *r, uint64_t *out, const struct value *v, const char *key)
{
    if (!number_of(r, out, v, key))
        return false;
    return *out < EVENT_MAX_BYTES || malformed(r, "a size is absurdly large");
}

static bool address_of(struct reading *r, uint64_t *out, const struct value *v, const char *key)
{
    if (!number_of(r, out, v, key))
        return false;
    return *out < EVENT_MAX_ADDRESS || malformed(r, "an address is absurdly large");
}

static bool stream_of(struct reading *r, uint16_t *out, const struct value *v)
{
    uint64_t number;
    return number_of(r, &number, v, "stream") &&
           trace_stream(out, &r->out->trace, number, r->error);
}

// ------------------------------------------------------------------ events

// What torch adds in later versions is passed over. The tag is the event's place in the snapshot.
static bool read_event(struct reading *r, const struct value *entry, ptrdiff_t index)
{
    struct str action;
    struct event event = {.block = EVENT_NO_BLOCK};
    if (!is_entry(r, entry))
        return false;
    if (!value_str(&action, value_get(entry, "action")))
        return malformed(r, "an event has no action");
    if (!event_kind_find(&event.kind, action)) {
        r->out->unknown_actions++;
        return true;
    }
    bool placed = event.kind != EVENT_OOM && event.kind != EVENT_SNAPSHOT;
    if ((placed && !address_of(r, &event.address, entry, "addr")) ||
        !bytes_of(r, &event.bytes, entry, "size") || !stream_of(r, &event.stream, entry))
        return false;
    uint64_t free_bytes;
    if (event.kind == EVENT_OOM && value_u64(&free_bytes, value_get(entry, "device_free")) &&
        free_bytes < EVENT_MAX_BYTES)
        event.address = free_bytes;
    event.tag = (uint32_t)index + 1;
    trace_add(&r->out->trace, event);
    return true;
}

// The device whose history is longest.
static bool read_events(struct reading *r)
{
    const struct value *devices = value_get(r->root, "device_traces");
    const struct value *longest = NULL;
    if (!devices || devices->kind != VALUE_LIST)
        return malformed(r, "it has no list 'device_traces'");
    for (ptrdiff_t i = 0; i < value_count(devices); i++) {
        const struct value *history = value_at(devices, i);
        if (value_count(history) > value_count(longest)) {
            longest = history;
            r->out->device = (uint64_t)i;
        }
    }
    if (!longest)
        return FAIL(r->error, BAD_INPUT, r->name,
                    "this snapshot holds no history; record one with "
                    "torch.cuda.memory._record_memory_history()");
    trace_reserve(&r->out->trace, value_count(longest));
    for (ptrdiff_t i = 0; i < value_count(longest); i++)
        if (!read_event(r, value_at(longest, i), i))
            return false;
    return true;
}

// ------------------------------------------------------------------ segments

// Blocks lie side by side: one list of them cannot be that of two segments, however often it is
// named.
static bool read_block(struct reading *r, struct end_state *end, const struct value *entry,
                       uint64_t *next)
{
    struct end_block b = {0};
    struct str state;
    if (!is_entry(r, entry) || !address_of(r, &b.address, entry, "address") ||
        !bytes_of(r, &b.bytes, entry, "size"))
        return false;
    if (b.address < *next || !b.bytes)
        return malformed(r, "a segment's blocks are not in order of address");
    *next = b.address + b.bytes;
    if (!value_str(&state, value_get(entry, "state")))
        return malformed(r, "a block has no state");
    if (str_is(state, "inactive"))
        return true;
    b.pending = !str_is(state, "active_allocated");
    if (!value_u64(&b.requested_bytes, value_get(entry, "requested_size")) ||
        b.requested_bytes > b.bytes)
        b.requested_bytes = b.bytes;
    end->blocks = arena_grow(r->arena, end->blocks, sizeof b, end->block_count, &r->block_capacity);
    end->blocks[end->block_count++] = b;
    return true;
}

static bool is_private_pool(const struct value *segment)
{
    const struct value *pool = value_get(segment, "segment_pool_id");
    uint64_t id = 0;
    for (ptrdiff_t i = 0; i < value_count(pool) && i < 2; i++) // a pair
        if (value_u64(&id, value_at(pool, i)) && id != 0)
            return true;
    return false;
}

static bool read_segment(struct reading *r, struct end_state *end, const struct value *entry)
{
    struct end_segment s = {0};
    struct str type;
    if (is_private_pool(entry))
        return FAIL(r->error, UNSUPPORTED, r->name,
                    "this snapshot has private memory pools (CUDA graphs or MemPool), which are "
                    "not modelled");
    if (!address_of(r, &s.address, entry, "address") ||
        !bytes_of(r, &s.bytes, entry, "total_size") || !stream_of(r, &s.stream, entry))
        return false;
    s.small = value_str(&type, value_get(entry, "segment_type")) && str_is(type, "small");
    value_bool(&s.expandable, value_get(entry, "is_expandable"));
    ptrdiff_t last = end->segment_count - 1;
    if (!s.bytes)
        return malformed(r, "a segment has no bytes");
    if (last >= 0 && s.address < end->segments[last].address + end->segments[last].bytes)
        return malformed(r, "its segments are not in order of address");
    end->segments[end->segment_count++] = s;
    const struct value *blocks = value_get(entry, "blocks");
    uint64_t next = s.address;
    for (ptrdiff_t i = 0; i < value_count(blocks); i++)
        if (!read_block(r, end, value_at(blocks, i), &next))
            return false;
    return next <= s.address + s.bytes || malformed(r, "a segment's blocks reach beyond it");
}

static bool on_device(const struct value *segment, uint64_t device)
{
    uint64_t number = 0;
    return !value_u64(&number, value_get(segment, "device")) || number == device;
}

static bool read_segments(struct reading *r, struct end_state *end)
{
    const struct value *segments = value_get(r->root, "segments");
    end->segments = NEW(r->arena, struct end_segment, value_count(segments));
    for (ptrdiff_t i = 0; i < value_count(segments); i++) {
        const struct value *segment = value_at(segments, i);
        if (!is_entry(r, segment))
            return false;
        if (on_device(segment, r->out->device) && !read_segment(r, end, segment))
            return false;
    }
    return true;
}

// ------------------------------------------------------------------ settings

static bool refused(struct reading *r, const char *key)
{
    struct arena scratch = *r->arena;
    return malformed(r, str_z(&scratch, str_format(&scratch, "torch refuses its '%s'", key)));
}

// Keys "1", "2", "4" ... "32768": the bucket's lower end in MiB.
static bool read_divisions(struct reading *r, const struct value *divisions)
{
    for (int bucket = 0; bucket < OPTIONS_DIVISION_BUCKETS; bucket++) {
        struct arena scratch = *r->arena;
        struct str key = str_format(&scratch, "%d", 1 << bucket);
        uint64_t value;
        if (!value_u64(&value, value_get(divisions, key.p)))
            continue;
        if (!options_division_is_valid(value))
            return refused(r, "roundup_power2_divisions");
        r->out->options.divisions[bucket] = (uint32_t)value;
    }
    return true;
}

// What has no entry of its own is only in the text of the environment variable, which may name keys
// of other versions.
static void read_environment(struct allocator_options *o, const struct value *text)
{
    struct str conf = STR_NONE, key, value;
    value_str(&conf, text);
    while (options_next(&conf, &key, &value)) {
        struct allocator_options changed = *o;
        struct error ignored = {0};
        if ((str_is(key, "max_non_split_rounding_mb") || str_is(key, "large_segment_size_mb")) &&
            options_set(&changed, key, value, &ignored))
            *o = changed;
    }
}

static bool read_settings(struct reading *r)
{
    struct allocator_options *o = &r->out->options;
    const struct value *settings = value_get(r->root, "allocator_settings");
    uint64_t split;
    read_environment(o, value_get(settings, "PYTORCH_CUDA_ALLOC_CONF"));
    value_bool(&o->expandable, value_get(settings, "expandable_segments"));
    value_double(&o->gc_threshold, value_get(settings, "garbage_collection_threshold"));
    if (!(o->gc_threshold >= 0 && o->gc_threshold < 1))
        return refused(r, "garbage_collection_threshold");
    if (value_u64(&split, value_get(settings, "max_split_size")))
        o->max_split_bytes = split; // unlimited is -1
    if (o->max_split_bytes == 0)
        return refused(r, "max_split_size");
    return read_divisions(r, value_get(settings, "roundup_power2_divisions"));
}

// Undoing a history needs the size of its pages, which shows in what it maps and in what is mapped
// at its end.
static void infer_pages(struct snapshot *s, const struct end_state *end)
{
    struct trace with_end = s->trace;
    struct start_segment *mapped = NEW(s->trace.arena, struct start_segment, end->segment_count);
    for (ptrdiff_t i = 0; i < end->segment_count; i++)
        mapped[i] = (struct start_segment){.bytes = end->segments[i].bytes,
                                           .small = end->segments[i].small,
                                           .expandable = end->segments[i].expandable};
    with_end.start = mapped;
    with_end.start_count = end->segment_count;
    replay_infer_large_segment(&s->options, &with_end);
}

bool snapshot_read(struct snapshot *s, struct arena *a, const struct value *root, struct str name,
                   struct error *e)
{
    struct snapshot found = {.trace = trace_in(a),
                             .options = allocator_options_default(TORCH_NEWEST)};
    struct reading r = {a, root, name, &found, e, 0};
    struct end_state end = {0};
    if (root->kind != VALUE_DICT)
        return malformed(&r, "it is no dictionary");
    if (!read_settings(&r) || !read_events(&r) || !read_segments(&r, &end))
        return false;
    infer_pages(&found, &end);
    if (!start_from_end(&found.trace, &end, &found.options, name, e) ||
        !trace_link(&found.trace, name, e))
        return false;
    *s = found;
    return true;
}

static bool is_torch_file(struct str file)
{
    for (ptrdiff_t i = 0; i + 7 <= file.n; i++)
        if (str_starts(str_slice(file, i, file.n), STR("/torch/")))
            return true;
    return !str_ends(file, STR(".py"));
}

struct str snapshot_frame(struct arena *a, const struct value *root, uint64_t device,
                          ptrdiff_t event)
{
    const struct value *devices = value_get(root, "device_traces");
    const struct value *history =
        (ptrdiff_t)device < value_count(devices) ? value_at(devices, (ptrdiff_t)device) : NULL;
    if (event < 0 || event >= value_count(history))
        return STR_NONE;
    const struct value *frames = value_get(value_at(history, event), "frames");
    bool predicted = value_get(root, "predicted") != NULL; // its frames are modules, not files
    for (ptrdiff_t i = 0; i < value_count(frames); i++) {
        struct str name, file;
        uint64_t line = 0;
        const struct value *frame = value_at(frames, i);
        bool known = value_str(&name, value_get(frame, "name")) &&
                     value_str(&file, value_get(frame, "filename"));
        if (!known || (!predicted && is_torch_file(file)))
            continue;
        if (predicted)
            return str_format(a, "%.*s (%.*s)", STR_ARGS(name), STR_ARGS(file));
        value_u64(&line, value_get(frame, "line"));
        return str_format(
            a, "%.*s (%.*s:%llu)", STR_ARGS(name),
            STR_ARGS(str_cut_last(file, '/').found ? str_cut_last(file, '/').tail : file),
            (unsigned long long)line);
    }
    return STR_NONE;
}
