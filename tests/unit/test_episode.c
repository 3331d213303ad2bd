// A part of a history that is said to repeat is played once more, at random many times: it must be
// served by the same sizes of blocks without the driver.
#include "core/allocator/allocator.h"
#include "core/base/num.h"
#include "tests/support/t.h"

enum { MOST_EVENTS = 48, MOST_OLDER = 24 };

struct random {
    uint64_t state;
};

static uint64_t below(struct random *r, uint64_t count)
{
    r->state = r->state * UINT64_C(6364136223846793005) + 1;
    return (r->state >> 33) % count;
}

// What is asked for: `bytes`, or the block of that event let go.
struct wish {
    uint64_t bytes;
    int frees;
};

struct script {
    struct wish wishes[2 * MOST_EVENTS];
    int count;
};

static uint64_t size_of(struct random *r)
{
    static const uint64_t sizes[] = {512,      4096,     MIB / 2,  MIB,      2 * MIB,  6 * MIB,
                                     12 * MIB, 13 * MIB, 32 * MIB, 33 * MIB, 64 * MIB, 96 * MIB};
    return sizes[below(r, COUNT_OF(sizes))];
}

static void add_free(struct script *s, int *alive, int *alive_count, int which)
{
    s->wishes[s->count++] = (struct wish){.frees = alive[which]};
    alive[which] = alive[--*alive_count];
}

// All that it takes it gives back.
static void write_script(struct script *s, struct random *r)
{
    int alive[MOST_EVENTS], alive_count = 0, events = 4 + (int)below(r, MOST_EVENTS - 4);
    s->count = 0;
    for (int i = 0; i < events; i++) {
        if (alive_count && below(r, 5) < 2) {
            add_free(s, alive, &alive_count, (int)below(r, (uint64_t)alive_count));
            continue;
        }
        alive[alive_count++] = s->count;
        s->wishes[s->count++] = (struct wish){.bytes = size_of(r)};
    }
    while (alive_count)
        add_free(s, alive, &alive_count, (int)below(r, (uint64_t)alive_count));
}

// The bytes of each block that was got.
static void play(struct allocator *a, const struct script *s, uint64_t got[2 * MOST_EVENTS])
{
    struct block *blocks[2 * MOST_EVENTS] = {0};
    for (int i = 0; i < s->count; i++) {
        if (!s->wishes[i].bytes) {
            allocator_free(a, blocks[s->wishes[i].frees]);
            continue;
        }
        blocks[i] = allocator_alloc(a, (struct request){.bytes = s->wishes[i].bytes});
        got[i] = blocks[i]->bytes;
    }
}

static void make_past(struct allocator *a, struct random *r)
{
    struct block *older[MOST_OLDER];
    int count = (int)below(r, MOST_OLDER);
    for (int i = 0; i < count; i++)
        older[i] = allocator_alloc(a, (struct request){.bytes = size_of(r)});
    for (int i = 0; i < count; i++)
        if (below(r, 2))
            allocator_free(a, older[i]);
}

// Whether it repeats after growing.
static bool check_episode(struct random *r, struct allocator *a)
{
    static struct episode episode;
    struct script s;
    uint64_t first[2 * MOST_EVENTS] = {0}, second[2 * MOST_EVENTS] = {0};
    make_past(a, r);
    write_script(&s, r);
    uint64_t before = a->stats.device_allocs;
    episode_begin(&episode, a);
    play(a, &s, first);
    uint64_t after = a->stats.device_allocs;
    if (!episode_repeats(&episode))
        return false;
    a->episode = NULL;
    play(a, &s, second);
    CHECK_U64(a->stats.device_allocs, after);
    for (int i = 0; i < s.count; i++)
        CHECK_U64(second[i], first[i]);
    CHECK_STR(str_from(allocator_check(a)), "");
    return after > before;
}

TEST(what_is_said_to_repeat_does)
{
    static const uint64_t streams[] = {0};
    struct random r = {1};
    struct arena *a = test_arena();
    int grown = 0;
    for (int i = 0; i < 10000; i++) {
        struct arena scratch = *a;
        struct allocator_options o = allocator_options_default(TORCH_NEWEST);
        o.expandable = below(&r, 8) == 0;
        grown += check_episode(&r, allocator_new(&scratch, &o, streams, 1));
    }
    CHECK(grown > 500);
}
