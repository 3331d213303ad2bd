// The allocator against worked vectors, hand-made cases for
// each path that gives memory back, the options, and the out-of-memory message.
#include "core/allocator/allocator.h"
#include "core/base/num.h"
#include "tests/support/t.h"

static const uint64_t stream_numbers[] = {0, 900, 100}; // not in order: releases go by number

enum { HALF_KIB = 512 };

static struct allocator_options options(bool expandable, uint64_t device_bytes)
{
    struct allocator_options o = allocator_options_default(TORCH_NEWEST);
    o.expandable = expandable;
    o.device_bytes = device_bytes;
    return o;
}

// With a log of what the driver was asked for.
static struct allocator *start(const struct allocator_options *o)
{
    struct arena *a = test_arena();
    struct allocator *made = allocator_new(a, o, stream_numbers, COUNT_OF(stream_numbers));
    made->driver.log = NEW(a, struct trace, 1);
    *made->driver.log = trace_in(a);
    return made;
}

static struct block *take(struct allocator *a, uint64_t bytes)
{
    return allocator_alloc(a, (struct request){.bytes = bytes});
}

static struct block *take_on(struct allocator *a, uint64_t bytes, uint16_t stream)
{
    return allocator_alloc(a, (struct request){.bytes = bytes, .stream = stream});
}

// The driver's events since the last call, as "alloc 20 free 2" in MiB.
static struct str driver_events(struct allocator *a)
{
    struct buf out = buf_in(a->arena);
    struct trace *log = a->driver.log;
    for (ptrdiff_t i = 0; i < log->count; i++)
        if (event_is_driver(log->events[i].kind))
            buf_printf(&out, "%s%s %llu", out.n ? " " : "",
                       event_kind_name(log->events[i].kind) + 8,
                       (unsigned long long)(log->events[i].bytes / MIB));
    log->count = 0;
    return buf_str(&out);
}

static void check_bytes(struct allocator *a, uint64_t allocated, uint64_t reserved)
{
    CHECK_U64(a->stats.allocated_bytes.current, allocated);
    CHECK_U64(a->stats.reserved_bytes.current, reserved);
    const char *broken = allocator_check(a);
    CHECK_STR(str_from(broken), "");
}

struct vector {
    uint64_t request; // 0: free block `target`
    int target;
    uint64_t allocated, reserved, inactive_split;
    const char *events;
};

static void run_vectors(bool expandable, const struct vector *vectors, ptrdiff_t count)
{
    struct allocator_options o = options(expandable, 80 * GIB);
    struct allocator *a = start(&o);
    struct block *blocks[16] = {0};
    for (ptrdiff_t i = 0; i < count; i++) {
        const struct vector *v = &vectors[i];
        if (v->request)
            blocks[v->target] = take(a, v->request);
        else
            allocator_free(a, blocks[v->target]);
        check_bytes(a, v->allocated, v->reserved);
        CHECK_U64(allocator_inactive_split_bytes(a), v->inactive_split);
        CHECK_STR(driver_events(a), v->events);
    }
    static const int rest[] = {0, 1, 2, 3, 4, 6, 7};
    for (ptrdiff_t i = 0; i < COUNT_OF(rest); i++)
        allocator_free(a, blocks[rest[i]]);
    allocator_flush(a, FLUSH_EMPTY_CACHE);
    check_bytes(a, 0, 0);
    CHECK_U64(allocator_inactive_split_bytes(a), 0);
    CHECK_STR(driver_events(a),
              expandable ? "unmap 120 unmap 2" : "free 10 free 20 free 30 free 50 free 2");
    CHECK_U64(a->stats.retries, 0);
    CHECK_U64(a->stats.flushes, 1);
}

