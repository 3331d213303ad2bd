// Following recordings (hand-made ones, and those the allocator itself writes for random programs),
// running programs under other options, late starts, series and moments.
#include "core/replay/moment.h"
#include "core/replay/replay.h"
#include "core/trace/text.h"
#include "tests/support/following.h"
#include "tests/support/t.h"

static struct trace parse(struct arena *a, const char *text)
{
    struct trace t = trace_in(a);
    struct error e = {0};
    bool ok = trace_parse(&t, str_from(text), STR("test"), &e);
    CHECK(ok);
    if (!ok)
        test_failed(__FILE__, __LINE__, "%s: %s", e.where, e.message);
    return t;
}

static struct allocator_options splitting_below(uint64_t bytes)
{
    struct allocator_options o = allocator_options_default(TORCH_NEWEST);
    o.max_split_bytes = bytes;
    return o;
}

TEST(follows_a_retry)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 20971520 0\n"
                              "alloc 10000000 20971520 0\n"
                              "segment_alloc 20000000 31457280 0\n"
                              "alloc 20000000 31457280 0\n"
                              "free_requested 10000000 20971520 0\n"
                              "free_completed 10000000 20971520 0\n"
                              "segment_free 10000000 20971520 0\n"
                              "segment_alloc 30000000 23068672 0\n"
                              "alloc 30000000 23068672 0\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 4);
    CHECK_U64(r.retries, 1);
    CHECK_U64((uint64_t)r.flushes, 0);
    CHECK_U64(r.reserved.bytes, 54525952);
    CHECK_U64((uint64_t)r.placements_matched, 3);
}

// The same, but later as much is reserved as the flush avoided: nothing had been refused.
TEST(follows_an_empty_cache)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 20971520 0\n"
                              "alloc 10000000 20971520 0\n"
                              "segment_alloc 20000000 31457280 0\n"
                              "alloc 20000000 31457280 0\n"
                              "free_requested 10000000 20971520 0\n"
                              "free_completed 10000000 20971520 0\n"
                              "segment_free 10000000 20971520 0\n"
                              "segment_alloc 30000000 23068672 0\n"
                              "alloc 30000000 23068672 0\n"
                              "segment_alloc 40000000 23068672 0\n"
                              "alloc 40000000 23068672 0\n"
                              "free_requested 20000000 31457280 0\n"
                              "free_completed 20000000 31457280 0\n"
                              "segment_free 20000000 31457280 0\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 6);
    CHECK_U64(r.retries, 0);
    CHECK_U64((uint64_t)r.flushes, 2);
    struct trace program = replay_program(a, &t, &r);
    CHECK_U64((uint64_t)program.count, (uint64_t)(t.count - 6 + 2));
    CHECK_U64(program.events[4].kind, EVENT_EMPTY_CACHE);
    CHECK_U64(program.events[program.count - 1].kind, EVENT_EMPTY_CACHE);
}

TEST(follows_an_out_of_memory)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 20971520 0\n"
                              "alloc 10000000 20971520 0\n"
                              "segment_alloc 20000000 31457280 0\n"
                              "alloc 20000000 31457280 0\n"
                              "free_requested 10000000 20971520 0\n"
                              "free_completed 10000000 20971520 0\n"
                              "segment_free 10000000 20971520 0\n"
                              "oom 0 62914560 0\n"
                              "free_requested 20000000 31457280 0\n"
                              "free_completed 20000000 31457280 0\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 3);
    CHECK_U64(r.ooms, 1);
    CHECK_U64((uint64_t)r.oom_event, 7);
    CHECK_U64(r.retries, 1);
    CHECK_U64(r.oom.tried_bytes, 62914560);
    CHECK_U64(r.oom.allocated_bytes, 31457280);
    CHECK_U64(r.oom.cause, OOM_EXHAUSTION);
    CHECK_U64(r.stats.allocated_bytes.current, 0);
    // In a program, the failed request is made where it was made.
    struct trace program = replay_program(a, &t, &r);
    struct replay_request q = {.trace = &program,
                               .options = allocator_options_default(TORCH_NEWEST)};
    q.options.device_bytes = 60 * MIB;
    struct replay_result again = {0};
    struct error e = {0};
    CHECK(replay_run(&again, a, &q, &e));
    CHECK_U64(again.ooms, 1);
    CHECK_U64((uint64_t)again.oom_event, 4);
    CHECK_U64(again.retries, 1);
}

