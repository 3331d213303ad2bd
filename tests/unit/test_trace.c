// The event stream: text in and out, handles, errors that name the line, any bytes, and the tape.
#include "core/trace/address_map.h"
#include "core/trace/tape.h"
#include "core/trace/text.h"
#include "tests/support/t.h"

static struct trace parse(struct str text, struct error *e, bool *ok)
{
    struct trace t = trace_in(test_arena());
    *ok = trace_parse(&t, text, STR("h.trace"), e);
    return t;
}

TEST(trace_reads_what_it_writes)
{
    struct str text = STR("segment_alloc 7f7d15e00000 2097152 0\n"
                          "alloc 7f7d15e00000 4 0\n"
                          "free_requested 7f7d15e00000 4 0\n"
                          "free_completed 7f7d15e00000 4 0\n"
                          "segment_map 7f0000000000 20971520 943638320\n"
                          "segment_unmap 7f0000000000 20971520 943638320\n"
                          "oom 0 9957277696 0\n"
                          "snapshot 0 17 0\n"
                          "empty_cache 0 0 0\n"
                          "reset_peaks 0 0 0\n"
                          "segment_free 7f7d15e00000 2097152 18446744073709551615\n");
    struct error e = {0};
    bool ok = false;
    struct trace t = parse(text, &e, &ok);
    CHECK(ok);
    CHECK_U64((uint64_t)t.count, 11);
    CHECK_U64(t.stream_count, 3);
    CHECK_U64(t.block_count, 1);
    struct buf out = buf_in(t.arena);
    trace_write(&t, &out);
    CHECK(str_equal(buf_str(&out), text));
}

TEST(trace_gives_handles_again)
{
    struct error e = {0};
    bool ok = false;
    struct trace t = parse(STR("alloc 200 4 0\nalloc 400 4 0\nfree_requested 200 4 0\n"
                               "alloc 600 4 0\nfree_completed 200 4 0\nalloc 200 4 0\n"
                               "free_completed 800 4 0\nfree_requested a00 4 0"),
                           &e, &ok);
    CHECK(ok);
    CHECK_U64(t.block_count, 3);
    CHECK_U64(t.events[2].block, t.events[0].block);
    CHECK_U64(t.events[4].block, t.events[0].block);
    CHECK_U64(t.events[5].block, t.events[0].block);
    CHECK(t.events[3].block != t.events[0].block && t.events[3].block != t.events[1].block);
    CHECK_U64(t.events[6].block, EVENT_NO_BLOCK);
    CHECK_U64((uint64_t)t.unknown_frees, 2);
}