TEST(vectors_classic)
{
    const uint64_t h = HALF_KIB;
    const struct vector vectors[] = {
        {1, 0, h, 2 * MIB, 2 * MIB - h, "alloc 2"},
        {MIB, 1, MIB + h, 2 * MIB, MIB - h, ""},
        {MIB + 1, 2, 2 * MIB + 2 * h, 22 * MIB, 20 * MIB - 2 * h, "alloc 20"},
        {10 * MIB - h, 3, 12 * MIB + h, 22 * MIB, 10 * MIB - h, ""},
        {10 * MIB, 4, 22 * MIB + h, 32 * MIB, 10 * MIB - h, "alloc 10"},
        {50 * MIB, 5, 72 * MIB + h, 82 * MIB, 10 * MIB - h, "alloc 50"},
        {30 * MIB, 6, 102 * MIB + h, 112 * MIB, 10 * MIB - h, "alloc 30"},
        {0, 5, 52 * MIB + h, 112 * MIB, 10 * MIB - h, ""},
        {49 * MIB, 7, 102 * MIB + h, 112 * MIB, 10 * MIB - h, ""},
        {0, 7, 52 * MIB + h, 112 * MIB, 10 * MIB - h, ""},
        {48 * MIB, 7, 100 * MIB + h, 112 * MIB, 12 * MIB - h, ""},
    };
    run_vectors(false, vectors, COUNT_OF(vectors));
}

TEST(vectors_expandable)
{
    const uint64_t h = HALF_KIB;
    const struct vector vectors[] = {
        {1, 0, h, 2 * MIB, 0, "map 2"},
        {MIB, 1, MIB + h, 2 * MIB, 0, ""},
        {MIB + 1, 2, 2 * MIB + 2 * h, 22 * MIB, 0, "map 20"},
        {10 * MIB - h, 3, 12 * MIB + h, 22 * MIB, 0, ""},
        {10 * MIB, 4, 22 * MIB + h, 42 * MIB, 0, "map 20"},
        {50 * MIB, 5, 72 * MIB + h, 82 * MIB, 0, "map 40"},
        {30 * MIB, 6, 102 * MIB + h, 122 * MIB, 0, "map 40"},
        {0, 5, 52 * MIB + h, 122 * MIB, 0, ""},
        {49 * MIB, 7, 101 * MIB + h, 122 * MIB, 0, ""},
        {0, 7, 52 * MIB + h, 122 * MIB, 0, ""},
        {48 * MIB, 7, 100 * MIB + h, 122 * MIB, 0, ""},
    };
    run_vectors(true, vectors, COUNT_OF(vectors));
}

// 700 MiB cached with 10 MiB in use, then a request of 701 on a device of 1000.
static struct allocator *fragmented(bool expandable)
{
    struct allocator_options o = options(expandable, 1000 * MIB);
    struct allocator *a = start(&o);
    allocator_free(a, take(a, 700 * MIB));
    CHECK(take(a, 10 * MIB) != NULL);
    CHECK((take(a, 701 * MIB) != NULL) == expandable);
    return a;
}

TEST(fragmentation_ends_a_classic_run)
{
    struct allocator *a = fragmented(false);
    check_bytes(a, 10 * MIB, 700 * MIB);
    CHECK_U64(a->stats.retries, 1);
    CHECK_U64(a->stats.ooms, 1);
    CHECK_U64(a->oom.cause, OOM_FRAGMENTATION);
    CHECK(!a->oom.by_limit);
    CHECK_U64(a->oom.tried_bytes, 702 * MIB);
    CHECK_U64(a->oom.allocated_bytes, 10 * MIB);
    CHECK_U64(a->oom.unallocated_bytes, 690 * MIB);
    CHECK_U64(a->oom.free_bytes, 300 * MIB);
}

TEST(fragmentation_does_not_end_an_expandable_run)
{
    struct allocator *a = fragmented(true);
    check_bytes(a, 711 * MIB, 720 * MIB);
    CHECK_U64(a->stats.retries, 0);
}

TEST(exhaustion_is_told_from_fragmentation)
{
    struct allocator_options o = options(false, 1000 * MIB);
    struct allocator *a = start(&o);
    CHECK(take(a, 900 * MIB) != NULL);
    CHECK(!take(a, 101 * MIB));
    CHECK_U64(a->oom.cause, OOM_EXHAUSTION);
    CHECK_U64(a->oom.free_bytes, 100 * MIB);
}

TEST(a_flush_frees_alternate_blocks)
{
    for (int expandable = 0; expandable < 2; expandable++) {
        struct allocator_options o = options(expandable, 1000 * MIB);
        struct allocator *a = start(&o);
        struct block *blocks[9];
        for (int i = 0; i < 9; i++)
            blocks[i] = take(a, 100 * MIB);
        for (int i = 0; i < 9; i += 2)
            allocator_free(a, blocks[i]);
        CHECK(take(a, 250 * MIB) != NULL);
        check_bytes(a, 650 * MIB, (expandable ? 660 : 650) * MIB);
        CHECK_U64(a->stats.retries, 1);
    }
}