// An out-of-memory may carry what the device had free: 300 MiB, so that a limit refused.
TEST(follows_an_out_of_memory_by_a_limit)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 20971520 0\n"
                              "alloc 10000000 20971520 0\n"
                              "oom 12c00000 62914560 0\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 1);
    CHECK(r.oom.free_known && r.oom.by_limit);
    CHECK_U64(r.oom.free_bytes, 300 * MIB);
    t.events[2].address = 30 * MIB;
    r = follow(a, &t);
    CHECK(r.oom.free_known && !r.oom.by_limit);
    CHECK_U64(r.oom.free_bytes, 30 * MIB);
    CHECK_U64(r.oom.cause, OOM_EXHAUSTION);
}

// Unmapping in the middle of an allocation, and the pages of a first, failed growth.
TEST(follows_expandable_segments)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_map 10000000 41943040 5\n"
                              "alloc 10000000 41943040 5\n"
                              "segment_map 12800000 20971520 5\n"
                              "alloc 12800000 20971520 5\n"
                              "free_requested 10000000 41943040 5\n"
                              "free_completed 10000000 41943040 5\n"
                              "segment_unmap 10000000 41943040 5\n"
                              "segment_map 13c00000 62914560 5\n"
                              "alloc 13c00000 62914560 5\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 4);
    CHECK_U64((uint64_t)r.placements_matched, 3);
    CHECK_U64(r.retries, 1);
    CHECK_U64(r.stats.segments.peak, 0);
}

// The first page of a new reservation is refused until another stream's are unmapped.
TEST(follows_a_refused_reservation)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_map 10000000 41943040 5\n"
                              "alloc 10000000 41943040 5\n"
                              "free_requested 10000000 41943040 5\n"
                              "free_completed 10000000 41943040 5\n"
                              "segment_unmap 10000000 41943040 5\n"
                              "segment_map 90000000 20971520 6\n"
                              "alloc 90000000 20971520 6\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 3);
    CHECK_U64((uint64_t)r.placements_matched, 2);
    CHECK_U64(r.retries, 1);
}

// Out of memory on a stream that has no reservation yet: its place shows with its first page.
TEST(follows_a_reservation_after_out_of_memory)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_map 10000000 41943040 5\n"
                              "alloc 10000000 41943040 5\n"
                              "oom 0 94371840 6\n"
                              "segment_map 90000000 20971520 6\n"
                              "alloc 90000000 20971520 6\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 2);
    CHECK_U64((uint64_t)r.placements_matched, 2);
    CHECK_U64(r.ooms, 1);
}

// A free that completes before the search makes the oversize block that is returned for the
// request.
TEST(follows_a_completion_before_the_search)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 62914560 0\n"
                              "alloc 10000000 62914560 0\n"
                              "segment_alloc 20000000 20971520 0\n"
                              "alloc 20000000 20971520 0\n"
                              "free_requested 10000000 62914560 0\n"
                              "free_requested 20000000 20971520 0\n"
                              "free_completed 20000000 20971520 0\n"
                              "free_completed 10000000 62914560 0\n"
                              "segment_free 10000000 62914560 0\n"
                              "segment_alloc 30000000 35651584 0\n"
                              "alloc 30000000 35651584 0\n");
    struct replay_result r = follow_with(a, &t, splitting_below(32 * MIB));
    check_exact(&r, 4);
    CHECK_U64(r.retries, 0);
    CHECK_U64((uint64_t)r.flushes, 0);
}

