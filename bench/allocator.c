// Speed of the replay, one thread: events a second for recorded histories in a loop (given as trace
// files), and for synthetic ones with a thousand to a million live blocks. Run the release
// build: bench_allocator [trace...]. `bench_allocator only LIVE EVENTS` is for scripts/count_work.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/replay/replay.h"
#include "core/trace/text.h"
#include "host/formats/document.h"

enum { ARENA_BYTES = 1 << 30, SYNTHETIC_EVENTS = 6000000 };

static double seconds(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Replays for about a second; a loop starts from an empty allocator, as the recording did.
static bool loop(const char *name, const struct trace *t, struct arena scratch, bool follow)
{
    struct replay_request q = {
        .trace = t, .options = allocator_options_default(TORCH_NEWEST), .follow = follow};
    replay_infer(&q.options, t);
    struct error e = {0};
    struct replay_result r = {0};
    double begin = seconds(), took;
    ptrdiff_t events = 0;
    do {
        struct arena a = scratch;
        if (!replay_run(&r, &a, &q, &e)) {
            printf("%s: %s\n", name, e.message);
            return false;
        }
        events += r.events;
        took = seconds() - begin;
    } while (took < 1.0);
    printf("%-28s %s %6.1f M events/s\n", name, follow ? "followed" : "program ",
           (double)events / took * 1e-6);
    return true;
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// `live` blocks first; then pairs of a free of any block and an allocation, of mixed sizes.
static struct trace synthetic(struct arena *a, uint32_t live, uint32_t events)
{
    ASSERT(live > 0);
    struct trace t = trace_in(a);
    struct error e = {0};
    uint16_t stream;
    if (!trace_stream(&stream, &t, 0, &e))
        return t;
    uint64_t state = 88172645463325252u;
    trace_reserve(&t, events + live);
    t.block_count = live;
    for (uint32_t i = 0; i < live; i++)
        trace_add(&t, (struct event){.kind = EVENT_ALLOC,
                                     .block = i,
                                     .bytes = 1 + random_next(&state) % (64 * KIB)});
    while (t.count < events + (ptrdiff_t)live) {
        struct event event = {.block = (uint32_t)(random_next(&state) % live)};
        event.kind = EVENT_FREE_REQUESTED;
        trace_add(&t, event);
        event.kind = EVENT_FREE_COMPLETED;
        trace_add(&t, event);
        event.kind = EVENT_ALLOC;
        event.bytes = 1 + random_next(&state) % (64 * KIB);
        trace_add(&t, event);
    }
    return t;
}

// The filling of the allocator is timed on its own and taken off.
static bool churn(struct arena scratch, uint32_t live, bool expandable)
{
    struct arena a = scratch;
    struct trace t = synthetic(&a, live, SYNTHETIC_EVENTS);
    struct replay_request q = {.trace = &t, .options = allocator_options_default(TORCH_NEWEST)};
    q.options.expandable = expandable;
    struct error e = {0};
    struct replay_result r = {0};
    double took[2];
    for (int i = 0; i < 2; i++) {
        struct arena run = a;
        q.stop_after = i == 0 ? (ptrdiff_t)live : 0;
        double begin = seconds();
        if (!replay_run(&r, &run, &q, &e))
            return false;
        took[i] = seconds() - begin;
    }
    printf("%8u live blocks, %-10s %6.1f M events/s\n", live, expandable ? "expandable" : "classic",
           (double)SYNTHETIC_EVENTS / (took[1] - took[0]) * 1e-6);
    return r.ooms == 0;
}

// One synthetic replay and nothing else, for a tool that counts instructions.
static bool only_replay(struct arena a, const char *live, const char *events)
{
    uint32_t blocks = (uint32_t)strtoul(live, NULL, 10);
    if (!blocks)
        return false;
    struct trace t = synthetic(&a, blocks, (uint32_t)strtoul(events, NULL, 10));
    struct replay_request q = {.trace = &t, .options = allocator_options_default(TORCH_NEWEST)};
    struct error e = {0};
    struct replay_result r = {0};
    return replay_run(&r, &a, &q, &e);
}

int main(int argc, char **argv)
{
    void *block = malloc(ARENA_BYTES);
    if (!block)
        return EXIT_FAILURE;
    bool ok = true;
    if (argc == 4 && str_is(str_from(argv[1]), "only"))
        return only_replay(arena_over(block, ARENA_BYTES, NULL), argv[2], argv[3]) ? 0 : 1;
    for (int i = 1; i < argc; i++) {
        struct arena a = arena_over(block, ARENA_BYTES, NULL);
        struct trace t = trace_in(&a);
        struct error e = {0};
        struct str text, name = str_from(argv[i]);
        const struct value *tree = NULL;
        if (!document_read(&text, &tree, &a, name, &e) || !trace_parse(&t, text, name, &e)) {
            printf("%s: %s\n", e.where, e.message);
            ok = false;
        } else {
            ok = loop(argv[i], &t, a, true) && loop(argv[i], &t, a, false) && ok;
        }
    }
    struct arena a = arena_over(block, ARENA_BYTES, NULL);
    for (uint32_t live = 1000; live <= 1000000; live *= 10)
        ok = churn(a, live, false) && churn(a, live, true) && ok;
    free(block);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
