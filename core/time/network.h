// What lies between GPUs: the links of a node, and those between nodes. How long a collective takes
// on them: a ring's steps, each rank sending what the slowest link carries.
#ifndef FATHOM_TIME_NETWORK_H
#define FATHOM_TIME_NETWORK_H

#include "core/hardware/hardware.h"

// The last: over the replicas of shards, which are on other nodes where there are any; all shards
// of a node at once.
enum collective { GATHER, REDUCE_SCATTER, ALL_REDUCE, ALL_TO_ALL, REPLICA_REDUCE };

struct network {
    bool silent;              // collectives move nothing, as those of torch's fake process group
    const char *inside;       // the kind of link in a node
    const char *across;       // and between nodes
    double link;              // bytes a second that a GPU sends inside the node, as reached
    double node;              // that a node sends to others
    double first, each_rank;  // seconds before the first byte in a node, and for each rank
    uint64_t nodes, per_node; // GPUs
};

// `given` (--network) may be NULL.
bool network_of(struct network *n, const struct hardware *h, const struct setting *given,
                struct error *e) MUST_USE;

// Handed to the rank beside this one in a pipeline of so many ranks in all.
double handing_seconds(const struct network *n, uint64_t ranks, double bytes);

// Of `bytes` in all, gathered, to be reduced, or of one rank's exchange.
double collective_seconds(const struct network *n, enum collective kind, uint64_t ranks,
                          double bytes);

// By every so manyth rank, all such groups at once.
struct ranks_apart {
    uint64_t ranks, stride;
};
double group_seconds(const struct network *n, enum collective kind, struct ranks_apart g,
                     double bytes);

#endif
