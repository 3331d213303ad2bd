// TRL's activation offloading (trl 1.16, models/activation_offloading.py): what nodes outside
// recomputed layers keep, and the inputs of those layers, is copied to host memory on a stream of
// its own and brought back when it is asked for.
#ifndef FATHOM_AUTOGRAD_OFFLOAD_H
#define FATHOM_AUTOGRAD_OFFLOAD_H

#include "core/autograd/machine.h"

enum { OFFLOAD_STASH = 5, OFFLOAD_BACK = 9 };

struct stashed {
    uint64_t number;
    struct storage *storage;
    double copied; // when its copy is there
};

struct host_stash {
    bool on;
    uint16_t stream;
    uint64_t numbers; // given to what was kept so far
    struct stashed stash[OFFLOAD_STASH];
    int stash_count;
    struct storage *back[OFFLOAD_BACK]; // brought back for the last node that asked
    int back_count;
    struct storage *input; // brought back for the layer that is recomputed
    bool asked;            // since the last node was done
    double used;           // when the last node that asked was through with what came back for it
};

// What is kept instead of s: itself, or what stands for it in host memory.
struct storage *offload_pack(struct host_stash *o, struct machine *m, struct storage *s);

// Numbers that something kept takes which is never offloaded.
void offload_skip(struct host_stash *o);

// The tensor that one in host memory stands for, which is dropped; others as they are.
struct storage *offload_unpack(struct host_stash *o, struct machine *m, struct storage *s);

// A node that asked is done with `saved`, of which those brought back go later.
void offload_settle(struct host_stash *o, struct machine *m, struct storage **saved, int count);

// The backward pass is over, and both streams are waited for.
void offload_end(struct host_stash *o, struct machine *m);

#endif