TEST(oversize_blocks_are_not_split)
{
    struct allocator_options o = options(false, 80 * GIB);
    struct error e = {0};
    CHECK(allocator_options_parse(&o, STR("max_split_size_mb:200"), &e));
    struct allocator *a = start(&o);
    allocator_free(a, take(a, 300 * MIB));
    CHECK(take(a, 100 * MIB) != NULL);
    CHECK_STR(driver_events(a), "alloc 300 alloc 100");
    CHECK_U64(take(a, 290 * MIB)->bytes, 300 * MIB);
    CHECK_STR(driver_events(a), "");
    CHECK(take(a, 250 * MIB) != NULL);
    CHECK_STR(driver_events(a), "alloc 250");
}

// Slack for whole reuse is 20 MiB: 279 does not take 300, 281 does.
TEST(oversize_blocks_fit_within_the_slack)
{
    struct allocator_options o = options(false, 80 * GIB);
    o.max_split_bytes = 200 * MIB;
    struct allocator *a = start(&o);
    allocator_free(a, take(a, 300 * MIB));
    CHECK_U64(take(a, 280 * MIB)->bytes, 280 * MIB);
    CHECK_U64(take(a, 281 * MIB)->bytes, 300 * MIB);
}

TEST(oversize_blocks_are_released_before_the_rest)
{
    struct allocator_options o = options(false, 1000 * MIB);
    o.max_split_bytes = 200 * MIB;
    struct allocator *a = start(&o);
    struct block *small = take(a, 100 * MIB), *first = take(a, 250 * MIB),
                 *second = take(a, 260 * MIB), *third = take(a, 300 * MIB);
    allocator_free(a, small);
    allocator_free(a, first);
    allocator_free(a, second);
    allocator_free(a, third);
    driver_events(a);
    // None is as large as 500, so the largest go until 500 are released; the 100 stays.
    CHECK(take(a, 500 * MIB) != NULL);
    CHECK_STR(driver_events(a), "free 300 free 260 alloc 500");
    CHECK_U64(a->stats.retries, 0);
    // 400 do not fit beside 500 + 250 + 100: one oversize block is not enough, so all is flushed.
    CHECK(take(a, 400 * MIB) != NULL);
    CHECK_STR(driver_events(a), "free 250 free 100 alloc 400");
    CHECK_U64(a->stats.retries, 1);
    check_bytes(a, 900 * MIB, 900 * MIB);
}

TEST(garbage_collection_takes_the_old)
{
    struct allocator_options o = options(false, 80 * GIB);
    o.limited = true;
    o.limit_bytes = 1000 * MIB;
    o.gc_threshold = 0.5;
    struct allocator *a = start(&o);
    struct block *first = take(a, 100 * MIB), *second = take(a, 200 * MIB),
                 *third = take(a, 150 * MIB);
    CHECK(take(a, 100 * MIB) != NULL);
    allocator_free(a, first);
    driver_events(a);
    CHECK(take_on(a, 12 * MIB, 1) != NULL); // 550 reserved, over 500
    CHECK_STR(driver_events(a), "free 100 alloc 12");
    allocator_free(a, second);
    CHECK(take_on(a, 100 * MIB, 1) != NULL); // 462 reserved: nothing to do
    CHECK_STR(driver_events(a), "alloc 100");
    allocator_free(a, third);
    CHECK(take_on(a, 100 * MIB, 1) != NULL); // ages 2 and 1: the 200 is above the mean
    CHECK_STR(driver_events(a), "free 200 alloc 100");
    CHECK_U64(a->stats.retries, 0);
    check_bytes(a, 312 * MIB, 462 * MIB);
}

static void check_limit(bool expandable)
{
    struct allocator_options o = options(expandable, 80 * GIB);
    o.limited = true;
    o.limit_bytes = 39 * MIB;
    struct allocator *a = start(&o);
    CHECK(take(a, 2 * MIB) != NULL);
    CHECK(take(a, 19 * MIB) == NULL); // 20 reserved + 20
    CHECK(a->oom.by_limit);
    CHECK_U64(a->oom.tried_bytes, 20 * MIB);
    CHECK(take(a, 16 * MIB) != NULL); // fits the free rest
    check_bytes(a, 18 * MIB, 20 * MIB);
}

TEST(the_limit_counts_whole_segments)
{
    check_limit(false);
    check_limit(true);
}

