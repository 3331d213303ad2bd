// Pickles and snapshots: what is read, what is refused, and how the start of a history is found.
#include <string.h>

#include "core/replay/replay.h"
#include "core/replay/snapshot.h"
#include "core/trace/pickle.h"
#include "core/trace/pickle_out.h"
#include "tests/support/t.h"

#define PROTO "\x80\x04"

static bool unpickle(struct value *root, struct str bytes, struct error *e)
{
    *e = (struct error){0};
    *root = (struct value){0};
    return pickle_parse(root, test_arena(), bytes, STR("p"), e);
}

TEST(plain_values_are_unpickled)
{
    struct value v;
    struct error e;
    uint64_t n = 0;
    // {'a': [1, 70000, -2, True, None], 'b': 0.5}, as pickle.dumps(..., 4) writes it
    CHECK(unpickle(&v,
                   STR(PROTO "\x95\x27\0\0\0\0\0\0\0}\x94(\x8c\x01"
                             "a\x94]\x94(K\x01J\x70\x11\x01\0J\xfe\xff\xff\xff\x88N"
                             "e\x8c\x01"
                             "b\x94G?\xe0\0\0\0\0\0\0u."),
                   &e));
    const struct value *list = value_get(&v, "a");
    CHECK_U64((uint64_t)value_count(list), 5);
    CHECK(value_u64(&n, value_at(list, 1)) && n == 70000);
    CHECK(!value_u64(&n, value_at(list, 2)));
    double half = 0;
    CHECK(value_double(&half, value_get(&v, "b")) && half > 0.49 && half < 0.51);
    CHECK(value_get(&v, "c") == NULL);
}

static struct value pickled_again(struct arena *a, struct pickle_out *p)
{
    struct value v = {0};
    struct error e = {0};
    pickle_out_list_end(p);
    pickle_out_end(p);
    CHECK(pickle_parse(&v, a, buf_str(p->out), STR("p"), &e));
    return v;
}

TEST(pickled_numbers_are_unpickled)
{
    static const uint64_t numbers[] = {0,
                                       255,
                                       256,
                                       INT32_MAX,
                                       UINT64_C(1) << 31,
                                       (UINT64_C(1) << 39) - 1,
                                       UINT64_C(1) << 39,
                                       UINT64_C(1) << 47,
                                       UINT64_C(0x7FFFFFFFFFFFFFFF)};
    struct arena *a = test_arena();
    struct buf b = buf_in(a);
    struct pickle_out p = pickle_out_to(&b);
    pickle_out_list(&p);
    for (ptrdiff_t i = 0; i < COUNT_OF(numbers); i++)
        pickle_out_u64(&p, numbers[i]);
    struct value v = pickled_again(a, &p);
    for (ptrdiff_t i = 0; i < COUNT_OF(numbers); i++) {
        uint64_t n = 1;
        CHECK(value_u64(&n, value_at(&v, i)));
        CHECK_U64(n, numbers[i]);
    }
}

TEST(pickled_texts_are_unpickled)
{
    // More than a short number of the memo, and than its first table; each twice.
    const ptrdiff_t texts = 3000, all = 6000;
    struct arena *a = test_arena();
    struct buf b = buf_in(a);
    struct pickle_out p = pickle_out_to(&b);
    pickle_out_list(&p);
    for (ptrdiff_t i = 0; i < all; i++) {
        if (i == texts)
            pickle_out_list_piece(&p);
        pickle_out_text(&p, str_format(a, "%td", i % texts));
    }
    struct value v = pickled_again(a, &p);
    CHECK_U64((uint64_t)value_count(&v), (uint64_t)all);
    for (ptrdiff_t i = 0; i < all; i++) {
        struct str text = STR_NONE;
        CHECK(value_str(&text, value_at(&v, i)));
        CHECK(str_equal(text, str_format(a, "%td", i % texts)));
    }
}

TEST(long_integers_keep_their_sign)
{
    struct value v;
    struct error e;
    CHECK(unpickle(&v, STR(PROTO "\x8a\x06\0\0\0\0\0\x7f."), &e));
    CHECK_U64((uint64_t)v.as.integer, UINT64_C(0x7f0000000000));
    CHECK(unpickle(&v, STR(PROTO "\x8a\x01\xff."), &e));
    CHECK_U64((uint64_t)v.as.integer, UINT64_MAX);
    CHECK(unpickle(&v, STR(PROTO "\x8a\0."), &e));
    CHECK_U64((uint64_t)v.as.integer, 0);
}