// Had the request been refused, the oversize block would have been returned first.
TEST(follows_an_empty_cache_with_oversize_blocks)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 62914560 0\n"
                              "alloc 10000000 62914560 0\n"
                              "segment_alloc 20000000 20971520 0\n"
                              "alloc 20000000 20971520 0\n"
                              "free_requested 10000000 62914560 0\n"
                              "free_completed 10000000 62914560 0\n"
                              "free_requested 20000000 20971520 0\n"
                              "free_completed 20000000 20971520 0\n"
                              "segment_free 20000000 20971520 0\n"
                              "segment_free 10000000 62914560 0\n"
                              "segment_alloc 30000000 35651584 0\n"
                              "alloc 30000000 35651584 0\n");
    struct replay_result r = follow_with(a, &t, splitting_below(32 * MIB));
    check_exact(&r, 5);
    CHECK_U64(r.retries, 0);
    CHECK_U64((uint64_t)r.flushes, 1);
}

// The free block is too large for the request to be found, but its segment could grow from it
// without a page: nothing was refused.
TEST(follows_an_empty_cache_where_pages_were_there)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_map 10000000 62914560 0\n"
                              "alloc 10000000 62914560 0\n"
                              "free_requested 10000000 62914560 0\n"
                              "free_completed 10000000 62914560 0\n"
                              "segment_unmap 10000000 62914560 0\n"
                              "segment_map 30000000 20971520 0\n"
                              "alloc 30000000 20971520 0\n");
    struct replay_result r = follow_with(a, &t, splitting_below(32 * MIB));
    check_exact(&r, 3);
    CHECK_U64((uint64_t)r.flushes, 1);
}

// The flush completes, right after its request, a free that waited for another stream.
TEST(follows_a_flush_right_after_a_free)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 20971520 0\n"
                              "alloc 10000000 20971520 0\n"
                              "free_requested 10000000 20971520 0\n"
                              "segment_alloc 20000000 31457280 0\n"
                              "alloc 20000000 31457280 0\n"
                              "free_completed 10000000 20971520 0\n"
                              "alloc 10000000 20971520 0\n"
                              "free_requested 20000000 31457280 0\n"
                              "free_completed 20000000 31457280 0\n"
                              "segment_free 20000000 31457280 0\n"
                              "segment_alloc 30000000 31457280 0\n"
                              "alloc 30000000 31457280 0\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 4);
    CHECK_U64(r.retries, 1);
    CHECK_U64((uint64_t)r.flushes, 0);
}

// What garbage collection returned is the recording's word: its limit is not known.
TEST(follows_garbage_collection_without_a_limit)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 20971520 0\n"
                              "alloc 10000000 20971520 0\n"
                              "segment_alloc 20000000 31457280 0\n"
                              "alloc 20000000 31457280 0\n"
                              "free_requested 20000000 31457280 0\n"
                              "free_completed 20000000 31457280 0\n"
                              "free_requested 10000000 20971520 0\n"
                              "free_completed 10000000 20971520 0\n"
                              "segment_free 20000000 31457280 0\n"
                              "segment_alloc 30000000 62914560 0\n"
                              "alloc 30000000 62914560 0\n"
                              "alloc 10000000 20971520 0\n");
    struct allocator_options o = allocator_options_default(TORCH_NEWEST);
    o.gc_threshold = 0.5;
    struct replay_result r = follow_with(a, &t, o);
    check_exact(&r, 4);
    CHECK_U64(r.retries, 0);
    CHECK_U64((uint64_t)r.flushes, 0);
    CHECK_U64((uint64_t)r.placements_matched, 4);
}

