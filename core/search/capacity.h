// How long a context trains: the largest length of a grid before the first that fails, which is
// what a test that starts at the smallest and stops at the first failure reports, found without
// trying them all; and what stops the next one. Whoever aims at safe lengths gets the largest
// before the first that is not safe, and both.
//
// The floor of a job (predict.h) is a lower bound of its memory and never falls with the length.
// Above the limit a length fails for certain. Well below it none has been seen to fail. In between
// every length is tried, from below: there fragmentation decides, and a length may fail though a
// longer one fits. Where a grid is so fine that there are too many of these, only one in `stride`
// is tried until the first failure, and every one after the last of them that fits.
#ifndef FATHOM_SEARCH_CAPACITY_H
#define FATHOM_SEARCH_CAPACITY_H

#include "core/predict/predict.h"
#include "core/search/grid.h"

struct capacity_request {
    const struct settings *settings; // of a prediction; the context is added
    struct grid grid;
    bool safe; // aim at lengths that are safe (verdict.h) and not at all that fit
};

struct capacity {
    uint64_t context;      // what is aimed at; 0: not even the first length
    uint64_t next;         // the length after it; 0: the list of lengths ends
    uint64_t first;        // the shortest that was asked for
    uint64_t fits_context; // the longest that fits, safe or not
    uint64_t tight_at;     // the length after `context` that fits and is not safe; 0: none
    uint64_t fails_at;     // the first that does not fit; 0: it is not modelled, `end` says why
    uint64_t max_position; // of the model
    struct native native;
    uint64_t limit_bytes; // what torch may take
    uint64_t outside_bytes;
    uint64_t allocated_bytes, requested_bytes, reserved_bytes, host_bytes; // at `context`
    enum phase phase;                                                      // of that peak
    struct step_peak told;                                                 // prediction_peak
    enum phase told_phase;
    int step;
    struct step_time time;  // a step's at `context`
    struct verdict verdict; // at `context`
    struct verdict tight;   // at `tight_at`
    struct {
        struct verdict verdict;
        struct host_bytes host;
        struct allocator_oom oom;
        enum memory_kind kind;
        enum phase phase;
        int step;
    } stop; // at `fails_at`
    struct error end;
    int simulations, replays; // the work it took
    int stride;
};

// The lengths of the request that leave room for text.
bool capacity_grid(struct grid *g, struct arena scratch, const struct capacity_request *r,
                   struct error *e) MUST_USE;

// The job of one length.
bool capacity_job(struct job *job, struct arena *a, const struct capacity_request *r,
                  uint64_t context, struct error *e) MUST_USE;

// Fails where the first length cannot be planned.
bool capacity_find(struct capacity *c, struct arena scratch, const struct capacity_request *r,
                   struct error *e) MUST_USE;

// The same by trying every length from the first on.
bool capacity_scan(struct capacity *c, struct arena scratch, const struct capacity_request *r,
                   struct error *e) MUST_USE;

// Whether two searches answer the same.
bool capacity_same(const struct capacity *a, const struct capacity *b);

// Why there is no longer length, where none fails.
const char *capacity_end_text(const struct capacity *c);

bool capacity_needs_yarn(const struct capacity *c); // longer than the model has positions

// length / max_position rounded up, so that the factor reaches the length, to what is printed: four
// digits after the point, of a large one fewer.
double yarn_factor(uint64_t length, uint64_t max_position);
double capacity_yarn_factor(const struct capacity *c);

// Of the limit, at `context`. None where whole pages of expandable segments reach past it.
uint64_t capacity_left_bytes(const struct capacity *c);

#endif