TEST(whatever_is_not_plain_is_refused)
{
    static const struct {
        struct str bytes;
        const char *message;
    } rows[] = {
        {{PROTO "cos\nsystem\n.", 13}, "more than plain values (instruction 0x63 at byte 2)"},
        {{PROTO "\x8c\x02os\x8c\x06system\x93.", 16}, "more than plain values (instruction 0x93"},
        {{PROTO "K\x01R.", 6}, "more than plain values (instruction 0x52"},
        {{PROTO "K", 3}, "it ends too early"},
        {{PROTO "h\0.", 5}, "it recalls a value it never had"},
        {{PROTO "e.", 4}, "it closes what it did not open"},
        {{PROTO "a.", 4}, "its stack runs empty"},
        {{PROTO "K\1(K\2e.", 9}, "it adds to something that is no container"},
        {{PROTO "}(K\1u.", 8}, "a dictionary has a key without a value"},
        {{PROTO "K\1K\2.", 7}, "it ends with other than one value"},
        {{"\x80\x09.", 3}, "its protocol is not 2 to 5"},
        {{PROTO "\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", 12}, "it ends too early"},
        {{PROTO "\x8a\x09xxxxxxxxx.", 14}, "an integer has more than 64 bits"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct value v;
        struct error e;
        if (unpickle(&v, rows[i].bytes, &e) || !strstr(e.message, rows[i].message))
            test_failed(__FILE__, __LINE__, "row %td gives '%s'", i, e.message);
        CHECK(e.code == ERROR_BAD_INPUT);
    }
}

TEST(a_list_may_hold_itself)
{
    struct value v;
    struct error e;
    CHECK(unpickle(&v, STR(PROTO "]\x94h\0a."), &e));
    CHECK_U64((uint64_t)value_count(&v), 1);
    CHECK(value_at(&v, 0)->as.items == v.as.items);
}

// ------------------------------------------------------------------ snapshots, built by hand

static struct value dict(struct arena *a)
{
    return value_container(a, VALUE_DICT);
}

static void set(struct arena *a, struct value *d, const char *key, struct value v)
{
    value_append(a, d, value_text(a, str_from(key)));
    value_append(a, d, v);
}

static void set_number(struct arena *a, struct value *d, const char *key, uint64_t n)
{
    set(a, d, key, value_integer((int64_t)n));
}

static struct value event_of(struct arena *a, const char *action, uint64_t address, uint64_t bytes)
{
    struct value d = dict(a);
    set(a, &d, "action", value_text(a, str_from(action)));
    set_number(a, &d, "addr", address);
    set_number(a, &d, "size", bytes);
    set_number(a, &d, "stream", 0);
    return d;
}

static struct value segment_of(struct arena *a, uint64_t address, uint64_t bytes)
{
    struct value d = dict(a);
    set_number(a, &d, "device", 0);
    set_number(a, &d, "address", address);
    set_number(a, &d, "total_size", bytes);
    set_number(a, &d, "stream", 0);
    set(a, &d, "segment_type", value_text(a, STR("large")));
    set(a, &d, "blocks", value_container(a, VALUE_LIST));
    return d;
}

static struct value snapshot_of(struct arena *a, struct value segments, struct value events)
{
    struct value root = dict(a), devices = value_container(a, VALUE_LIST);
    value_append(a, &devices, events);
    set(a, &root, "segments", segments);
    set(a, &root, "device_traces", devices);
    return root;
}

enum { BASE = 1 << 30 };

TEST(the_start_is_worked_out)
{
    // A 20 MiB segment from before the history: a block of 12.5 MiB in it, freed during the
    // history, whose request was 12 MiB and a bit; a second segment, all free, goes back before
    // that.
    struct arena *a = test_arena();
    struct value segments = value_container(a, VALUE_LIST), events = value_container(a, VALUE_LIST);
    value_append(a, &segments, segment_of(a, BASE, 20 * MIB));
    value_append(a, &events, event_of(a, "segment_free", BASE + 64 * MIB, 32 * MIB));
    value_append(a, &events, event_of(a, "free_requested", BASE, 12 * MIB + 300));
    value_append(a, &events, event_of(a, "free_completed", BASE, 12 * MIB + 300));
    struct value root = snapshot_of(a, segments, events);
    struct snapshot s = {0};
    struct error e = {0};
    CHECK(snapshot_read(&s, a, &root, STR("s"), &e));
    CHECK_U64((uint64_t)s.trace.start_count, 2);
    CHECK_U64(s.trace.start[0].bytes, 20 * MIB);
    CHECK_U64((uint64_t)s.trace.start[0].block_count, 2);
    CHECK_U64(s.trace.start[0].blocks[0].bytes, 12 * MIB + 512);
    CHECK_U64(s.trace.start[0].blocks[0].requested_bytes, 12 * MIB + 300);
    CHECK_U64(s.trace.start[1].address, BASE + 64 * MIB);
    struct replay_request q = {.trace = &s.trace, .options = s.options, .follow = true};
    struct replay_result r = {0};
    CHECK(replay_run(&r, a, &q, &e));
    CHECK_U64(r.reserved.bytes, 52 * MIB);
    CHECK_U64(r.allocated.bytes, 12 * MIB + 512);
    CHECK_U64((uint64_t)r.segment_events_matched, 1);
}

static struct str refusal(struct arena *a, struct value segments, struct value events)
{
    struct value root = snapshot_of(a, segments, events);
    struct snapshot s;
    struct error e = {0};
    if (snapshot_read(&s, a, &root, STR("s"), &e))
        return STR("accepted");
    return str_copy(a, str_from(e.message));
}

TEST(contradictory_snapshots_are_refused)
{
    struct arena *a = test_arena();
    struct value none = value_container(a, VALUE_LIST), events = value_container(a, VALUE_LIST);
    CHECK(strstr(refusal(a, none, none).p, "holds no history"));
    value_append(a, &events, event_of(a, "segment_alloc", BASE, 20 * MIB));
    CHECK(strstr(refusal(a, none, events).p, "memory taken that is not there"));
    events = value_container(a, VALUE_LIST);
    value_append(a, &events, event_of(a, "free_requested", BASE, 100));
    CHECK(strstr(refusal(a, none, events).p, "a block outside every segment"));
    events = value_container(a, VALUE_LIST);
    value_append(a, &events, value_integer(7));
    CHECK(strstr(refusal(a, none, events).p, "an event has no action"));
    struct value pools = value_container(a, VALUE_LIST), segments = value_container(a, VALUE_LIST);
    value_append(a, &pools, value_integer(0));
    value_append(a, &pools, value_integer(3));
    struct value segment = segment_of(a, BASE, 20 * MIB);
    set(a, &segment, "segment_pool_id", pools);
    value_append(a, &segments, segment);
    events = value_container(a, VALUE_LIST);
    value_append(a, &events, event_of(a, "alloc", BASE, 100));
    CHECK(strstr(refusal(a, segments, events).p, "private memory pools"));
}

// A pickle may name the same list again and again: what is read of it must not be multiplied.
TEST(shared_lists_take_no_memory)
{
    enum { MANY = 1000, BLOCK = 512, SEGMENT = 1 << 20 };
    struct arena *a = test_arena();
    struct value segments = value_container(a, VALUE_LIST), events = value_container(a, VALUE_LIST);
    struct value blocks = value_container(a, VALUE_LIST);
    for (uint64_t i = 0; i < MANY; i++) {
        struct value block = dict(a);
        set_number(a, &block, "address", BASE + i * BLOCK);
        set_number(a, &block, "size", BLOCK);
        set(a, &block, "state", value_text(a, STR("active_allocated")));
        value_append(a, &blocks, block);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        struct value segment = segment_of(a, BASE + i * SEGMENT, SEGMENT);
        set(a, &segment, "blocks", blocks);
        value_append(a, &segments, segment);
    }
    value_append(a, &events, event_of(a, "snapshot", 0, 0));
    struct value root = snapshot_of(a, segments, events);
    struct snapshot s;
    struct error e = {0};
    const char *before = a->begin;
    CHECK(!snapshot_read(&s, a, &root, STR("s"), &e));
    CHECK(strstr(e.message, "not in order of address"));
    CHECK(a->begin - before < (ptrdiff_t)MANY * 1000);
}

TEST(a_segments_blocks_lie_in_it)
{
    struct arena *a = test_arena();
    struct value segments = value_container(a, VALUE_LIST), events = value_container(a, VALUE_LIST);
    struct value segment = segment_of(a, BASE, 2 * MIB), blocks = value_container(a, VALUE_LIST);
    struct value block = dict(a);
    set_number(a, &block, "address", BASE + MIB);
    set_number(a, &block, "size", 2 * MIB);
    set(a, &block, "state", value_text(a, STR("inactive")));
    value_append(a, &blocks, block);
    set(a, &segment, "blocks", blocks);
    value_append(a, &segments, segment);
    value_append(a, &events, event_of(a, "snapshot", 0, 0));
    CHECK(strstr(refusal(a, segments, events).p, "reach beyond it"));
}

// The largest sizes and addresses an event may have are below the bounds, as in our own traces.
TEST(absurd_sizes_are_refused)
{
    struct arena *a = test_arena();
    struct value none = value_container(a, VALUE_LIST), events = value_container(a, VALUE_LIST);
    value_append(a, &events, event_of(a, "alloc", BASE, EVENT_MAX_BYTES));
    CHECK(strstr(refusal(a, none, events).p, "a size is absurdly large"));
    events = value_container(a, VALUE_LIST);
    value_append(a, &events, event_of(a, "alloc", EVENT_MAX_ADDRESS, 512));
    CHECK(strstr(refusal(a, none, events).p, "an address is absurdly large"));
}

TEST(unknown_actions_are_passed_over)
{
    struct arena *a = test_arena();
    struct value none = value_container(a, VALUE_LIST), events = value_container(a, VALUE_LIST);
    value_append(a, &events, event_of(a, "explode", BASE, 100));
    value_append(a, &events, event_of(a, "snapshot", 0, 0));
    struct value root = snapshot_of(a, none, events);
    struct snapshot s = {0};
    struct error e = {0};
    CHECK(snapshot_read(&s, a, &root, STR("s"), &e));
    CHECK_U64((uint64_t)s.unknown_actions, 1);
    CHECK_U64((uint64_t)s.trace.count, 1);
    CHECK_U64(s.trace.events[0].tag, 2); // its place in the snapshot
}

static struct value with_settings(struct arena *a, struct value settings)
{
    struct value none = value_container(a, VALUE_LIST), events = value_container(a, VALUE_LIST);
    value_append(a, &events, event_of(a, "snapshot", 0, 0));
    struct value root = snapshot_of(a, none, events);
    set(a, &root, "allocator_settings", settings);
    return root;
}

static void check_setting(struct arena *a, const char *key, struct value value)
{
    struct value settings = dict(a);
    set(a, &settings, key, value);
    struct value root = with_settings(a, settings);
    struct snapshot s = {0};
    struct error e = {0};
    CHECK(!snapshot_read(&s, a, &root, STR("s"), &e));
    CHECK(strstr(e.message, key));
}

TEST(settings_torch_would_refuse_are_refused)
{
    struct arena *a = test_arena();
    struct value divisions = dict(a);
    set_number(a, &divisions, "4", 3);
    check_setting(a, "roundup_power2_divisions", divisions);
    check_setting(a, "garbage_collection_threshold", (struct value){VALUE_REAL, {.real = 1.0}});
    check_setting(a, "garbage_collection_threshold", (struct value){VALUE_REAL, {.real = -0.5}});
    check_setting(a, "max_split_size", value_integer(0));
}

TEST(settings_are_read_from_the_environments_text)
{
    struct arena *a = test_arena();
    struct value settings = dict(a);
    set(a, &settings, "PYTORCH_CUDA_ALLOC_CONF",
        value_text(a, STR("of_tomorrow:[1:2,3],large_segment_size_mb:34,"
                          "max_non_split_rounding_mb:64,per_process_memory_fraction:0.5")));
    set(a, &settings, "max_split_size", value_integer(-1));
    struct value root = with_settings(a, settings);
    struct snapshot s = {0};
    struct error e = {0};
    CHECK(snapshot_read(&s, a, &root, STR("s"), &e));
    CHECK_U64(s.options.large_segment_bytes, 34 * MIB);
    CHECK_U64(s.options.max_non_split_rounding_bytes, 64 * MIB);
    CHECK_U64(s.options.max_split_bytes, UINT64_MAX);
    CHECK(!s.options.limited); // of a device whose size no snapshot tells
}