TEST(streams_do_not_share)
{
    struct allocator_options o = options(false, 80 * GIB);
    struct allocator *a = start(&o);
    for (uint16_t stream = 0; stream < 3; stream++)
        allocator_free(a, take_on(a, (20 + 2 * (uint64_t)stream) * MIB, stream));
    CHECK_STR(driver_events(a), "alloc 20 alloc 22 alloc 24");
    allocator_flush(a, FLUSH_EMPTY_CACHE);
    CHECK_STR(driver_events(a), "free 20 free 24 free 22");
}

TEST(deferred_frees_stay_active)
{
    struct allocator_options o = options(false, 80 * GIB);
    struct allocator *a = start(&o);
    struct block *b = take(a, 30 * MIB);
    allocator_free_request(a, b);
    CHECK_U64(a->stats.allocated_bytes.current, 0);
    CHECK_U64(a->stats.active_bytes.current, 30 * MIB);
    CHECK_U64(a->stats.requested_bytes.current, 30 * MIB);
    CHECK(take(a, 30 * MIB) != b);
    CHECK_U64(a->stats.reserved_bytes.current, 60 * MIB);
    allocator_free_complete(a, b);
    CHECK_U64(a->stats.active_bytes.current, 30 * MIB);
    CHECK(take(a, 30 * MIB) == b);
    CHECK_U64(a->stats.reserved_bytes.current, 60 * MIB);
    check_bytes(a, 60 * MIB, 60 * MIB);
}

TEST(pending_neighbours_do_not_merge)
{
    struct allocator_options o = options(true, 80 * GIB);
    struct allocator *a = start(&o);
    struct block *first = take(a, 5 * MIB), *second = take(a, 5 * MIB);
    CHECK(take(a, 5 * MIB) != NULL);
    allocator_free_request(a, second);
    allocator_free(a, first);
    CHECK_U64(first->bytes, 5 * MIB);
    CHECK_STR(str_from(allocator_check(a)), "");
    allocator_flush(a, FLUSH_EMPTY_CACHE);
    CHECK(!a->pending);
    check_bytes(a, 5 * MIB, 20 * MIB); // nothing unmapped: one page
}

TEST(best_fit_prefers_low_addresses_and_holes)
{
    struct allocator_options o = options(true, 80 * GIB);
    struct allocator *a = start(&o);
    struct block *hole = take(a, 30 * MIB);
    CHECK(take(a, 5 * MIB) != NULL);
    uint64_t hole_address = hole->address;
    allocator_free(a, hole);
    // 5 MiB of the tail touch unmapped space and count as huge; the larger hole is used first.
    CHECK_U64(take(a, 4 * MIB)->address, hole_address);
}

TEST(unmapping_keeps_what_is_not_a_whole_page)
{
    struct allocator_options o = options(true, 80 * GIB);
    struct allocator *a = start(&o);
    struct block *low = take(a, 15 * MIB), *middle = take(a, 50 * MIB), *high = take(a, 10 * MIB);
    CHECK_U64(a->stats.reserved_bytes.current, 80 * MIB);
    driver_events(a);
    allocator_free(a, middle); // 15..65: the pages 20..60 go
    allocator_flush(a, FLUSH_EMPTY_CACHE);
    CHECK_STR(driver_events(a), "unmap 40");
    check_bytes(a, 25 * MIB, 40 * MIB);
    // The lowest hole is refilled: 5 free + 20..40 mapped again.
    uint64_t after_low = low->address + 15 * MIB;
    CHECK_U64(take(a, 24 * MIB)->address, after_low);
    CHECK_STR(driver_events(a), "map 20");
    check_bytes(a, 49 * MIB, 60 * MIB);
    allocator_free(a, low);
    allocator_free(a, high);
    allocator_flush(a, FLUSH_EMPTY_CACHE);
    check_bytes(a, 24 * MIB, 40 * MIB);
}

TEST(a_failed_growth_keeps_its_first_pages)
{
    struct allocator_options o = options(true, 100 * MIB);
    struct allocator *a = start(&o);
    struct block *low = take(a, 40 * MIB), *middle = take(a, 20 * MIB);
    allocator_free(a, low);
    allocator_flush(a, FLUSH_EMPTY_CACHE);
    CHECK(take(a, 19 * MIB) != NULL); // goes to the hole
    driver_events(a);
    allocator_free(a, middle); // 20..40 unmapped, 40..60 free, unmapped above
    // 90 = 1 free + 20 + 20 free + 49: the hole is mapped, the tail does not fit.
    CHECK(take(a, 90 * MIB) == NULL);
    CHECK_STR(driver_events(a), "map 20 unmap 40");
    check_bytes(a, 19 * MIB, 20 * MIB);
}

