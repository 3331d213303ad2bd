// Checked and saturating 64-bit arithmetic on the compiler's overflow builtins.
#include "core/base/num.h"

static bool overflow(struct error *e)
{
    return FAIL(e, OVERFLOW, STR_NONE, "the numbers given are too large to count in 64 bits");
}

bool u64_add(uint64_t *result, uint64_t a, uint64_t b, struct error *e)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return overflow(e);
    *result = sum;
    return true;
}

bool u64_mul(uint64_t *result, uint64_t a, uint64_t b, struct error *e)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return overflow(e);
    *result = product;
    return true;
}

uint64_t sat_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? U64_SATURATED : sum;
}

uint64_t sat_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? U64_SATURATED : product;
}

uint64_t u64_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t u64_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t u64_divide_up(uint64_t a, uint64_t b)
{
    ASSERT(b > 0);
    return a / b + (a % b != 0);
}

uint64_t u64_align_up(uint64_t bytes, uint64_t granularity)
{
    return sat_mul(u64_divide_up(bytes, granularity), granularity);
}
