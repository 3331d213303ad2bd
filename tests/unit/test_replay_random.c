// Properties of replays that hold for any history: random programs in both modes, with deferred
// frees, limits and garbage collection, and plain nonsense.
#include "core/replay/moment.h"
#include "core/replay/replay.h"
#include "core/trace/text.h"
#include "tests/support/following.h"
#include "tests/support/t.h"

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

enum { LIVE = 120, STEPS = 1500, STREAMS = 3 };

static uint64_t random_size(uint64_t *state)
{
    static const uint64_t scale[] = {700, 40 * KIB, MIB, 3 * MIB, 12 * MIB, 90 * MIB};
    uint64_t most = scale[random_next(state) % COUNT_OF(scale)];
    return 1 + random_next(state) % most;
}

static void random_step(struct trace *t, uint8_t *alive, uint64_t *state)
{
    uint32_t handle = (uint32_t)(random_next(state) % LIVE);
    struct event event = {.block = handle, .tag = handle % 5};
    if (random_next(state) % 97 == 0) {
        event.kind = random_next(state) % 3 ? EVENT_EMPTY_CACHE : EVENT_RESET_PEAKS;
        event.block = EVENT_NO_BLOCK;
    } else if (alive[handle] == 0) {
        event.kind = EVENT_ALLOC;
        event.bytes = random_size(state);
        event.stream = (uint16_t)(random_next(state) % STREAMS);
        alive[handle] = 1;
    } else if (alive[handle] == 2) {
        event.kind = EVENT_FREE_COMPLETED;
        alive[handle] = 0;
    } else {
        bool deferred = random_next(state) % 4 == 0;
        event.kind = deferred ? EVENT_FREE_REQUESTED : EVENT_FREE;
        alive[handle] = deferred ? 2 : 0;
    }
    trace_add(t, event);
}

static struct trace random_program(struct arena *a, uint64_t seed)
{
    struct trace t = trace_in(a);
    struct error e = {0};
    uint16_t stream;
    CHECK(trace_stream(&stream, &t, 0, &e) && trace_stream(&stream, &t, 555, &e) &&
          trace_stream(&stream, &t, 77, &e));
    t.block_count = LIVE;
    uint8_t alive[LIVE] = {0};
    uint64_t state = seed;
    trace_reserve(&t, STEPS);
    for (int i = 0; i < STEPS; i++)
        random_step(&t, alive, &state);
    return t;
}

static struct allocator_options random_options(uint64_t seed)
{
    struct allocator_options o =
        allocator_options_default(TORCH_OLDEST + (int)(seed % (TORCH_NEWEST - TORCH_OLDEST + 1)));
    o.expandable = seed & 1;
    o.device_bytes = (600 + seed % 7 * 500) * MIB;
    if (seed % 5 == 1)
        o.max_split_bytes = 32 * MIB;
    if (seed % 3 == 1) {
        o.limited = true;
        o.limit_bytes = o.device_bytes / 4 * 3;
        o.gc_threshold = seed % 2 ? 0.6 : 0;
    }
    return o;
}

static bool overlaps(const struct allocator *a)
{
    for (const struct segment *s = a->segments; s; s = s->next)
        for (const struct segment *other = s->next; other; other = other->next)
            if (s->address < other->address + other->bytes &&
                other->address < s->address + s->bytes)
                return true;
    return false;
}

static struct replay_result check_moments(uint64_t seed)
{
    struct arena *a = test_arena();
    struct trace t = random_program(a, seed * 7919);
    struct replay_request q = {.trace = &t, .options = random_options(seed)};
    struct replay_result r = {0};
    struct error e = {0};
    for (ptrdiff_t end = 75; end <= STEPS; end += 75) {
        struct arena scratch = *a;
        q.stop_after = end;
        CHECK(replay_run(&r, &scratch, &q, &e));
        CHECK_STR(str_from(allocator_check(r.allocator)), "");
        CHECK(!overlaps(r.allocator));
    }
    return r;
}

TEST(invariants_hold_at_every_moment)
{
    uint64_t retries = 0, ooms = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct replay_result r = check_moments(seed);
        CHECK(r.reserved.bytes >= r.active.bytes && r.active.bytes >= r.allocated.bytes);
        CHECK(r.active.bytes >= r.requested.bytes);
        retries += r.retries;
        ooms += r.ooms;
    }
    CHECK(retries > 20 && ooms > 10); // the hard paths were walked
}