TEST(rounding_by_divisions)
{
    struct allocator_options o = allocator_options_default(TORCH_NEWEST);
    CHECK_U64(options_round(&o, 1), 512);
    CHECK_U64(options_round(&o, 513), 1024);
    struct error e = {0};
    CHECK(allocator_options_parse(&o, STR("roundup_power2_divisions:4"), &e));
    CHECK_U64(options_round(&o, 1500), 1536);
    CHECK_U64(options_round(&o, 3000), 3072);
    CHECK_U64(options_round(&o, 4096), 4096);
    CHECK_U64(options_round(&o, 5000), 5120);
    CHECK_U64(options_round(&o, 33 * MIB), 40 * MIB);
    CHECK_U64(options_round(&o, 63 * MIB), 64 * MIB);
}

static void check_divisions(int minor)
{
    struct allocator_options o = allocator_options_default(minor);
    struct error e = {0};
    CHECK(allocator_options_parse(
        &o, STR("roundup_power2_divisions:[256:1,512:2,1024:4,>:8],expandable_segments:True"), &e));
    CHECK(o.expandable);
    CHECK_U64(o.divisions[0], 1);
    CHECK_U64(o.divisions[8], 1);
    CHECK_U64(o.divisions[9], 2);
    CHECK_U64(o.divisions[10], minor >= 10 ? 4 : 8);
    CHECK_U64(o.divisions[11], 8);
    CHECK_U64(o.divisions[15], 8);
}

static void check_sizes(int minor)
{
    struct allocator_options o = allocator_options_default(minor);
    struct error e = {0};
    CHECK(allocator_options_parse(&o, STR("max_split_size_mb:20"), &e) == (minor >= 10));
    e = (struct error){0};
    CHECK(allocator_options_parse(&o, STR("large_segment_size_mb:40"), &e) == (minor >= 11));
    CHECK_U64(options_segment_bytes(&o, 2 * MIB), (minor >= 11 ? 40 : 20) * MIB);
    allocator_options_fraction(&o, 1.0, 80 * GIB);
    CHECK(o.limited == (minor < 10));
    allocator_options_fraction(&o, 0.5, 80 * GIB);
    CHECK(o.limited);
    CHECK_U64(o.limit_bytes, 40 * GIB);
}

TEST(options_follow_the_version)
{
    for (int minor = TORCH_OLDEST; minor <= TORCH_NEWEST; minor++) {
        check_divisions(minor);
        check_sizes(minor);
    }
}

TEST(options_are_refused)
{
    static const char *const bad[] = {
        "expandable_segments:true",
        "max_split_size_mb:19",
        "garbage_collection_threshold:1.5",
        "garbage_collection_threshold:0",
        "roundup_power2_divisions:3",
        "roundup_power2_divisions:[256:3]",
        "roundup_power2_divisions:[255:4]",
        "nonsense:1",
        "expandable_segments",
        "per_process_memory_fraction:1.1",
        "backend:cudaMallocAsync",
        "roundup_power2_divisions:[]",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(bad); i++) {
        struct allocator_options o = allocator_options_default(TORCH_NEWEST), before = o;
        struct error e = {0};
        CHECK(!allocator_options_parse(&o, str_from(bad[i]), &e));
        CHECK(e.code != ERROR_NONE);
        CHECK(o.max_split_bytes == before.max_split_bytes && o.gc_threshold == 0);
    }
}

TEST(torch_versions_are_read)
{
    struct error e = {0};
    int minor = 0;
    CHECK(torch_version_parse(&minor, STR("2.11.0+cu130"), &e));
    CHECK_U64((uint64_t)minor, 11);
    CHECK(torch_version_parse(&minor, STR("2.5"), &e));
    CHECK_U64((uint64_t)minor, 5);
    CHECK(!torch_version_parse(&minor, STR("2.4.1"), &e));
    CHECK(!torch_version_parse(&minor, STR("3.5"), &e));
    CHECK(!torch_version_parse(&minor, STR("2."), &e));
    CHECK(!torch_version_parse(&minor, STR("2.1x"), &e));
}

