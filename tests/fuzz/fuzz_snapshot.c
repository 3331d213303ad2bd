// Any bytes as a pickled snapshot. What is accepted has a start state that the allocator takes and
// a history that replays with all invariants kept; everything else is refused with a message.

#include "core/replay/replay.h"
#include "core/replay/snapshot.h"
#include "core/trace/pickle.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[128 << 20];

static void play(struct arena *a, const struct snapshot *s)
{
    struct replay_request q = {.trace = &s->trace, .options = s->options, .follow = true};
    struct error e = {0};
    struct replay_result r;
    replay_infer(&q.options, &s->trace);
    if (replay_run(&r, a, &q, &e))
        ASSERT(!allocator_check(r.allocator));
    else
        ASSERT(e.message[0]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str exact = exact_copy(data, size);
    struct arena a = exact_arena(block, sizeof block, size);
    struct value root;
    struct snapshot s;
    struct error e = {0};
    struct str bytes = exact;
    bool ok =
        pickle_parse(&root, &a, bytes, STR("f"), &e) && snapshot_read(&s, &a, &root, STR("f"), &e);
    ASSERT(ok == (e.code == ERROR_NONE));
    ASSERT(ok || e.message[0]);
    if (ok)
        play(&a, &s);
    exact_free(exact);
    return 0;
}
