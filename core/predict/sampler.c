// See sampler.h.
#include "core/predict/sampler.h"

#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------ the order

// The Mersenne Twister of 1998, which torch's generator on the host is
// (ATen/core/MT19937RNGEngine.h).
enum { TWISTER_WORDS = 624, TWISTER_SHIFT = 397 };

struct twister {
    uint32_t word[TWISTER_WORDS];
    int next;
};

static struct twister twister_seeded(uint32_t seed)
{
    const uint32_t multiplier = 1812433253;
    struct twister t = {.word[0] = seed, .next = TWISTER_WORDS};
    for (uint32_t i = 1; i < TWISTER_WORDS; i++)
        t.word[i] = multiplier * (t.word[i - 1] ^ (t.word[i - 1] >> 30)) + i;
    return t;
}

static void twister_turn(struct twister *t)
{
    const uint32_t matrix = 0x9908b0df, upper = 0x80000000;
    for (int i = 0; i < TWISTER_WORDS; i++) {
        uint32_t both = (t->word[i] & upper) | (t->word[(i + 1) % TWISTER_WORDS] & (upper - 1));
        t->word[i] =
            t->word[(i + TWISTER_SHIFT) % TWISTER_WORDS] ^ (both >> 1) ^ (both & 1 ? matrix : 0);
    }
    t->next = 0;
}

static uint32_t twister_draw(struct twister *t)
{
    if (t->next == TWISTER_WORDS)
        twister_turn(t);
    uint32_t y = t->word[t->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return y ^ (y >> 18);
}

// ATen/native/TensorFactories.cpp, randperm_cpu.
void sampler_shuffle(uint32_t *order, ptrdiff_t count)
{
    struct twister t = twister_seeded(SAMPLER_SEED);
    for (ptrdiff_t i = 0; i + 1 < count; i++) {
        ptrdiff_t other = i + (ptrdiff_t)(twister_draw(&t) % (uint32_t)(count - i));
        uint32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

// ------------------------------------------------------------------ packing

// As many sequences are packed among themselves as datasets.map hands over at once.
enum { MAPPED_ROWS = 1000 };

// Rows with room, least room first; of those with as much, the one that has waited longest.
struct packing {
    uint64_t waiting[MAPPED_ROWS]; // room and turn
    uint32_t row[MAPPED_ROWS];
    int count;
    uint32_t turn;
};

static int first_with_room(const struct packing *p, uint64_t room)
{
    int low = 0, high = p->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (p->waiting[middle] >> 32 < room)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take_out(struct packing *p, int at)
{
    size_t behind = (size_t)(--p->count - at);
    memmove(&p->waiting[at], &p->waiting[at + 1], behind * sizeof *p->waiting);
    memmove(&p->row[at], &p->row[at + 1], behind * sizeof *p->row);
}

static void put_in(struct packing *p, uint32_t row, uint64_t room)
{
    int at = first_with_room(p, room + 1);
    size_t behind = (size_t)(p->count++ - at);
    memmove(&p->waiting[at + 1], &p->waiting[at], behind * sizeof *p->waiting);
    memmove(&p->row[at + 1], &p->row[at], behind * sizeof *p->row);
    p->waiting[at] = room << 32 | p->turn++;
    p->row[at] = row;
}

static int longer_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

// Longest first, each where it leaves least room.
static void pack_some(struct rows *to, const uint32_t *tokens, ptrdiff_t count, uint32_t most,
                      struct packing *p)
{
    p->count = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        int at = first_with_room(p, tokens[i]);
        uint32_t row = (uint32_t)to->count, used;
        if (at < p->count) {
            row = p->row[at];
            take_out(p, at);
        } else {
            to->tokens[to->count++] = 0;
        }
        used = to->tokens[row] += tokens[i];
        if (used < most)
            put_in(p, row, most - used);
    }
}

struct rows sampler_pack(struct arena *a, struct rows sequences, uint32_t most)
{
    struct rows packed = {NEW(a, uint32_t, sequences.count), 0};
    struct arena scratch = *a;
    struct packing *p = NEW(&scratch, struct packing, 1);
    uint32_t *some = NEW(&scratch, uint32_t, MAPPED_ROWS);
    for (ptrdiff_t at = 0; at < sequences.count; at += MAPPED_ROWS) {
        ptrdiff_t left = sequences.count - at, count = left < MAPPED_ROWS ? left : MAPPED_ROWS;
        for (ptrdiff_t i = 0; i < count; i++)
            some[i] = sequences.tokens[at + i] < most ? sequences.tokens[at + i] : most;
        qsort(some, (size_t)count, sizeof *some, longer_first);
        pack_some(&packed, some, count, most, p);
    }
    return packed;
}
