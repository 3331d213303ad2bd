// What stands behind a prediction: which kinds of job were measured and how far off their
// predictions were, how surely it is known what lives on the card outside torch, and what
// nobody measured. All of it is rows; tests/measured/accuracy.py holds those of kinds against the
// runs.
#ifndef FATHOM_EVIDENCE_EVIDENCE_H
#define FATHOM_EVIDENCE_EVIDENCE_H

#include "core/job/job.h"

// ------------------------------------------------------------------ kinds of job

// How far off predictions were, in millionths.
struct evidence_errors {
    uint64_t allocated_worst;                 // |predicted / measured - 1| of the worst run
    uint64_t reserved_median, reserved_worst; // the same
    uint64_t reserved_short;                  // measured / predicted - 1, where more was reserved
};

struct evidence_row {
    const char *kind;
    unsigned recipes, strategies; // bits by their enums
    unsigned needs, allows;       // bits of traits: all of these, and no others than those
    const char *source;           // files of tests/runs
    uint64_t runs;
    struct evidence_errors errors;
};

extern const struct evidence_row evidence_rows[];
extern const ptrdiff_t evidence_row_count;

struct evidence {
    const char *kind;
    const char *source;
    uint64_t runs; // 0: nothing of this kind was measured, and the errors are the widest there are
    struct evidence_errors errors;
};

struct evidence evidence_of(const struct job *job);

// By how many millionths, and bytes, a measured figure may exceed a predicted one. A kind of few
// runs is trusted no more than all runs together.
uint64_t evidence_short(const struct evidence *v);
uint64_t evidence_short_bytes(const struct evidence *v, uint64_t reserved_bytes);

// ------------------------------------------------------------------ outside torch

// How much less or more may live on the card beside torch's allocator than is counted.
struct spread {
    uint64_t less_bytes, more_bytes;
};

struct spread_row {
    bool (*when)(const struct job *job);
    uint64_t less_bytes, more_bytes;
    const char *evidence;
};

extern const struct spread_row spread_rows[];
extern const ptrdiff_t spread_row_count;

struct spread spread_of(const struct job *job);

// ------------------------------------------------------------------ doubts

struct doubt {
    bool (*when)(const struct job *job);
    const char *what;
    bool widens; // what torch takes is in doubt, so that no row of the kinds stands behind it
};

extern const struct doubt doubt_rows[];
extern const ptrdiff_t doubt_row_count;

// "NCCL's buffers; host memory": what an answer rests on that nobody measured. Empty for nothing.
void doubts_put(struct buf *b, const struct job *job);

bool is_doubted(const struct job *job); // by a row that widens

#endif
