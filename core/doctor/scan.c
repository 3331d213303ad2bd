// Finds any of a hundred anchors in one pass (Wu and Manber, 1994): four bytes are hashed, and a
// table says how far no anchor can begin, so most bytes are never looked at. Only the first eight
// bytes of an anchor take part; the rest is compared where they match.
#include <string.h>

#include "core/doctor/internal.h"

enum { BLOCK = 4, HASH_BITS = 13, BUCKETS = 1 << HASH_BITS, NO_SYMPTOM = 0xFFFF };

struct scan {
    uint8_t shift[BUCKETS];  // 0: an anchor's first eight bytes may end with this block
    uint16_t first[BUCKETS]; // the symptoms they may be of
    uint16_t next[];
};

static uint32_t hash_of(const char *block)
{
    uint32_t bits;
    memcpy(&bits, block, sizeof bits);
    return bits * UINT32_C(2654435761) >> (32 - HASH_BITS);
}

struct scan *scan_new(struct arena *a)
{
    ptrdiff_t bytes = (ptrdiff_t)(sizeof(struct scan) + (size_t)symptom_count * sizeof(uint16_t));
    struct scan *s = arena_take(a, bytes, _Alignof(struct scan), 1);
    memset(s->shift, SCAN_PREFIX - BLOCK + 1, sizeof s->shift);
    memset(s->first, 0xFF, sizeof s->first);
    for (ptrdiff_t i = symptom_count; i-- > 0;) {
        const char *anchor = symptoms[i].anchor;
        for (int at = 0; at + BLOCK <= SCAN_PREFIX; at++) {
            uint32_t h = hash_of(anchor + at);
            uint8_t shift = (uint8_t)(SCAN_PREFIX - BLOCK - at);
            if (shift < s->shift[h])
                s->shift[h] = shift;
        }
        uint32_t last = hash_of(anchor + SCAN_PREFIX - BLOCK);
        s->next[i] = s->first[last];
        s->first[last] = (uint16_t)i;
    }
    return s;
}

ptrdiff_t scan_symptom(const struct scan *s, struct str text, ptrdiff_t previous)
{
    if (text.n < SCAN_PREFIX)
        return -1;
    uint16_t i = previous < 0 ? s->first[hash_of(text.p + SCAN_PREFIX - BLOCK)] : s->next[previous];
    for (; i != NO_SYMPTOM; i = s->next[i])
        if (str_starts(text, str_from(symptoms[i].anchor)))
            return i;
    return -1;
}

ptrdiff_t scan_next(const struct scan *s, struct str text, ptrdiff_t from, ptrdiff_t limit)
{
    const char *p = text.p + SCAN_PREFIX - BLOCK;
    ptrdiff_t last = text.n - SCAN_PREFIX;
    if (last > limit - 1)
        last = limit - 1;
    while (from <= last) {
        uint8_t shift = s->shift[hash_of(p + from)];
        if (shift) {
            from += shift;
            continue;
        }
        if (scan_symptom(s, str_slice(text, from, text.n), -1) >= 0)
            return from;
        from++;
    }
    return limit;
}
