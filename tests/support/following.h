// Replaying a history as a recording, in one line of a test.
#ifndef FATHOM_TESTS_FOLLOWING_H
#define FATHOM_TESTS_FOLLOWING_H

#include "core/replay/replay.h"
#include "tests/support/t.h"

static inline struct replay_result follow_with(struct arena *a, const struct trace *t,
                                               struct allocator_options options)
{
    struct replay_request q = {.trace = t, .options = options, .follow = true};
    replay_infer(&q.options, t);
    struct replay_result r = {0};
    struct error e = {0};
    CHECK(replay_run(&r, a, &q, &e));
    return r;
}

static inline struct replay_result follow(struct arena *a, const struct trace *t)
{
    return follow_with(a, t, allocator_options_default(TORCH_NEWEST));
}

static inline void check_exact(const struct replay_result *r, ptrdiff_t segment_events)
{
    CHECK_U64((uint64_t)r->segment_events, (uint64_t)segment_events);
    CHECK_U64((uint64_t)r->segment_events_matched, (uint64_t)segment_events);
    CHECK_U64((uint64_t)r->segment_events_extra, 0);
    CHECK(!r->first_mismatch.found);
    CHECK_STR(str_from(allocator_check(r->allocator)), "");
}

#endif
