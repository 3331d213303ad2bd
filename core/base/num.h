// Arithmetic that cannot wrap. Device bytes, parameter counts and tokens are uint64_t everywhere:
// size_t is four bytes in WebAssembly. The saturating forms suit long sums of products: UINT64_MAX
// sticks, and one check at the end reports it.
#ifndef FATHOM_BASE_NUM_H
#define FATHOM_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

#define U64_SATURATED UINT64_MAX

bool u64_add(uint64_t *result, uint64_t a, uint64_t b, struct error *e) MUST_USE;
bool u64_mul(uint64_t *result, uint64_t a, uint64_t b, struct error *e) MUST_USE;

uint64_t sat_add(uint64_t a, uint64_t b);
uint64_t sat_mul(uint64_t a, uint64_t b);

uint64_t u64_least(uint64_t a, uint64_t b);
uint64_t u64_most(uint64_t a, uint64_t b);
uint64_t u64_divide_up(uint64_t a, uint64_t b);              // b > 0
uint64_t u64_align_up(uint64_t bytes, uint64_t granularity); // saturates; granularity > 0

#endif
