// Numbers as people write them, read and printed in one place. A count takes k, M, G as powers of
// 1024 (32k tokens = 32768); bytes take KiB..TiB and kB..TB; rates take TFLOPS and GB/s. GiB is
// 2^30 and GB is 10^9, always spelled out: a bare "80G" is refused because both are in use.
#ifndef FATHOM_BASE_UNITS_H
#define FATHOM_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/str.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum unit_kind {
    UNIT_COUNT, // 32768, 32k, 1M
    UNIT_PLAIN, // 32768: what files state
    UNIT_BYTES, // 512, 79.15GiB, 80GB
    UNIT_FLOPS, // 989TFLOPS, 1.5PFLOPS: operations a second
    UNIT_SPEED, // 450GB/s, 4.8TB/s: bytes a second
};

enum unit_result {
    UNIT_OK,
    UNIT_NOT_A_NUMBER,
    UNIT_NEGATIVE,
    UNIT_UNKNOWN_SUFFIX,
    UNIT_TOO_LARGE,
};

// Exact: decimals are scaled in integers, a fraction of the smallest unit is dropped.
enum unit_result unit_parse(uint64_t *value, enum unit_kind kind, struct str text);

const char *unit_examples(enum unit_kind kind); // "a size such as 79.15GiB or 80GB"

// Printers, rounded to the last digit shown.
// A value of any kind with its unit: "989 TFLOP/s".
void put_unit(struct buf *b, enum unit_kind kind, uint64_t value);

void put_gib(struct buf *b, uint64_t bytes);        // "15.26 GiB"
void put_bytes(struct buf *b, uint64_t bytes);      // "414 MiB", "15.26 GiB"
void put_grouped(struct buf *b, uint64_t count);    // "8,190,735,360"
void put_tokens(struct buf *b, uint64_t tokens);    // "32k", "40960"
void put_flops(struct buf *b, uint64_t flops);      // "989"  (TFLOP/s)
void put_speed(struct buf *b, uint64_t per_second); // "450"  (GB/s)

// The same as texts of their own.
struct str bytes_text(struct arena *a, uint64_t bytes);
struct str grouped_text(struct arena *a, uint64_t count);
struct str tokens_text(struct arena *a, uint64_t tokens);

#endif
