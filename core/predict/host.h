// Host memory of one node, phase by phase, over all of its ranks.
#ifndef FATHOM_PREDICT_HOST_H
#define FATHOM_PREDICT_HOST_H

#include "core/job/job.h"

struct host_bytes {
    uint64_t load, train, evaluate, save; // of the node whose first rank writes
};

// What a rank sent there at most, of what its graph keeps, is the simulation's.
struct host_bytes host_bytes_of(const struct job *job, uint64_t sent);
uint64_t host_bytes_most(const struct host_bytes *h);

#endif
