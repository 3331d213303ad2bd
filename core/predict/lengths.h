// How long the sequences of a user's data are (--mean-length, --data), and what a step of them
// takes: memory is decided by the longest batch, hours by all of them.
#ifndef FATHOM_PREDICT_LENGTHS_H
#define FATHOM_PREDICT_LENGTHS_H

#include "core/job/job.h"

enum { MOST_LENGTHS = 256 };

// In equal parts of the sequences, from the shortest to the longest: the mean of each part.
struct lengths {
    int parts;      // 0: nothing was said
    uint64_t count; // sequences; 0: not said
    double part[MOST_LENGTHS];
};

bool lengths_read(struct lengths *l, const struct settings *s, struct error *e) MUST_USE;

// Sequences are cut at the context: a mean above that of the job is none.
bool lengths_check(const struct job *job, struct error *e) MUST_USE;

double lengths_mean(const struct lengths *l, uint64_t most); // what is longer is cut

// The longest of so many, on average: what a batch is padded to.
double lengths_longest(const struct lengths *l, uint64_t most, uint64_t of);

// So many lengths that stand for the longest of `of` alike.
void lengths_typical(double *typical, int count, const struct lengths *l, uint64_t of);

#endif
