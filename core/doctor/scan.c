// Finds any of a hundred anchors in one pass (Wu and Manber, 1994): four bytes are hashed, and a
// table says how far no anchor can begin, so most bytes are never looked at. Only the first eight
// bytes of an anchor take part; the rest is compared where they match.
#include <string.h>

#include "core/doctor/internal.h"

enum { BLOCK = 4, HASH_BITS = 13, BUCKETS = 1 << HASH_BITS, NO_SYMPTOM = 0xFFFF };

enum {
    LANES = 4,
    LANE_BYTES = 4 << 10,
    ALL_LANES_BYTES = LANES * LANE_BYTES,
    NEAR_BYTES = 2 << 10, // where one finding is, there are often more
};

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

static ptrdiff_t scan_serially(const struct scan *s, struct str text, ptrdiff_t from,
                               ptrdiff_t limit)
{
    const char *p = text.p + SCAN_PREFIX - BLOCK;
    while (from < limit) {
        uint8_t shift = s->shift[hash_of(p + from)];
        if (!shift && scan_symptom(s, str_slice(text, from, text.n), -1) >= 0)
            return from;
        from += shift ? shift : 1;
    }
    return limit;
}

// Each step waits for the one before it; four places at a time keep the processor busy. What a lane
// has left when another is through, or has found something, is done one after the other.
static ptrdiff_t scan_lanes(const struct scan *s, struct str text, ptrdiff_t from)
{
    const char *p = text.p + SCAN_PREFIX - BLOCK;
    ptrdiff_t at[LANES];
    for (int i = 0; i < LANES; i++)
        at[i] = from + (ptrdiff_t)i * LANE_BYTES;
    for (bool running = true; running;) {
        for (int i = 0; i < LANES; i++) {
            uint8_t shift = s->shift[hash_of(p + at[i])];
            if (!shift && scan_symptom(s, str_slice(text, at[i], text.n), -1) < 0)
                shift = 1;
            at[i] += shift;
            running = running && shift && at[i] < from + (i + 1) * (ptrdiff_t)LANE_BYTES;
        }
    }
    for (int i = 0; i < LANES; i++) {
        ptrdiff_t end = from + (i + 1) * (ptrdiff_t)LANE_BYTES;
        ptrdiff_t found = scan_serially(s, text, at[i], end);
        if (found < end)
            return found;
    }
    return from + ALL_LANES_BYTES;
}

ptrdiff_t scan_next(const struct scan *s, struct str text, ptrdiff_t from, ptrdiff_t limit)
{
    ptrdiff_t last = text.n - SCAN_PREFIX + 1;
    ptrdiff_t end = last < limit ? last : limit;
    ptrdiff_t near = from + NEAR_BYTES < end ? from + NEAR_BYTES : end;
    ptrdiff_t found = scan_serially(s, text, from, near);
    if (found < near)
        return found;
    for (from = near; from + ALL_LANES_BYTES <= end; from += ALL_LANES_BYTES) {
        found = scan_lanes(s, text, from);
        if (found < from + ALL_LANES_BYTES)
            return found;
    }
    found = scan_serially(s, text, from, end);
    return found < end ? found : limit;
}
