// Any bytes as a history of ours, replayed as a recording and as a program under options taken from
// the input's length. Every replay leaves an allocator whose invariants hold.

#include "core/replay/moment.h"
#include "core/replay/replay.h"
#include "core/trace/text.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[128 << 20];

static void play(struct arena a, const struct trace *t, size_t variant, bool follow)
{
    struct replay_request q = {
        .trace = t, .options = allocator_options_default(5 + (int)(variant % 7)), .follow = follow};
    struct error e = {0};
    struct replay_result r;
    replay_infer(&q.options, t);
    if (variant & 1) {
        q.options.device_bytes = UINT64_C(1) << (variant % 40);
        q.options.gc_threshold = 0.5;
        q.options.limited = true;
        q.options.limit_bytes = UINT64_C(1) << (variant % 37);
    }
    if (variant & 2)
        q.options.max_split_bytes = 32 * MIB;
    if (!follow && variant & 4)
        q.options.expandable = !q.options.expandable;
    bool ok = replay_run(&r, &a, &q, &e);
    ASSERT(ok && !allocator_check(r.allocator));
    moment_of(&a, r.allocator, 5);
    if (follow) {
        struct trace program = replay_program(&a, t, &r);
        play(a, &program, variant, false);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str exact = exact_copy(data, size);
    struct arena a = exact_arena(block, sizeof block, size);
    struct trace t = trace_in(&a);
    struct error e = {0};
    bool ok = trace_parse(&t, exact, STR("f"), &e);
    exact_free(exact);
    ASSERT(ok == (e.code == ERROR_NONE));
    if (ok)
        play(a, &t, size, true);
    return 0;
}