// Runs a random program and reads back, as text, the history torch would have recorded of it.
static struct trace record(struct arena *a, uint64_t seed, const struct allocator_options *o,
                           struct replay_result *r)
{
    struct trace t = random_program(a, seed);
    struct trace log = {.arena = a, .streams = t.streams, .stream_count = t.stream_count};
    struct replay_request q = {.trace = &t, .options = *o, .log = &log};
    struct error e = {0};
    CHECK(replay_run(r, a, &q, &e));
    struct buf text = buf_in(a);
    trace_write(&log, &text);
    struct trace recording = trace_in(a);
    CHECK(trace_parse(&recording, buf_str(&text), STR("log"), &e));
    return recording;
}

static ptrdiff_t check_again(uint64_t seed)
{
    struct arena *a = test_arena();
    struct allocator_options o = random_options(seed);
    struct replay_result r = {0}, again = {0};
    struct trace recording = record(a, seed * 104729, &o, &r);
    struct replay_request q = {.trace = &recording, .options = o, .follow = true};
    struct error e = {0};
    CHECK(replay_run(&again, a, &q, &e));
    check_exact(&again, again.segment_events);
    CHECK_U64((uint64_t)again.placements_matched, (uint64_t)(again.allocations));
    CHECK_U64(again.reserved.bytes, r.reserved.bytes);
    CHECK_U64(again.allocated.bytes, r.allocated.bytes);
    CHECK_U64(again.requested.bytes, r.requested.bytes);
    CHECK_U64(again.ooms, r.ooms);
    // An empty_cache right before a request that would have been refused reads as a retry; an
    // expandable retry that needs no new page reads as an empty_cache.
    CHECK(o.expandable || again.retries >= r.retries);
    CHECK(again.retries + (uint64_t)again.flushes <= r.stats.flushes);
    return again.segment_events;
}

// A replay's own history, read back from text and followed, is matched event by event.
TEST(a_replay_of_a_replay_is_the_same)
{
    ptrdiff_t segment_events = 0;
    for (uint64_t seed = 1; seed <= 120; seed++)
        segment_events += check_again(seed);
    CHECK(segment_events > 2000);
}

// Nothing told about the device and its limit: the recording's word is enough for the same events,
// with garbage collection and oversize blocks too.
TEST(a_recording_is_followed_without_its_limits)
{
    for (uint64_t seed = 1; seed <= 180; seed++) {
        struct arena *a = test_arena();
        struct allocator_options o = random_options(seed);
        struct replay_result r = {0};
        struct trace recording = record(a, seed * 6151, &o, &r);
        o.limited = false;
        o.limit_bytes = o.device_bytes = 0;
        struct replay_result again = follow_with(a, &recording, o);
        check_exact(&again, again.segment_events);
        CHECK_U64(again.reserved.bytes, r.reserved.bytes);
        CHECK_U64(again.active.bytes, r.active.bytes);
        CHECK_U64(again.ooms, r.ooms);
    }
}

static void check_both_modes(uint64_t seed)
{
    struct arena *a = test_arena();
    struct trace t = random_program(a, seed * 31);
    struct replay_request q = {.trace = &t, .options = allocator_options_default(TORCH_NEWEST)};
    q.options.device_bytes = 80 * GIB;
    struct replay_result classic = {0}, expandable = {0};
    struct error e = {0};
    CHECK(replay_run(&classic, a, &q, &e));
    CHECK(replay_other_mode(&expandable, a, &q, &e));
    CHECK_U64(classic.ooms + expandable.ooms, 0);
    CHECK_U64(classic.stats.requested_bytes.current, expandable.stats.requested_bytes.current);
    CHECK_U64(classic.requested.bytes, expandable.requested.bytes);
    CHECK(classic.allocated.bytes >= expandable.allocated.bytes);
    CHECK(classic.stats.segments.peak > 0);
    CHECK_U64(expandable.stats.segments.peak, 0);
}

TEST(both_modes_hold_the_same_program)
{
    for (uint64_t seed = 1; seed <= 30; seed++)
        check_both_modes(seed);
}

// Recordings with addresses, sizes and actions that make no sense are followed without a defect.
TEST(nonsense_is_followed)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct arena *a = test_arena();
        uint64_t state = seed * 2654435761u;
        struct buf text = buf_in(a);
        for (int i = 0; i < 120; i++) {
            uint8_t kind = (uint8_t)(random_next(&state) % EVENT_KINDS);
            uint64_t address = random_next(&state) % 4096 * 512 * KIB;
            buf_printf(&text, "%s %llx %llu %llu\n", event_kind_name(kind),
                       (unsigned long long)address,
                       (unsigned long long)(random_next(&state) % (1u << 30)),
                       (unsigned long long)(random_next(&state) % 3));
        }
        struct trace t = trace_in(a);
        struct error e = {0};
        if (!trace_parse(&t, buf_str(&text), STR("nonsense"), &e))
            continue;
        struct replay_result r = follow(a, &t);
        CHECK_STR(str_from(allocator_check(r.allocator)), "");
    }
}