// The numbers and the sentence of a recorded failure (tests/runs/trinity_played.jsonl, v3).
TEST(the_message_is_torch_s)
{
    struct allocator_oom oom = {
        .torch_minor = 11,
        .tried_bytes = 9957277696u,
        .device_bytes = 150109880320u,
        .free_bytes = 75591000064u,
        .process_bytes = 74495000576u,
        .limited = true,
        .limit_bytes = 82839180083u,
        .allocated_bytes = 66250000000u,
        .unallocated_bytes = 7387000000u,
    };
    struct buf out = buf_in(test_arena());
    oom_message(&oom, &out);
    CHECK_STR(
        buf_str(&out),
        "CUDA out of memory. Tried to allocate 9.27 GiB. GPU 0 has a total capacity of 139.80 "
        "GiB of which 70.40 GiB is free. Including non-PyTorch memory, this process has 69.38 "
        "GiB memory in use. 77.15 GiB allowed; Of the allocated memory 61.70 GiB is allocated "
        "by PyTorch, and 6.88 GiB is reserved by PyTorch but unallocated. If reserved but "
        "unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
        "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)");
    oom.torch_minor = 10;
    struct buf older = buf_in(out.arena);
    oom_message(&oom, &older);
    CHECK(str_ends(buf_str(&older),
                   STR("PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
                       "documentation for Memory Management  "
                       "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)")));
}

TEST(predicted_addresses_go_down_and_fill_tails)
{
    struct arena *a = test_arena();
    struct address_space s = address_space_in(a);
    struct chunk *large, *tail, *next, *again;
    uint64_t first = address_take(&s, 40 * MIB, &large);
    CHECK_U64(first % (32 * MIB), 0);
    CHECK_U64(address_take(&s, 10 * MIB, &tail), first + 40 * MIB);
    CHECK(tail == large);
    uint64_t second = address_take(&s, 40 * MIB, &next);
    CHECK_U64(second, first - 64 * MIB);
    uint64_t third = address_take(&s, 96 * MIB, &next);
    CHECK_U64(third, second - 96 * MIB);
    address_give(&s, large, first);
    address_give(&s, tail, first + 40 * MIB);
    CHECK_U64(address_take(&s, 64 * MIB, &again), first); // the highest hole, from its top
}

TEST(chunks_may_lie_the_other_way_round)
{
    struct arena *a = test_arena();
    struct address_space s = address_space_in(a);
    struct chunk *chunks[3], *tail;
    uint64_t at[3];
    s.placing = PLACED_ABOVE;
    for (int i = 0; i < 3; i++)
        at[i] = address_take(&s, 40 * MIB, &chunks[i]);
    CHECK_U64(at[1], at[0] + 64 * MIB);
    CHECK_U64(at[2], at[1] + 64 * MIB);
    CHECK_U64(address_take(&s, 10 * MIB, &tail), at[2] + 40 * MIB); // within one: upwards
    address_give(&s, chunks[0], at[0]);
    CHECK_U64(address_take(&s, 40 * MIB, &chunks[0]), at[0]);
}

TEST(chunks_may_lie_anywhere)
{
    enum { CHUNKS = 1000 };
    struct arena *a = test_arena();
    struct address_space s = address_space_in(a);
    struct chunk *chunks[CHUNKS];
    uint64_t at[CHUNKS];
    int below = 0;
    s.placing = PLACED_APART;
    for (int i = 0; i < CHUNKS; i++)
        at[i] = address_take(&s, 40 * MIB, &chunks[i]);
    for (int i = 0; i < CHUNKS; i++)
        for (int j = 0; j < i; j++) {
            CHECK(at[i] != at[j]);
            below += at[i] < at[j];
        }
    CHECK(below > CHUNKS * CHUNKS / 5 &&
          below < 3 * CHUNKS * CHUNKS / 10); // about half of the pairs
    for (int i = 0; i < CHUNKS; i++)
        address_give(&s, chunks[i], at[i]);
    CHECK(!s.highest);
}

// ---- predicted addresses against the policy written down plainly ----

enum { TAKEN_MOST = 200, PLAIN_CHUNKS = 400 };

struct plain_chunk {
    uint64_t address, bytes;
    int taken;
};

struct plain_span {
    uint64_t address, bytes;
    struct chunk *chunk;
};