TEST(trace_errors_name_the_line)
{
    static const struct {
        const char *text, *where, *message;
    } cases[] = {
        {"alloc 200 4 0\nallok 200 4 0\n", "h.trace:2", "unknown action: 'allok'"},
        {"alloc 200 4\n", "h.trace:1", "a line is 'action address size stream': 'alloc 200 4'"},
        {"alloc 200 4 0 9\n", "h.trace:1",
         "a line is 'action address size stream': 'alloc 200 4 0 9'"},
        {"\nalloc 200 4 0\n", "h.trace:1", "a line is 'action address size stream': ''"},
        {"alloc zz 4 0\n", "h.trace:1", "the address is not one of a device: 'zz'"},
        {"alloc 0x 4 0\n", "h.trace:1", "the address is not one of a device: '0x'"},
        {"alloc ffffffffffffffffff 4 0\n", "h.trace:1",
         "the address is not one of a device: 'ffffffffffffffffff'"},
        {"alloc 200 -4 0\n", "h.trace:1", "the size is not one of a device: '-4'"},
        {"alloc 200 1152921504606846976 0\n", "h.trace:1",
         "the size is not one of a device: '1152921504606846976'"},
        {"alloc 200 4 x\n", "h.trace:1", "the stream is not a number: 'x'"},
        {"alloc 200 4 0\nalloc 400 4 0\nalloc 200 4 0\n", "h.trace:3",
         "address 200 is allocated while it is still in use"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(cases); i++) {
        struct error e = {0};
        bool ok;
        parse(str_from(cases[i].text), &e, &ok);
        CHECK(!ok);
        CHECK_STR(str_from(e.where), cases[i].where);
        CHECK_STR(str_from(e.message), cases[i].message);
    }
}

TEST(trace_refuses_too_many_streams)
{
    struct buf text = buf_in(test_arena());
    for (int i = 0; i <= EVENT_MAX_STREAMS; i++)
        buf_printf(&text, "alloc %x 4 %d\n", (i + 1) * 512, i);
    struct trace t = trace_in(text.arena);
    struct error e = {0};
    CHECK(!trace_parse(&t, buf_str(&text), STR("h"), &e));
    CHECK_U64(e.code, ERROR_UNSUPPORTED);
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char good[] = "alloc 7f7d15e00000 4 0\nfree_requested 7f7d15e00000 4 0\n"
                           "free_completed 7f7d15e00000 4 0\nsegment_free 0x200 2097152 7\n";

static struct str damaged(char *text, uint64_t *state)
{
    for (size_t k = 0; k < sizeof good; k++)
        text[k] = good[k];
    for (int k = (int)(random_next(state) % 4); k > 0; k--)
        text[random_next(state) % sizeof good] = (char)(random_next(state) & 0xFF);
    return (struct str){text, (ptrdiff_t)(random_next(state) % sizeof good)};
}

static void check_round_trip(const struct trace *t)
{
    struct error e = {0};
    struct buf first = buf_in(t->arena), second = buf_in(t->arena);
    trace_write(t, &first);
    struct trace again = trace_in(t->arena);
    CHECK(trace_parse(&again, buf_str(&first), STR("again"), &e));
    trace_write(&again, &second);
    CHECK(str_equal(buf_str(&first), buf_str(&second)));
}

// Damaged text is read or refused, and what is read is written and read the same.
TEST(trace_takes_any_bytes)
{
    uint64_t state = 12345;
    int read = 0;
    for (int i = 0; i < 5000; i++) {
        char text[sizeof good];
        struct error e = {0};
        bool ok = false;
        struct trace t = parse(damaged(text, &state), &e, &ok);
        CHECK(ok == (e.code == ERROR_NONE));
        read += ok;
        if (ok)
            check_round_trip(&t);
    }
    CHECK(read > 50);
}

enum { KEYS = 4096 };

static void change_map(struct address_map *map, bool *there, uint64_t *state)
{
    uint32_t key = (uint32_t)(random_next(state) % KEYS), value = key;
    uint64_t address = UINT64_C(0x7f0000000000) + (uint64_t)key * 512;
    bool add = random_next(state) & 1;
    bool was = there[key];
    there[key] = add;
    if (add)
        CHECK(address_map_add(map, address, key) == !was);
    else
        CHECK(address_map_remove(map, address, &value) == was);
    CHECK_U64(value, key);
    CHECK(address_map_find(map, address, &value) == add);
}

TEST(address_map_agrees_with_a_list)
{
    struct arena *a = test_arena();
    struct address_map map = address_map_in(a);
    bool *there = NEW(a, bool, KEYS);
    uint64_t state = 7;
    for (int i = 0; i < 100000; i++)
        change_map(&map, there, &state);
}

TEST(tape_compares_in_order)
{
    struct event recorded[] = {
        {.kind = EVENT_SEGMENT_FREE, .address = 512, .bytes = 2},
        {.kind = EVENT_SEGMENT_ALLOC, .address = 1024, .bytes = 3},
        {.kind = EVENT_SEGMENT_ALLOC, .address = 2048, .bytes = 4},
    };
    struct tape t = {.events = recorded};
    uint64_t address = 0;
    CHECK_U64(tape_ask(&t, EVENT_SEGMENT_ALLOC, &address), TAPE_SILENT);
    tape_window(&t, 0, 2, false);
    CHECK_U64(tape_ask(&t, EVENT_SEGMENT_ALLOC, &address), TAPE_REFUSES);
    tape_produced(&t, recorded[0]);
    CHECK_U64(tape_ask(&t, EVENT_SEGMENT_MAP, &address), TAPE_SILENT);
    CHECK_U64(tape_ask(&t, EVENT_SEGMENT_ALLOC, &address), TAPE_GIVES);
    CHECK_U64(address, 1024);
    CHECK(!t.first.found);
    struct event other = recorded[1];
    other.bytes = 99;
    tape_produced(&t, other);
    CHECK(t.first.found);
    CHECK_U64((uint64_t)t.first.event, 1);
    CHECK_U64(t.first.got.bytes, 99);
    tape_window(&t, 2, 2, true);
    CHECK_U64(tape_ask(&t, EVENT_SEGMENT_ALLOC, &address), TAPE_REFUSES);
    CHECK_U64((uint64_t)t.matched, 1);
    CHECK_U64((uint64_t)t.produced, 2);
}

TEST(tape_notices_what_was_not_made)
{
    struct event recorded[] = {{.kind = EVENT_SEGMENT_ALLOC, .address = 1024, .bytes = 3}};
    struct tape t = {.events = recorded};
    tape_window(&t, 0, 1, false);
    tape_window(&t, 1, 1, false);
    CHECK(t.first.found);
    CHECK_U64(t.first.got.kind, EVENT_KINDS);
    CHECK_U64((uint64_t)t.matched, 0);
}
