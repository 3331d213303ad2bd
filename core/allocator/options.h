// The allocator's settings and the rounding rules that depend on nothing else.
#ifndef FATHOM_ALLOCATOR_OPTIONS_H
#define FATHOM_ALLOCATOR_OPTIONS_H

#include <stdint.h>

#include "core/allocator/address.h"
#include "core/allocator/torch.h"
#include "core/base/units.h"

enum { OPTIONS_DIVISION_BUCKETS = 16 }; // 1 MiB, 2, 4 ... 32 GiB and above

#define BLOCK_MIN_BYTES     UINT64_C(512)
#define SMALL_MAX_BYTES     MIB        // rounded requests up to this live in the small pool
#define SMALL_SEGMENT_BYTES (2 * MIB)  // what the small pool asks the driver for
#define LARGE_ALLOC_BYTES   (10 * MIB) // below it, large requests share a large segment
#define LARGE_SEGMENT_BYTES (20 * MIB)
#define DRIVER_PAGE_BYTES   (2 * MIB)

struct allocator_options {
    int torch_minor;
    bool expandable;
    uint64_t device_bytes;  // the driver's total; 0 when unknown: then nothing is refused
    uint64_t outside_bytes; // in use beside this allocator: context, libraries, other processes
    uint64_t limit_bytes;   // memory fraction in bytes; meaningful when `limited`
    bool limited;
    uint64_t max_split_bytes; // UINT64_MAX: unlimited
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes;
    enum placing placing; // of segments, where no recording says it
    double gc_threshold;  // 0: off; works only with a limit, as in torch
    uint32_t divisions[OPTIONS_DIVISION_BUCKETS];
};

struct allocator_options allocator_options_default(int torch_minor);

// As torch.cuda.set_per_process_memory_fraction, of `total_bytes`.
void allocator_options_fraction(struct allocator_options *o, double fraction, uint64_t total_bytes);

// The text of PYTORCH_CUDA_ALLOC_CONF. Keys without effect on layout are accepted; unknown keys,
// keys this version does not have and values torch refuses are errors. The fraction is taken of
// device_bytes, which is therefore set first. As in torch, max_split_size, divisions and the
// threshold of garbage collection fall back to their defaults where they are not named.
bool allocator_options_parse(struct allocator_options *o, struct str conf,
                             struct error *e) MUST_USE;

// The pieces of the above: the next key and value, cut off the text's front (false at its end), and
// one of them set. On failure *o may have been touched.
bool options_next(struct str *conf, struct str *key, struct str *value);
bool options_set(struct allocator_options *o, struct str key, struct str value,
                 struct error *e) MUST_USE;

// Of roundup_power2_divisions: off or a power of two.
bool options_division_is_valid(uint64_t value);

uint64_t options_round(const struct allocator_options *o, uint64_t bytes);

// What cudaMalloc is asked for, for a rounded size.
uint64_t options_segment_bytes(const struct allocator_options *o, uint64_t rounded);

#endif