TEST(sees_what_does_not_match)
{
    struct arena *a = test_arena();
    struct trace size = parse(a, "segment_alloc 10000000 20971520 0\nalloc 10000000 4 0\n");
    struct replay_result r = follow(a, &size);
    CHECK_U64((uint64_t)r.segment_events_matched, 0);
    CHECK(r.first_mismatch.found);
    CHECK_U64((uint64_t)r.first_mismatch.event, 0);
    CHECK_U64(r.first_mismatch.wanted.bytes, 20971520);
    CHECK_U64(r.first_mismatch.got.bytes, 2097152);
    struct trace extra = parse(a, "segment_alloc 10000000 2097152 0\nalloc 10000000 4 0\n"
                                  "alloc 20000000 2097152 0\n");
    r = follow(a, &extra);
    CHECK_U64((uint64_t)r.segment_events_matched, 1);
    CHECK_U64((uint64_t)r.segment_events_extra, 1);
    CHECK_U64((uint64_t)r.placements_matched, 1);
    struct trace missing = parse(a, "segment_alloc 10000000 2097152 0\nalloc 10000000 4 0\n"
                                    "segment_alloc 20000000 2097152 0\nalloc 20000000 4 0\n");
    r = follow(a, &missing);
    CHECK_U64((uint64_t)r.segment_events_matched, 1);
    CHECK_U64((uint64_t)r.first_mismatch.event, 2);
    CHECK_U64(r.first_mismatch.got.kind, EVENT_KINDS);
}

TEST(infers_large_segments)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 41943040 0\nalloc 10000000 2097152 0\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 1);
}

// Pages show in what all maps of the large pool have in common.
TEST(infers_large_pages)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_map 10000000 71303168 0\nalloc 10000000 52428800 0\n"
                              "segment_map 14400000 35651584 0\nalloc 13200000 31457280 0\n"
                              "segment_map 90000000 2097152 0\nalloc 90000000 512 0\n");
    struct replay_result r = follow(a, &t);
    check_exact(&r, 3);
    CHECK_U64(r.allocator->options.large_segment_bytes, 34 * MIB);
}

TEST(starts_late)
{
    struct arena *a = test_arena();
    struct trace t = trace_in(a);
    struct start_block classic[] = {
        {.bytes = 4 * MIB, .requested_bytes = 4 * MIB, .state = START_ALLOCATED},
        {.bytes = 10 * MIB, .state = START_INACTIVE},
        {.bytes = 6 * MIB, .requested_bytes = 5 * MIB, .state = START_PENDING_FREE},
    };
    struct start_block mapped[] = {
        {.bytes = 5 * MIB, .state = START_INACTIVE},
        {.bytes = 15 * MIB, .requested_bytes = 15 * MIB, .state = START_ALLOCATED},
    };
    struct start_segment segments[] = {
        {.address = 0x10000000, .bytes = 20 * MIB, .blocks = classic, .block_count = 3},
        {.address = 0x40000000,
         .bytes = 20 * MIB,
         .blocks = mapped,
         .block_count = 2,
         .stream = 1,
         .expandable = true},
        {.address = 0x42800000,
         .bytes = 20 * MIB,
         .blocks = mapped,
         .block_count = 2,
         .stream = 1,
         .expandable = true},
    };
    struct start_block copy[] = {mapped[0], mapped[1]};
    segments[2].blocks = copy;
    t.start = segments;
    t.start_count = COUNT_OF(segments);
    struct error e = {0};
    uint16_t stream;
    CHECK(trace_stream(&stream, &t, 0, &e) && trace_stream(&stream, &t, 7, &e));
    CHECK(trace_parse(&t,
                      STR("alloc 10400000 10485760 0\n"
                          "free_completed 10e00000 5242880 0\n"
                          "free_requested 10000000 4194304 0\n"
                          "free_completed 10000000 4194304 0\n"
                          "free_requested 40500000 15728640 7\n"
                          "free_completed 40500000 15728640 7\n"
                          "segment_unmap 40000000 20971520 7\n"
                          "free_requested 77000000 4 7\n"),
                      STR("late"), &e));
    CHECK_U64((uint64_t)t.unknown_frees, 1);
    struct replay_result r = follow(a, &t);
    check_exact(&r, 1);
    CHECK_U64((uint64_t)r.placements_matched, 1);
    CHECK_U64(r.allocated.bytes, 44 * MIB);
    CHECK_U64(r.stats.allocated_bytes.current, 25 * MIB);
    CHECK_U64(r.reserved.bytes, 60 * MIB);
    CHECK_U64(r.stats.reserved_bytes.current, 40 * MIB);
}

