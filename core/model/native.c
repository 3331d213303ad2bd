// Lengths beyond what a model has seen. YaRN stretches its positions, and the makers of some models
// say how far they tried that. Of the others nothing is known: a factor beyond the common one is
// worth a word.
#include "core/base/num.h"
#include "core/model/model.h"

enum { COMMON_FACTOR = 4 }; // of the rope_scaling in the cards of Qwen2.5 and Qwen3

uint64_t native_length(const struct native *t, uint64_t max_position)
{
    return t->length ? t->length : max_position;
}

void put_positions(struct buf *b, uint64_t max_position, const struct native *t)
{
    buf_printf(b, "has %llu positions", (unsigned long long)max_position);
    if (t->length)
        buf_printf(b, ", was trained for %llu", (unsigned long long)t->length);
}

struct str native_warning(struct arena *a, struct str name, uint64_t max_position,
                          const struct native *t, uint64_t length)
{
    bool vouched = t->yarn_length > 0;
    uint64_t most = vouched ? t->yarn_length : sat_mul(max_position, COMMON_FACTOR);
    if (!max_position || length <= max_position || length <= most)
        return STR_NONE;
    struct buf b = buf_in(a);
    put_plain(&b, str_short(name));
    buf_char(&b, ' ');
    put_positions(&b, max_position, t);
    if (vouched)
        buf_printf(&b, "; its card vouches for YaRN up to %llu tokens, not for %llu",
                   (unsigned long long)most, (unsigned long long)length);
    else
        buf_printf(&b, "; nothing vouches for YaRN by more than %d, as %llu tokens need",
                   COMMON_FACTOR, (unsigned long long)length);
    return buf_str(&b);
}
