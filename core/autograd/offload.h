// TRL's activation offloading (trl 1.16, models/activation_offloading.py): what nodes outside
// recomputed layers keep, and the inputs of those layers, is copied to host memory on a stream of
// its own and brought back when it is asked for.
#ifndef FATHOM_AUTOGRAD_OFFLOAD_H
#define FATHOM_AUTOGRAD_OFFLOAD_H

#include "core/autograd/machine.h"

enum { OFFLOAD_STASH = 5, OFFLOAD_BACK = 9 };

struct stashed {
    uint64_t number;
    uint64_t key;            // where what was asked to be kept lay, which may be gone,
    uint8_t width;           // and of what type it was
    struct storage *storage; // that, or its copy
    double copied;           // when its copy is there
};

struct host_stash {
    bool on;
    bool knows_weights; // where they are; those that are gathered are elsewhere
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

// How a tensor lies that is kept: as its storage does; as a view in another order, which is copied
// first; and a parameter, which stays.
enum laid { LAID_OUT, LAID_AS_VIEW, LAID_AS_WEIGHT };

// What is kept instead of s: itself, or what stands for it in host memory.
struct storage *offload_pack(struct host_stash *o, struct machine *m, struct storage *s,
                             enum laid laid);

// Numbers that something kept takes which is never offloaded.
void offload_skip(struct host_stash *o);

// The tensor that one in host memory stands for, which is dropped; others as they are.
struct storage *offload_unpack(struct host_stash *o, struct machine *m, struct storage *s);

// Whether that one is on the card still, so that nothing has to be brought back.
bool offload_has(const struct host_stash *o, const struct storage *s);

// A node that asked is done with `saved`, of which those brought back go later.
void offload_settle(struct host_stash *o, struct machine *m, struct storage **saved, int count);

// The backward pass is over, and both streams are waited for.
void offload_end(struct host_stash *o, struct machine *m);

#endif