struct plain {
    struct plain_chunk chunks[PLAIN_CHUNKS]; // oldest first
    int chunk_count;
    struct plain_span spans[TAKEN_MOST];
    int span_count;
};

// The lowest address at or after `from` where nothing is taken for so many bytes.
static uint64_t plain_fit(const struct plain *p, const struct plain_chunk *c, uint64_t bytes)
{
    uint64_t at = c->address;
    for (int i = 0; i < p->span_count; i++)
        if (p->spans[i].address < at + bytes && at < p->spans[i].address + p->spans[i].bytes) {
            at = p->spans[i].address + p->spans[i].bytes;
            i = -1;
        }
    return at + bytes <= c->address + c->bytes ? at : 0;
}

// The top of the highest hole for a new chunk.
static uint64_t plain_top(const struct plain *p, uint64_t bytes)
{
    uint64_t ceiling = UINT64_C(1) << 56;
    for (int i = 0; i < p->chunk_count; i++)
        if (p->chunks[i].address < ceiling &&
            p->chunks[i].address + p->chunks[i].bytes > ceiling - bytes) {
            ceiling = p->chunks[i].address;
            i = -1;
        }
    return ceiling - bytes;
}

static uint64_t plain_take(struct plain *p, uint64_t bytes)
{
    for (int i = p->chunk_count - 1; i >= 0; i--) {
        uint64_t at = plain_fit(p, &p->chunks[i], bytes);
        p->chunks[i].taken += at != 0;
        if (at)
            return at;
    }
    uint64_t rounded = u64_align_up(bytes, 32 * MIB);
    p->chunks[p->chunk_count] = (struct plain_chunk){plain_top(p, rounded), rounded, 1};
    return p->chunks[p->chunk_count++].address;
}

static void plain_give(struct plain *p, int span)
{
    for (int i = 0; i < p->chunk_count; i++) {
        struct plain_chunk *c = &p->chunks[i];
        if (p->spans[span].address < c->address ||
            p->spans[span].address >= c->address + c->bytes || --c->taken)
            continue;
        p->chunk_count--;
        for (int j = i; j < p->chunk_count; j++)
            p->chunks[j] = p->chunks[j + 1];
        break;
    }
    p->spans[span] = p->spans[--p->span_count];
}

TEST(predicted_addresses_follow_the_policy)
{
    struct arena *a = test_arena();
    struct address_space s = address_space_in(a);
    struct plain *p = NEW(a, struct plain, 1);
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 6000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bool give = p->span_count == TAKEN_MOST || (p->span_count && state % 100 < 48);
        if (give) {
            int span = (int)(state / 128 % (uint64_t)p->span_count);
            address_give(&s, p->spans[span].chunk, p->spans[span].address);
            plain_give(p, span);
            continue;
        }
        struct plain_span *span = &p->spans[p->span_count];
        span->bytes = 2 * MIB * (1 + state / 128 % (state % 3 ? 12 : 60));
        span->address = plain_take(p, span->bytes);
        CHECK_U64(address_take(&s, span->bytes, &span->chunk), span->address);
        p->span_count++;
    }
}

// Would take hours if each looked at all others.
TEST(very_many_segments_are_placed)
{
    enum { SEGMENTS = 100000 };
    struct arena *a = test_arena();
    struct address_space s = address_space_in(a);
    struct chunk **chunks = NEW(a, struct chunk *, SEGMENTS);
    uint64_t *addresses = NEW(a, uint64_t, SEGMENTS);
    for (int i = 0; i < SEGMENTS; i++)
        addresses[i] = address_take(&s, 20 * MIB, &chunks[i]);
    for (int i = SEGMENTS - 2; i > 0; i -= 2) // from the lowest upwards, as a flush does
        address_give(&s, chunks[i], addresses[i]);
    for (int i = 2; i < SEGMENTS; i += 2)
        CHECK_U64(address_take(&s, 20 * MIB, &chunks[i]), addresses[i]);
}

TEST(peaks_are_reset)
{
    struct allocator_options o = options(false, 80 * GIB);
    struct allocator *a = start(&o);
    allocator_free(a, take(a, 30 * MIB));
    CHECK_U64(a->stats.allocated_bytes.peak, 30 * MIB);
    allocator_reset_peaks(a);
    CHECK_U64(a->stats.allocated_bytes.peak, 0);
    CHECK_U64(a->stats.reserved_bytes.peak, 30 * MIB);
}
