// The ordered set of free blocks against a plain sorted row: whatever is added, removed and
// changed, both find the same.
#include <string.h>

#include "core/allocator/block_set.h"
#include "core/base/units.h"
#include "tests/support/t.h"

enum { BLOCKS = 200, ROUNDS = 20000 };

struct row {
    struct block *all[BLOCKS]; // in order
    int count;
};

static uint64_t below(uint64_t *state, uint64_t count)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*state >> 33) % count;
}

static void row_add(struct row *r, struct block *b)
{
    int at = r->count++;
    for (; at > 0 && block_is_before(b, r->all[at - 1]); at--)
        r->all[at] = r->all[at - 1];
    r->all[at] = b;
}

static void row_remove(struct row *r, int at)
{
    r->count--;
    memmove(&r->all[at], &r->all[at + 1], (size_t)(r->count - at) * sizeof r->all[0]);
}

// Few sizes, of which some share a bucket, so that many are as large as others.
static void draw(struct block *b, uint64_t *state)
{
    static const uint64_t sizes[] = {2 * MIB, 32 * MIB, 33 * MIB, 96 * MIB, 97 * MIB, 512};
    b->bytes = sizes[below(state, COUNT_OF(sizes))];
    b->address = below(state, 1 << 20) << 32 | b->priority;
    b->key = b->bytes;
}

static struct block *at_or_null(const struct row *r, int at)
{
    return at >= 0 && at < r->count ? r->all[at] : NULL;
}

static bool finds_the_same(const struct block_set *s, const struct row *r, const struct block *b)
{
    int at = 0, large = 0;
    while (at < r->count && block_is_before(r->all[at], b))
        at++;
    while (large < r->count && r->all[large]->bytes < b->bytes)
        large++;
    bool is_there = at_or_null(r, at) == b;
    return block_set_first(s, b->bytes, block_set_bucket(b->bytes)) == at_or_null(r, large) &&
           block_set_find(s, b->bytes, b->address) == at_or_null(r, at) &&
           block_set_before(s, b->bytes, b->address) == at_or_null(r, at - 1) &&
           block_set_holds(s, b) == is_there &&
           (!is_there || block_set_after(s, b) == at_or_null(r, at + 1));
}

static int place_of(const struct row *r, const struct block *b)
{
    int at = 0;
    while (at < r->count && r->all[at] != b)
        at++;
    return at;
}

static void take_out(struct block_set *s, struct row *r, struct block *b)
{
    int at = place_of(r, b);
    if (at == r->count)
        return;
    block_set_remove(s, b);
    row_remove(r, at);
}

static void put_in(struct block_set *s, struct row *r, struct block *b)
{
    block_set_add(s, b);
    row_add(r, b);
    CHECK(finds_the_same(s, r, b));
}

static void change(struct block_set *s, struct row *r, struct block *b, uint64_t *state)
{
    struct block other = *b;
    draw(&other, state);
    row_remove(r, place_of(r, b));
    block_set_change(s, b, other.address, other.bytes);
    row_add(r, b);
    CHECK(finds_the_same(s, r, b));
}

static void empty(struct block_set *s, struct row *r)
{
    while (r->count) {
        CHECK(block_set_find(s, 0, 0) == r->all[0]);
        take_out(s, r, r->all[0]);
    }
    CHECK(!block_set_find(s, 0, 0));
}

TEST(a_set_finds_what_a_sorted_row_finds)
{
    struct arena *a = test_arena();
    struct block_set *set = NEW(a, struct block_set, 1);
    struct block *blocks = NEW(a, struct block, BLOCKS);
    struct row row = {.count = 0};
    uint64_t state = 3;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i].priority = (uint32_t)(i * 7919 % 1009);
    for (int round = 0; round < ROUNDS; round++) {
        struct block *b = &blocks[below(&state, BLOCKS)];
        take_out(set, &row, b);
        draw(b, &state);
        CHECK(finds_the_same(set, &row, b));
        if (below(&state, 10) < (round / 2000 % 2 ? 3U : 8U)) // it grows and shrinks
            put_in(set, &row, b);
        if (row.count && below(&state, 3) == 0)
            change(set, &row, row.all[below(&state, (uint64_t)row.count)], &state);
    }
    empty(set, &row);
}