TEST(refuses_an_impossible_start)
{
    struct arena *a = test_arena();
    struct start_block block = {.bytes = 4 * MIB, .state = START_ALLOCATED};
    struct start_segment bad[] = {
        {.address = 512, .bytes = 5 * MIB, .blocks = &block, .block_count = 1},
        {.address = 512, .bytes = 3 * MIB, .blocks = &block, .block_count = 1},
        {.address = 512, .bytes = 4 * MIB, .blocks = &block, .block_count = 1, .stream = 9},
        {.address = 512, .bytes = 4 * MIB, .blocks = &block, .block_count = 1, .expandable = true},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(bad); i++) {
        struct trace t = trace_in(a);
        struct error e = {0};
        uint16_t stream;
        CHECK(trace_stream(&stream, &t, 0, &e));
        t.start = &bad[i];
        t.start_count = 1;
        CHECK(trace_link(&t, STR("bad"), &e));
        struct replay_request q = {.trace = &t, .options = allocator_options_default(TORCH_NEWEST)};
        struct replay_result r = {0};
        CHECK(!replay_run(&r, a, &q, &e));
        CHECK_U64(e.code, ERROR_BAD_INPUT);
    }
}

TEST(shows_the_peak)
{
    struct arena *a = test_arena();
    struct trace t = parse(a, "segment_alloc 10000000 20971520 0\n"
                              "alloc 10000000 2097152 0\n"
                              "alloc 10200000 6291456 0\n"
                              "segment_alloc 20000000 31457280 0\n"
                              "alloc 20000000 31457280 0\n"
                              "free_requested 20000000 31457280 0\n"
                              "free_completed 20000000 31457280 0\n"
                              "alloc 20000000 4194304 0\n");
    struct replay_series series;
    struct replay_request q = {.trace = &t,
                               .options = allocator_options_default(TORCH_NEWEST),
                               .follow = true,
                               .series = &series};
    struct replay_result r = {0};
    struct error e = {0};
    CHECK(replay_run(&r, a, &q, &e));
    CHECK_U64((uint64_t)series.count, 8);
    CHECK_U64(series.allocated_bytes[4], 38 * MIB);
    CHECK_U64(series.allocated_bytes[6], 8 * MIB);
    CHECK_U64(series.reserved_bytes[7], 50 * MIB);
    CHECK_U64(r.allocated.bytes, 38 * MIB);
    CHECK_U64((uint64_t)r.allocated.event, 4);
    q.stop_after = r.allocated.event + 1;
    q.series = NULL;
    CHECK(replay_run(&r, a, &q, &e));
    struct moment m = moment_of(a, r.allocator, 2);
    CHECK_U64((uint64_t)m.block_count, 2);
    CHECK_U64(m.blocks[0].bytes, 30 * MIB);
    CHECK_U64(m.blocks[0].tag, 5);
    CHECK_U64(m.blocks[1].bytes, 6 * MIB);
    CHECK_U64((uint64_t)m.segment_count, 2);
    CHECK_U64(m.segments[0].reserved_bytes, 20 * MIB);
    CHECK_U64(m.segments[0].live_bytes, 8 * MIB);
    CHECK_U64(m.segments[0].largest_free_bytes, 12 * MIB);
    CHECK_U64(m.segments[0].largest_live_tag, 3);
    CHECK_U64(m.segments[1].live_bytes, 30 * MIB);
    uint64_t by_tag[4] = {0};
    moment_by_tag(r.allocator, by_tag, 4);
    CHECK_U64(by_tag[2], 2 * MIB);
    CHECK_U64(by_tag[3], 36 * MIB);
}
