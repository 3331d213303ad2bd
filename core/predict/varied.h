// Orders in which batches of several lengths may come. All have the longest, and with it what is
// allocated at most; what is reserved depends on what came before, whose blocks are too small.
#ifndef FATHOM_PREDICT_VARIED_H
#define FATHOM_PREDICT_VARIED_H

#include "core/job/job.h"

enum { VARIED_ORDERS = 3 };

// How many there are to look at: none where all batches are alike, or known.
int varied_orders(struct varied orders[VARIED_ORDERS], const struct job *job);

// The job's batches, where they were said (--batch-lengths), or can be drawn (sampled.h).
bool varied_read(struct job *job, struct arena *a, struct error *e) MUST_USE;

#endif
